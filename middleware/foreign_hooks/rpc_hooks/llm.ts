/**
 * Around a request to the model: `before_llm` and `after_llm`.
 *
 * @module
 */
import {
  callsOf,
  type Middleware,
  type ModelContext,
  type ModelRequest,
  type ModelResponse,
  textOf,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import type { AfterLlm, BeforeLlm, WireVersion } from "./about.ts";
import type { Link } from "./chain.ts";
import { type Hooks, lengthOf } from "./hooks.ts";
import {
  fromWireMessages,
  fromWireOptions,
  fromWireTool,
  toWireMessages,
  toWireOptions,
  toWireTool,
  type WireMessage,
} from "./message.ts";
import { type AfterLlmReply, afterLlmReply, type BeforeLlmReply, beforeLlmReply } from "./reply.ts";
import { fromWireResponse, toWireResponse } from "./response.ts";

/** The hooks at `model`, where there are any. */
export function llm({ chain, observers, notes, about, models, wire }: Hooks): Pick<Middleware, "model"> {
  if (!chain.has("llm") && !observers.hear("llm_request", "llm_response", "llm_retry")) return {};
  const before = beforeLlm(wire, models);

  /** What hooks make of a request. They are asked once for each turn; another try of what was sent is sent in the same way. */
  async function asked(ctx: ModelContext): Promise<Partial<ModelRequest> | undefined> {
    const { request, turn, attempt, run } = ctx;
    const messages = JSON.stringify(request.messages);
    const known = notes(run).asked;
    if (attempt > 1 && known?.turn === turn) return known.messages === messages ? known.change : undefined;
    const told: BeforeLlm = {
      ...about(ctx, turn, "turn.llm.request"),
      model: request.model.id,
      messages: toWireMessages(request),
      tools: request.tools.map(toWireTool),
      options: toWireOptions(request.options),
      graceful_terminal: run.finishing,
    };
    const { params } = await chain.ask(ctx, before, told, turn);
    const change = params === told ? undefined : changed(request, told, params);
    notes(run).asked = { turn, messages, change };
    return change;
  }

  function changed(request: ModelRequest, told: BeforeLlm, params: BeforeLlm): Partial<ModelRequest> {
    const differs = (key: "messages" | "tools" | "options") => canonicalJson(told[key]) !== canonicalJson(params[key]);
    const model = params.model === told.model ? undefined : models(params.model);
    return {
      ...(model && { model }),
      ...(differs("messages") && fromWireMessages(params.messages, request.messages)),
      ...(differs("tools") && { tools: params.tools.map(fromWireTool) }),
      ...(differs("options") && { options: fromWireOptions(params.options, request.options) }),
    };
  }

  async function answered(ctx: ModelContext, response: ModelResponse): Promise<ModelResponse> {
    const told: AfterLlm = {
      ...about(ctx, ctx.turn, "turn.llm.response"),
      model: response.model,
      response: toWireResponse(response),
    };
    const { params } = await chain.ask(ctx, afterLlm, told, ctx.turn);
    return canonicalJson(params.response) === canonicalJson(told.response)
      ? response
      : fromWireResponse(params.response, response);
  }

  return {
    async model(ctx, next) {
      const { turn, attempt } = ctx;
      const change = chain.has("llm") ? await asked(ctx) : undefined;
      const request = { ...ctx.request, ...change };
      if (attempt > 1) observers.tell("llm_retry", ctx, turn, () => retry(attempt));
      observers.tell("llm_request", ctx, turn, () => ({
        Model: request.model.id,
        MessagesCount: toWireMessages(request).length,
        ToolsCount: request.tools.length,
        MaxTokens: request.options.maxTokens ?? 0,
        Temperature: request.options.temperature ?? 0,
      }));
      const given = await next(change && { request: change });
      const response = chain.has("llm") ? await answered(ctx, given) : given;
      observers.tell("llm_response", ctx, turn, () => ({
        ContentLen: lengthOf(textOf(response)),
        ToolCalls: callsOf(response).length,
        HasReasoning: response.parts.some(({ type }) => type === "reasoning"),
      }));
      return response;
    },
  };
}

function retry(attempt: number) {
  return { Attempt: attempt - 1, MaxRetries: 0, Reason: "", Error: "", Backoff: 0 };
}

/** `before_llm`. In later versions neither what the model is told of its task nor its tools can be changed. */
function beforeLlm(wire: WireVersion, models: Hooks["models"]): Link<BeforeLlm, BeforeLlmReply> {
  return {
    stage: "before_llm",
    mode: "llm",
    reply: beforeLlmReply,
    change(before, { request }, complain) {
      if (!request) return before;
      let { model, messages, tools } = request;
      if (model !== before.model && !models(model)) {
        complain(`asks for the model ${JSON.stringify(model)}, which is not known here`);
        model = before.model;
      }
      if (wire === "head" && canonicalJson(systemOf(messages)) !== canonicalJson(systemOf(before.messages))) {
        complain("may not change what the model is told of its task");
        messages = before.messages;
      }
      if (wire === "head" && canonicalJson(tools) !== canonicalJson(before.tools)) {
        complain("may not change the tools");
        tools = before.tools;
      }
      return { ...before, model, messages, tools, options: request.options };
    },
  };
}

/** What is said by the system, and where. */
function systemOf(messages: readonly WireMessage[]): readonly (readonly [number, string])[] {
  return messages.flatMap(({ role, content }, index) => role === "system" ? [[index, content] as const] : []);
}

/** `after_llm`. */
const afterLlm: Link<AfterLlm, AfterLlmReply> = {
  stage: "after_llm",
  mode: "llm",
  reply: afterLlmReply,
  change: (before, { response }) => response?.response ? { ...before, response: response.response } : before,
};
