/**
 * The `model` point: `before_llm` and `after_llm`.
 *
 * @module
 */
import type * as z from "zod";
import {
  callsOf,
  type Middleware,
  type ModelContext,
  type ModelRequest,
  type ModelResponse,
  textOf,
} from "../../../../mod.ts";
import { isSameJson } from "../../kit/call.ts";
import type { Link } from "../chain.ts";
import { type Hooks, lengthOf } from "../hooks.ts";
import type { AfterLlm, BeforeLlm, WireVersion } from "../wire/input.ts";
import { fromWireMessages, toWireMessages } from "../wire/conversation.ts";
import { fromWireTool, toWireTool, type WireMessage } from "../wire/message.ts";
import { fromWireOptions, toWireOptions } from "../wire/options.ts";
import { afterLlmReply, beforeLlmReply } from "../wire/reply.ts";
import { fromWireResponse, toWireResponse } from "../wire/response.ts";

/** Creates the hook at `model`, if a hook needs it. */
export function llmHook({ chain, observers, notes, about, models, wire }: Hooks): Pick<Middleware, "model"> {
  if (!chain.has("llm") && !observers.has("llm_request", "llm_response", "llm_retry")) return {};
  const before = beforeLlm(wire, models);

  /** Returns the changes that hooks make in a request. They are asked once per turn; another attempt repeats the changes. */
  async function asked(ctx: ModelContext): Promise<Partial<ModelRequest> | undefined> {
    const { request, turn, attempt, run } = ctx;
    const messages = JSON.stringify(request.messages);
    const known = notes(run).asked;
    if (attempt > 1 && known?.turn === turn) return known.messages === messages ? known.change : undefined;
    const params: BeforeLlm = {
      ...about(ctx, turn, "turn.llm.request"),
      model: request.model.id,
      messages: toWireMessages(request),
      tools: request.tools.map(toWireTool),
      options: toWireOptions(request.options),
      graceful_terminal: run.finishing,
    };
    const asked = await chain.ask(ctx, before, params, turn);
    const change = asked.params === params ? undefined : changed(request, params, asked.params);
    notes(run).asked = { turn, messages, change };
    return change;
  }

  function changed(request: ModelRequest, old: BeforeLlm, params: BeforeLlm): Partial<ModelRequest> {
    const differs = (key: "messages" | "tools" | "options") => !isSameJson(old[key], params[key]);
    const model = params.model === old.model ? undefined : models(params.model);
    return {
      ...(model && { model }),
      ...(differs("messages") && fromWireMessages(params.messages, request.messages)),
      ...(differs("tools") && { tools: params.tools.map(fromWireTool) }),
      ...(differs("options") && { options: fromWireOptions(params.options, request.options) }),
    };
  }

  async function answered(ctx: ModelContext, response: ModelResponse): Promise<ModelResponse> {
    const params: AfterLlm = {
      ...about(ctx, ctx.turn, "turn.llm.response"),
      model: response.model,
      response: toWireResponse(response),
    };
    const { params: { response: after } } = await chain.ask(ctx, afterLlm, params, ctx.turn);
    return isSameJson(after, params.response) ? response : fromWireResponse(after, response);
  }

  return {
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      const { turn, attempt } = ctx;
      const change = chain.has("llm") ? await asked(ctx) : undefined;
      const request = { ...ctx.request, ...change };
      if (attempt > 1) observers.notify("llm_retry", ctx, turn, () => retry(attempt));
      observers.notify("llm_request", ctx, turn, () => ({
        Model: request.model.id,
        MessagesCount: toWireMessages(request).length,
        ToolsCount: request.tools.length,
        MaxTokens: request.options.maxTokens ?? 0,
        Temperature: request.options.temperature ?? 0,
      }));
      const original = await next(change && { request: change });
      const response = chain.has("llm") ? await answered(ctx, original) : original;
      observers.notify("llm_response", ctx, turn, () => ({
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

/** `before_llm`. In "head", hooks cannot change system messages and tools. */
function beforeLlm(wire: WireVersion, models: Hooks["models"]): Link<BeforeLlm, z.output<typeof beforeLlmReply>> {
  return {
    stage: "before_llm",
    mode: "llm",
    reply: beforeLlmReply,
    change(before, { request }, onProblem) {
      if (!request) return before;
      const isLocked = (isChanged: boolean, problem: string) => {
        if (isChanged) onProblem(problem);
        return isChanged;
      };
      const { model, messages, tools, options } = request;
      const isUnknown = model !== before.model && !models(model);
      const isHead = wire === "head";
      const changesSystem = isHead && !isSameJson(systemOf(messages), systemOf(before.messages));
      const changesTools = isHead && !isSameJson(tools, before.tools);
      return {
        ...before,
        model: isLocked(isUnknown, `chose an unknown model ${JSON.stringify(model)}`) ? before.model : model,
        messages: isLocked(changesSystem, "cannot change system messages") ? before.messages : messages,
        tools: isLocked(changesTools, "cannot change the tools") ? before.tools : tools,
        options,
      };
    },
  };
}

/** Returns the system messages and their positions. */
function systemOf(messages: readonly WireMessage[]): readonly (readonly [number, string])[] {
  return messages.flatMap(({ role, content }, index) => role === "system" ? [[index, content] as const] : []);
}

/** `after_llm`. */
const afterLlm: Link<AfterLlm, z.output<typeof afterLlmReply>> = {
  stage: "after_llm",
  mode: "llm",
  reply: afterLlmReply,
  change: (before, { response }) => response?.response ? { ...before, response: response.response } : before,
};
