/**
 * The points at which hooks run: `tool`, `approval`, `execute` and `model`, and those of observers.
 *
 * @module
 */
import type * as z from "zod";
import { type Hooks, lengthOf, type Link, nanoseconds } from "./chain.ts";
import {
  afterLlmReply,
  afterToolReply,
  beforeLlmReply,
  beforeToolReply,
  fromWireMessages,
  fromWireOptions,
  toWireMessages,
  toWireOptions,
} from "./wire/conversation.ts";
import type { AfterLlm, AfterTool, BeforeLlm, BeforeTool, WireVersion } from "./wire/input.ts";
import {
  fromWireResponse,
  fromWireResult,
  fromWireTool,
  toWireResponse,
  toWireResult,
  toWireTool,
  type WireMessage,
  type WireResult,
} from "./wire/message.ts";
import { objectOf } from "../kit/answers.ts";
import { inputThatRuns, isSameJson, mcpToolOf, messageOf } from "../kit/calls.ts";
import {
  callsOf,
  denied,
  deny,
  type Event,
  isInterrupt,
  type Middleware,
  type ModelContext,
  type ModelRequest,
  type ModelResponse,
  type RunResult,
  type Scope,
  state,
  textOf,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { hookServers } from "../../../src/core/kit.ts";

// The other points, for observers: `session`, `prompt`, `compact`, `subagent`, `error` and `abort`.

/** Creates the hooks of observers. `ready` settles when hooks can be asked. */
export function runHooks(
  { observers, notes, channel }: Hooks,
  ready: () => Promise<void>,
): Required<Pick<Middleware, "session" | "prompt" | "compact" | "subagent" | "error" | "abort">> {
  const isObserved = observers.has("llm_delta", "steering_injected", "interrupt_received");

  function observe(ctx: Scope, event: Event): void {
    const { turns } = ctx.run.used;
    switch (event.type) {
      case "text.delta":
        return observers.notify("llm_delta", ctx, turns, () => delta(event.text, ""));
      case "reasoning.delta":
        return observers.notify("llm_delta", ctx, turns, () => delta("", event.text));
      case "steering.injected":
        return observers.notify("steering_injected", ctx, turns, () => ({
          Count: event.messages.length,
          TotalContentLen: lengthOf(event.messages.map(textOf).join("")),
        }));
      case "steering.interrupted":
        return observers.notify("interrupt_received", ctx, turns, () => interrupted("graceful"));
    }
  }

  return {
    async session(ctx, next) {
      if (observers.has("mcp.server.connecting", "mcp.server.failed")) {
        const { used: { turns } } = ctx.run;
        hookServers(ctx, {
          connecting: (server) => observers.notify("mcp.server.connecting", ctx, turns, () => ({ server })),
          failed: (server, error) =>
            observers.notify("mcp.server.failed", ctx, turns, () => ({ server, error: messageOf(error) })),
        });
      }
      await ready();
      const result = await next();
      const { run } = ctx;
      if (result.status === "paused") return result;
      observers.notify("turn_end", ctx, run.used.turns, () => ({
        Status: statusOf(result),
        Workspace: "",
        Iterations: run.used.turns,
        Duration: nanoseconds(run.now() - run.startedAt),
        FinalContentLen: lengthOf(result.text),
        UserMessage: notes(run).prompt,
        FinalContent: result.text,
      }));
      return result;
    },
    async prompt(ctx, next) {
      const { prompt, run, resumed } = ctx;
      notes(run).prompt = textOf(prompt);
      if (!resumed) {
        observers.notify("turn_start", ctx, 0, () => ({
          Channel: channel,
          ChatID: run.session,
          UserMessage: textOf(prompt),
          MediaCount: prompt.parts.filter(({ type }) => type === "media").length,
        }));
      }
      if (!isObserved) return await next();
      return await next({
        emit(event) {
          observe(ctx, event);
          ctx.emit(event);
        },
      });
    },
    async compact(ctx, next) {
      const compaction = await next();
      if (compaction.type !== "compacted") return compaction;
      const { length } = compaction.messages;
      observers.notify("context_compress", ctx, ctx.run.used.turns, () => ({
        Reason: reasons[ctx.trigger],
        DroppedMessages: Math.max(0, ctx.transcript.length - length),
        RemainingMessages: length,
      }));
      return compaction;
    },
    async subagent(ctx, next) {
      const { child: AgentID, run: { id: ParentTurnID, session: TargetChatID, used: { turns } } } = ctx;
      observers.notify("subturn_spawn", ctx, turns, () => ({ AgentID, Label: AgentID, ParentTurnID }));
      const result = await next();
      if (result.status === "paused") return result;
      observers.notify("subturn_end", ctx, turns, () => ({ AgentID, Status: statusOf(result) }));
      observers.notify("subturn_result_delivered", ctx, turns, () => ({
        TargetChannel: channel,
        TargetChatID,
        ContentLen: lengthOf(result.text),
      }));
      return result;
    },
    async error(ctx, next) {
      const { source, error, run } = ctx;
      observers.notify("error", ctx, run.used.turns, () => ({
        Stage: source === "model" ? "llm" : source,
        Message: messageOf(error),
      }));
      return await next();
    },
    async abort(ctx, next) {
      if (ctx.reason !== "failure") {
        if (ctx.source !== "hook") {
          observers.notify("interrupt_received", ctx, ctx.run.used.turns, () => interrupted("hard_abort"));
        }
      }
      await next();
    },
  };
}

function interrupted(Kind: "graceful" | "hard_abort") {
  return { Kind, Role: "", ContentLen: 0, QueueDepth: 0, HintLen: 0 };
}

/** The reasons of a compaction. */
const reasons = { auto: "proactive_budget", overflow: "llm_retry", manual: "summarize" } as const;

function statusOf({ status }: RunResult): "completed" | "error" | "aborted" {
  if (status === "failed") return "error";
  return status === "aborted" || status === "cancelled" ? "aborted" : "completed";
}

function delta(text: string, reasoning: string) {
  return { ContentDeltaLen: lengthOf(text), ReasoningDeltaLen: lengthOf(reasoning) };
}

// The `model` point: `before_llm` and `after_llm`.

/** Creates the hook at `model`, if a hook needs it. */
export function llmHook({ chain, observers, notes, about, models, wire }: Hooks): Pick<Middleware, "model"> {
  const isObserved = observers.has("llm_request", "llm_response", "llm_retry", ...discovery);
  if (!chain.has("llm") && !isObserved) return {};
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

  /** Reports the tools of servers that the run has not seen, and their servers. */
  function discover(ctx: ModelContext): void {
    const { turn, run, request } = ctx;
    const { discovered } = notes(run);
    const tools = request.tools.flatMap(({ name }) => discovered.has(name) ? [] : mcpToolOf(name) ?? []);
    for (const server of new Set(tools.map(({ serverName }) => serverName))) {
      const ofServer = tools.filter(({ serverName }) => serverName === server);
      observers.notify("mcp.server.connected", ctx, turn, () => ({ server, tool_count: ofServer.length }));
      for (const { toolName: tool } of ofServer) {
        observers.notify("mcp.tool.discovered", ctx, turn, () => ({ server, tool }));
      }
    }
    for (const { name } of request.tools) discovered.add(name);
  }

  return {
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      const { turn, attempt } = ctx;
      const change = chain.has("llm") ? await asked(ctx) : undefined;
      const request = { ...ctx.request, ...change };
      if (observers.has(...discovery)) discover(ctx);
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

/** The kinds of events about the servers and tools that a run meets. */
const discovery = ["mcp.server.connected", "mcp.tool.discovered"] as const;

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

// The points `tool`, `approval` and `execute`: `before_tool`, `approve_tool` and `after_tool`.

/** The ids of the calls that hooks have answered. */
const answered = state("rpc_hooks.answered", (): readonly string[] => []);

/** Creates the hooks around a call, if a hook needs them. */
export function toolHooks(hooks: Hooks): Pick<Middleware, "tool" | "approval" | "execute"> {
  const { chain, observers } = hooks;
  const isObserved = observers.has("tool_exec_start", "tool_exec_end", "tool_exec_skipped", ...mcpCall);
  const isNeeded = chain.has("tool") || isObserved;
  return { ...(isNeeded && around(hooks)), ...(chain.has("approve") && approval(hooks)) };
}

function around({ chain, observers, notes, about, warn }: Hooks): Pick<Middleware, "tool" | "execute"> {
  function responded(ctx: ToolContext, { tool: Tool, arguments: Arguments }: BeforeTool, wire: WireResult): ToolResult {
    observers.notify("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
    observers.notify("tool_exec_end", ctx, ctx.turn, () => endOf(Tool, wire, 0));
    return fromWireResult(wire);
  }

  function refused(ctx: ToolContext, reason: string): ToolResult {
    const why = reasoned("Tool execution denied by hook", reason);
    observers.notify("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: ctx.name, Reason: why }));
    return denied(why);
  }

  /** Asks `after_tool` about a result. */
  async function reviewed(ctx: ToolContext, call: BeforeTool, result: ToolResult): Promise<ToolResult> {
    const { status } = result;
    if (status === "denied" || status === "skipped") {
      observers.notify("tool_exec_skipped", ctx, ctx.turn, () => ({ Tool: call.tool, Reason: textOf(result) }));
    }
    if (["denied", "skipped", "aborted"].includes(status)) return result;
    const { took } = notes(ctx.run);
    const duration = nanoseconds(took.get(ctx.call.id) ?? 0);
    took.delete(ctx.call.id);
    const wire = toWireResult(result);
    const params: AfterTool = {
      ...about(ctx, ctx.turn, "turn.tool.after"),
      tool: call.tool,
      arguments: objectOf(result.input ?? call.arguments),
      result: wire,
      duration,
    };
    const { params: after } = await chain.ask(ctx, afterTool, params, ctx.turn);
    observers.notify("tool_exec_end", ctx, ctx.turn, () => endOf(after.tool || call.tool, after.result, duration));
    return isSameJson(after.result, wire) ? result : fromWireResult(after.result, result);
  }

  return {
    async tool(ctx, next) {
      const call: BeforeTool = {
        ...about(ctx, ctx.turn, "turn.tool.before"),
        tool: ctx.name,
        arguments: objectOf(await inputThatRuns(ctx)),
      };
      const { params, end } = await chain.ask(ctx, beforeTool, call, ctx.turn);
      if (end?.action === "deny_tool") return refused(ctx, end.reason);
      const hookResult = end?.result ?? end?.call?.hook_result;
      note(ctx, hookResult !== undefined);
      if (hookResult) return responded(ctx, call, hookResult);
      if (end) {
        warn(ctx, {
          hook: end.by,
          point: "tool",
          problem: "responded without a result: the call runs unchanged",
        });
      }
      const changed = end ? call : params;
      return await reviewed(ctx, changed, await next(changeOf(call, changed)));
    },
    async execute(ctx, next) {
      const { took } = notes(ctx.run);
      const { tool: { name: Tool }, input: Arguments } = ctx;
      const mcpTool = mcpToolOf(Tool);
      const served = mcpTool && { server: mcpTool.serverName, tool: mcpTool.toolName };
      if (!took.has(ctx.callId)) {
        observers.notify("tool_exec_start", ctx, ctx.turn, () => ({ Tool, Arguments }));
        if (served) observers.notify("mcp.tool.call.start", ctx, ctx.turn, () => served);
      }
      const start = performance.now();
      const end = (error?: string) => {
        if (!served) return;
        const duration_ms = Math.round(performance.now() - start);
        const failure = error !== undefined && { is_error: true, error };
        observers.notify("mcp.tool.call.end", ctx, ctx.turn, () => ({ ...served, duration_ms, ...failure }));
      };
      try {
        const result = await next();
        end(result.status === "ok" ? undefined : textOf(result));
        return result;
      } catch (error) {
        if (!isInterrupt(error)) end(messageOf(error));
        throw error;
      } finally {
        took.set(ctx.callId, performance.now() - start);
      }
    },
  };
}

/** The kinds of events about calls of tools of servers. */
const mcpCall = ["mcp.tool.call.start", "mcp.tool.call.end"] as const;

function approval({ chain, about, approveResponses }: Hooks): Pick<Middleware, "approval"> {
  return {
    async approval(ctx, next) {
      if (ctx.proposed && !approveResponses && answered.get(ctx).includes(ctx.call.id)) return await next();
      const reason = await chain.approve(ctx, {
        ...about(ctx, ctx.turn, "turn.tool.approve"),
        tool: ctx.name,
        arguments: objectOf(ctx.input),
      });
      if (reason === undefined) return await next();
      return deny(reasoned("Tool execution denied by approval hook", reason));
    },
  };
}

/** Records whether a hook has answered a call. The answer may differ from the one before a pause. */
function note(ctx: ToolContext, isAnswered: boolean): void {
  const { id } = ctx.call;
  if (answered.get(ctx).includes(id) === isAnswered) return;
  answered.update(ctx, (ids) => isAnswered ? [...ids, id] : ids.filter((each) => each !== id));
}

/** `before_tool`. */
const beforeTool: Link<BeforeTool, z.output<typeof beforeToolReply>> = {
  stage: "before_tool",
  mode: "tool",
  reply: beforeToolReply,
  change: (before, { call }) => call ? { ...before, tool: call.tool, arguments: call.arguments } : before,
  ends: ["respond", "deny_tool"],
};

/** `after_tool`. */
const afterTool: Link<AfterTool, z.output<typeof afterToolReply>> = {
  stage: "after_tool",
  mode: "tool",
  reply: afterToolReply,
  change(before, { result }) {
    return result
      ? { ...before, tool: result.tool, arguments: result.arguments, result: result.result ?? before.result }
      : before;
  },
};

function changeOf(before: BeforeTool, after: BeforeTool): ToolChange | undefined {
  const input = isSameJson(before.arguments, after.arguments) ? undefined : after.arguments;
  const name = before.tool === after.tool ? undefined : after.tool;
  return input === undefined && name === undefined
    ? undefined
    : { ...(input !== undefined && { input }), ...(name !== undefined && { name }) };
}

function reasoned(text: string, reason: string): string {
  return reason === "" ? text : `${text}: ${reason}`;
}

function endOf(Tool: string, { for_llm, for_user, is_error: IsError, async: Async }: WireResult, Duration: number) {
  return { Tool, Duration, ForLLMLen: lengthOf(for_llm), ForUserLen: lengthOf(for_user), IsError, Async };
}
