/**
 * What hooks at `model` answer to `before_llm` and `after_llm`.
 *
 * @module
 */
import * as z from "zod";
import type { Model, ModelContext, ModelResponse } from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import {
  fromWireMessages,
  fromWireOptions,
  fromWireTool,
  toWireMessages,
  toWireOptions,
  toWireTool,
  wireMessage,
  wireOptions,
  wireTool,
} from "../rpc_hooks/wire/message.ts";
import { fromWireResponse, toWireResponse, wireResponse } from "../rpc_hooks/wire/response.ts";
import { struct, text } from "../rpc_hooks/wire/struct.ts";
import type { Onions } from "./onions.ts";
import { descend, type Passage } from "./passage.ts";
import { scopeOf } from "./runs.ts";
import { meta, type Runs } from "./underway.ts";

const beforeLlm = struct({
  meta,
  model: text,
  messages: z.array(wireMessage).default([]),
  tools: z.array(wireTool).default([]),
  options: wireOptions.default({}),
});
const afterLlm = struct({ meta, model: text, response: wireResponse.optional() });

/** Answers about the model. */
export function askingModel({ model: around }: Onions, { runOf, underway }: Runs) {
  async function before(params: unknown): Promise<unknown> {
    const { meta, ...told } = beforeLlm.parse(params);
    const all = underway(meta);
    all.model?.leave();
    const request = {
      model: modelOf(told.model),
      ...fromWireMessages(told.messages, []),
      tools: told.tools.map(fromWireTool),
      options: fromWireOptions(told.options, {}),
    };
    const ctx: ModelContext = { ...scopeOf(runOf(meta)), request, attempt: 1, turn: meta.Iteration };
    const arrived = await descend(around, ctx);
    const passage = "passage" in arrived ? arrived.passage : answered(ctx, arrived.answer);
    all.model = passage;
    const { model, instructions, messages, tools, options } = passage.reached.request;
    const said = instructions !== request.instructions || messages !== request.messages;
    const changed = {
      model: model.id,
      messages: said ? toWireMessages({ instructions, messages }) : told.messages,
      tools: tools === request.tools ? told.tools : tools.map(toWireTool),
      options: options === request.options ? told.options : toWireOptions(options),
    };
    if (canonicalJson(changed) === canonicalJson(told)) return { action: "continue" };
    return { action: "modify", request: changed };
  }

  async function after(params: unknown): Promise<unknown> {
    const { meta, model, response = { content: "", finish_reason: "" } } = afterLlm.parse(params);
    const all = underway(meta);
    const { prompt_tokens: input = 0, completion_tokens: output = 0 } = response.usage ?? {};
    const before = { parts: [], finish: "stop", usage: { input, output }, model, attempts: 1 } as const;
    const given = fromWireResponse(response, before);
    const passage = all.model;
    all.model = undefined;
    const answer = await passage?.come(given) ?? given;
    if (canonicalJson(answer.parts) === canonicalJson(given.parts)) return { action: "continue" };
    return { action: "modify", response: { model, response: toWireResponse(answer) } };
  }

  return { before, after };
}

/** Hooks that have answered in the model's place: it is asked all the same, and taken to have answered so. */
function answered(reached: ModelContext, answer: ModelResponse): Passage<ModelContext, ModelResponse> {
  return { reached, come: () => Promise.resolve(answer), leave() {} };
}

/** A model of another system: it can be named, and not asked. */
function modelOf(id: string): Model {
  return {
    id,
    stream() {
      throw new Error(`Cannot ask ${id}: it is a model of another system`);
    },
  };
}
