/**
 * Emits OpenTelemetry spans and metrics.
 *
 * @module
 */
import {
  abortOutcome,
  chatOperation,
  chatOutcome,
  type Details,
  hookOutcome,
  inputOutcome,
  promptAttributes,
  providerOperation,
  providerOutcome,
  runOperation,
  runOutcome,
  toolOperation,
  toolOutcome,
  unexecutedOutcome,
} from "./operations.ts";
import {
  type ActiveOperation,
  type Operation,
  type Outcome,
  outcomeOfError,
  type Recorder,
  recorderOf,
  type Telemetry,
} from "./recorder.ts";
import type {
  Change,
  Emit,
  Event,
  ExecuteContext,
  Middleware,
  ModelChange,
  ModelContext,
  ModelResponse,
  Next,
  Run,
  Scope,
  ToolChange,
  ToolContext,
  ToolResult,
} from "../../../mod.ts";
import { expectNames, onlyIf } from "../../../src/core/kit.ts";
export type { Telemetry } from "./recorder.ts";

// Tracks the spans of one run, so that none stays open when the run ends.

/** Tracks a run. When it ends, every operation that is still in progress ends too. */
function trackRun(run: ActiveOperation, { start, record }: Recorder, details: Details) {
  const active = new Map<string, ActiveOperation>();
  const tools = new Set<string>();
  /** The calls that the provider of the model runs in the present turn. */
  const atProvider = new Map<string, ActiveOperation>();

  function endAtProvider(): void {
    for (const operation of atProvider.values()) operation.end({ error: "unanswered" });
    atProvider.clear();
  }

  return {
    ...run,
    /** Starts an operation in the run: the execution of a call under its id, a request to the model under "". */
    start(id: string, operation: Operation): ActiveOperation {
      const started = start(operation, run.context);
      active.set(id, started);
      return started;
    },
    /** Returns the context of an executing call. */
    contextOf: (call: string) => active.get(call)?.context,
    /** Tells the name of a tool from one that the model made up. */
    addTool: (name: string): void => void tools.add(name),
    /** Records the operations that only events report. */
    observe(event: Event): void {
      switch (event.type) {
        case "prompt.accepted":
          if (details.content) run.span.setAttributes(promptAttributes(event, details.content));
          return;
        case "hook.acted":
          if (event.middleware === "otel" || event.did.includes("passed")) return;
          return record(`hook ${event.middleware} ${event.point}`, hookOutcome(event), run.context, event.ms);
        case "provider_tool.started":
          return void atProvider.set(event.content.callId, start(providerOperation(event, details), run.context));
        case "provider_tool.finished":
          return atProvider.get(event.content.callId)?.end(providerOutcome(event, details));
        case "model.reset":
        case "model.finished":
          return endAtProvider();
        case "tool.finished": {
          const executed = active.get(event.call);
          active.delete(event.call);
          if (executed) return executed.end(toolOutcome(event.result, details)); // has ended, unless a hook hangs
          const { name } = event.result;
          const isTool = tools.has(name);
          return record(
            isTool ? `execute_tool ${name}` : "execute_tool",
            unexecutedOutcome(event, isTool, details),
            run.context,
          );
        }
      }
    },
    end(outcome?: Outcome): void {
      endAtProvider();
      for (const operation of active.values()) operation.end({ error: "abandoned" });
      run.end(outcome);
    },
  };
}

// The middleware `otel()`, and its options.

/** Options of `otel()`. */
export interface OtelOptions {
  /** Name of the provider that serves the models (`openai`, `anthropic`, ...), or a function of the model's id. Default: not recorded. */
  readonly provider?: string | ((model: string) => string);
  /**
   * Records content: instructions, inputs, results and the latest messages, each up to 16,000 characters. A function masks each text first, such as
   * `redact().mask`. Default: false.
   */
  readonly content?: boolean | ((text: string) => string);
}

/**
 * Emits a span for every run (`invoke_agent`), every request to a model (`chat`) and every call of a tool (`execute_tool`), with the attributes of the
 * semantic conventions for generative AI. A message that is refused or changed at `input` has a span too. With `agent({ trace })`, it also emits a span for
 * every hook that changed something. It records durations in `gen_ai.client.operation.duration` and tokens in `gen_ai.client.token.usage`. `api` is the
 * module `@opentelemetry/api`; register a provider before. Deno has one built in: `OTEL_DENO=true`.
 *
 * Spans nest on every platform. If the platform tracks the current context, spans that tools and models emit nest too. Agents that run as tools inherit this
 * middleware, and their spans nest in the call. Place it after `retry` and `fallback`, so that every attempt has a span. An agent with its own `retry` or
 * `fallback` uses the same `otel()` after them.
 *
 * Spans contain no content unless `content` is set. A reason that a hook gives is content, and so is the name of a `budget()` that ends a run, unless it is
 * "budget". Because some content is recorded before `redact()` masks it, pass its `mask` as `content`.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { otel } from "@jizai/jizai/middleware/otel";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { trace } from "@jizai/jizai/trace";
 * import * as api from "@opentelemetry/api";
 * import { assertEquals } from "@std/assert";
 *
 * const telemetry = otel(api, { provider: "openai" });
 * const assistant = agent({ name: "assistant", model: scripted("Hello!"), use: [telemetry], trace });
 *
 * const { text } = await assistant.run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function otel(api: Telemetry, options: OtelOptions = {}): Middleware {
  expectNames("Cannot create otel()", options, ["provider", "content"]);
  const { provider, content = false } = options;
  const recorder = recorderOf(api);
  const details: Details = {
    provider(model) {
      if (provider === undefined) return {};
      return { "gen_ai.provider.name": typeof provider === "string" ? provider : provider(model) };
    },
    content: typeof content === "function" ? content : content ? (text) => text : undefined,
  };
  const runs = new WeakMap<Run, ReturnType<typeof trackRun>>();
  /** Runs that no provider records. */
  const idleRuns = new WeakSet<Run>();
  const isRecorded = ({ run }: Scope) => !idleRuns.has(run);

  /** Starts an operation in its run, or in the current context if the run is not tracked. */
  function start({ run }: Scope, id: string, operation: Operation): ActiveOperation {
    return runs.get(run)?.start(id, operation) ?? recorder.start(operation, api.context.active());
  }

  /** Returns the context of a run: that of the parent's call, or the current one. */
  function parentContext({ parent, call = "" }: Run): ActiveOperation["context"] {
    return (parent && runs.get(parent)?.contextOf(call)) ?? api.context.active();
  }

  /** Does the work of an operation and ends the operation. */
  async function during<R>(
    operation: ActiveOperation,
    work: () => Promise<R>,
    outcomeOf: (result: R) => Outcome,
  ): Promise<R> {
    try {
      const result = await api.context.with(operation.context, work);
      operation.end(outcomeOf(result));
      return result;
    } catch (error) {
      operation.end(outcomeOfError(error));
      throw error;
    }
  }

  async function recordChat(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    return await during(
      start(ctx, "", chatOperation(ctx, details)),
      next,
      (response) => chatOutcome(response, details),
    );
  }

  function noteTool({ run, tool, name }: ToolContext, next: Next<ToolChange, ToolResult>): Promise<ToolResult> {
    if (tool) runs.get(run)?.addTool(name);
    return next();
  }

  async function recordTool(ctx: ExecuteContext, next: Next<Change, ToolResult>): Promise<ToolResult> {
    return await during(
      start(ctx, ctx.callId, toolOperation(ctx, details)),
      next,
      (result) => toolOutcome(result, details),
    );
  }

  return {
    name: "otel",
    after: ["retry", "fallback"],
    inherit: true,
    async session(ctx, next) {
      const operation = recorder.start(runOperation(ctx, details), parentContext(ctx.run));
      if (recorder.isIdle(operation.span)) {
        idleRuns.add(ctx.run);
        return await next();
      }
      const spans = trackRun(operation, recorder, details);
      runs.set(ctx.run, spans);
      for (const { name } of ctx.settings.tools) spans.addTool(name);
      const emit: Emit = (event) => {
        spans.observe(event);
        ctx.emit(event);
      };
      return await during(spans, () => next({ emit }), (result) => runOutcome(result, details));
    },
    async input(ctx, next) {
      const result = await next();
      if (result.status === "accepted" && result.messages === ctx.messages) return result;
      const parent = runs.get(ctx.run)?.context ?? parentContext(ctx.run);
      if (isRecorded(ctx)) recorder.record(`input ${ctx.source}`, inputOutcome(result), parent);
      return result;
    },
    model: onlyIf(recordChat, isRecorded),
    tool: onlyIf(noteTool, isRecorded),
    execute: onlyIf(recordTool, isRecorded),
    async abort(ctx, next) {
      try {
        await next();
      } finally {
        // if a hook hangs, `session` never continues; after a failure it does, and knows the error
        if (ctx.source !== "failure") runs.get(ctx.run)?.end(abortOutcome(ctx, details));
      }
    },
  };
}
