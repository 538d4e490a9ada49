/**
 * The hooks at `model` as answers to `before_llm` and `after_llm`.
 *
 * @module
 */
import * as z from "zod";
import type { Model, ModelContext, ModelResponse } from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { fromWireMessages, toWireMessages } from "../rpc_hooks/wire/conversation.ts";
import { fromWireTool, toWireTool, wireMessage, wireTool } from "../rpc_hooks/wire/message.ts";
import { fromWireOptions, toWireOptions, wireOptions } from "../rpc_hooks/wire/options.ts";
import { fromWireResponse, toWireResponse, wireResponse } from "../rpc_hooks/wire/response.ts";
import { struct, text } from "../rpc_hooks/wire/struct.ts";
import type { Onions } from "./onions.ts";
import { descend, type Descent } from "./descent.ts";
import { meta, type RpcRuns } from "./rpc_runs.ts";
import { scopeOf } from "./runs.ts";

const beforeLlm = struct({
  meta,
  model: text,
  messages: z.array(wireMessage).default([]),
  tools: z.array(wireTool).default([]),
  options: z._default(wireOptions, {}),
});
const afterLlm = struct({ meta, model: text, response: z.optional(wireResponse) });

/** Creates the answers. */
export function rpcModel({ model: around }: Onions, { runOf, pendingOf }: RpcRuns) {
  async function before(params: unknown): Promise<unknown> {
    const { meta, ...given } = z.parse(beforeLlm, params);
    const all = pendingOf(meta);
    all.model?.cancel();
    const request = {
      model: modelOf(given.model),
      ...fromWireMessages(given.messages, []),
      tools: given.tools.map(fromWireTool),
      options: fromWireOptions(given.options, {}),
    };
    const turn = meta.Iteration + 1;
    const ctx: ModelContext = { ...scopeOf(runOf(meta)), request, attempt: 1, turn, purpose: "turn" };
    const outcome = await descend(around, ctx);
    const descent = "descent" in outcome ? outcome.descent : answered(ctx, outcome.answer);
    all.model = descent;
    const { model, instructions, messages, tools, options } = descent.reached.request;
    const isChanged = instructions !== request.instructions || messages !== request.messages;
    const changed = {
      model: model.id,
      messages: isChanged ? toWireMessages({ instructions, messages }) : given.messages,
      tools: tools === request.tools ? given.tools : tools.map(toWireTool),
      options: options === request.options ? given.options : toWireOptions(options),
    };
    if (canonicalJson(changed) === canonicalJson(given)) return { action: "continue" };
    return { action: "modify", request: changed };
  }

  async function after(params: unknown): Promise<unknown> {
    const { meta, model, response = { content: "", finish_reason: "" } } = z.parse(afterLlm, params);
    const all = pendingOf(meta);
    const { prompt_tokens: input = 0, completion_tokens: output = 0 } = response.usage ?? {};
    const before = { parts: [], finish: "stop", usage: { input, output }, model, attempts: 1 } as const;
    const original = fromWireResponse(response, before);
    const descent = all.model;
    all.model = undefined;
    const answer = await descent?.finish(original) ?? original;
    if (canonicalJson(answer.parts) === canonicalJson(original.parts)) return { action: "continue" };
    return { action: "modify", response: { model, response: toWireResponse(answer) } };
  }

  return { before, after };
}

/** Returns a descent of hooks that answered without the model. PicoClaw asks the model all the same; the answer replaces its response. */
function answered(reached: ModelContext, answer: ModelResponse): Descent<ModelContext, ModelResponse> {
  return { reached, finish: () => Promise.resolve(answer), cancel() {} };
}

/** Returns a model of another system, which has a name and cannot be asked. */
function modelOf(id: string): Model {
  return {
    id,
    stream() {
      throw new Error(`Cannot ask ${id}: it is a model of another system`);
    },
  };
}
