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
  innerOperation,
  inputOutcome,
  promptAttributes,
  providerOf,
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
import {
  type Change,
  type Emit,
  type Event,
  type ExecuteContext,
  type Middleware,
  type ModelChange,
  type ModelContext,
  type ModelResponse,
  type Next,
  type Run,
  type Scope,
  state,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { expectNames, onlyIf, type ToolOperation, traceparentOf } from "../../../src/core/kit.ts";
export type { Telemetry } from "./recorder.ts";

// Tracks the spans of one run, so that none stays open when the run ends.

/** Tracks a run. When it ends, every operation that is still in progress ends too. */
function trackRun(view: Run, run: ActiveOperation, { start, record }: Recorder, details: Details) {
  const active = new Map<string, ActiveOperation>();
  const tools = new Set<string>();
  /** The calls that the provider of the model runs in the present turn. */
  const atProvider = new Map<string, ActiveOperation>();
  const counts = { "gen_ai.invoke_agent.inference_calls": 0, "gen_ai.invoke_agent.tool_calls": 0 };

  function endAtProvider(): void {
    for (const operation of atProvider.values()) operation.end({ error: "unanswered" });
    atProvider.clear();
  }

  return {
    ...run,
    /** Starts an operation in the run: the execution of a call under its id, a request to the model under "". */
    start(id: string, operation: Operation): ActiveOperation {
      counts[`gen_ai.invoke_agent.${id === "" ? "inference" : "tool"}_calls`]++;
      return this.startIn(run.context, id, operation);
    },
    /** Starts an operation in another one of the run. */
    startIn(context: ActiveOperation["context"], id: string, operation: Operation): ActiveOperation {
      const started = start(operation, context);
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
          return void atProvider.set(event.content.callId, start(providerOperation(view, event, details), run.context));
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
            unexecutedOutcome(view, event, isTool, details),
            run.context,
          );
        }
      }
    },
    end(outcome?: Outcome): void {
      endAtProvider();
      for (const operation of active.values()) operation.end({ error: "abandoned" });
      run.end({ ...outcome, measured: counts });
    },
  };
}

/** Returns the operation behind a call. A function of the tool that fails is reported, and changes nothing. */
function meaningOf(ctx: ExecuteContext): ToolOperation | undefined {
  const { operation } = ctx.tool;
  try {
    return typeof operation === "function" ? operation(ctx.input as never, ctx) : operation; // the tool has parsed it
  } catch (error) {
    ctx.run.report(error);
    return undefined;
  }
}

// The middleware `otel()`, and its options.

/** Options of `otel()`. */
export interface OtelOptions {
  /** Name of the provider that serves the models (`openai`, `anthropic`, ...), or a function of the model's id. Default: that of the model's server. */
  readonly provider?: string | ((model: string) => string);
  /**
   * Records content: instructions, inputs, results and the latest messages, each up to 16,000 characters. A function masks each text first, such as
   * `redact().mask`. Default: false.
   */
  readonly content?: boolean | ((text: string) => string);
}

/**
 * Emits a span for every run (`invoke_agent`), every request to a model (`chat`) and every call of a tool (`execute_tool`), with the attributes of the
 * semantic conventions for generative AI. Inside a call, the `operation` of its tool has a span if it is one on a memory or a plan. A message that is refused or
 * changed at `input` has a span too. With `agent({ trace })`, it also emits a span for every hook that changed something. It records the durations of runs, calls
 * and requests, the time to the first chunk, and tokens as metrics. The guide "OpenTelemetry" lists all names. `api` is the module `@opentelemetry/api`; register
 * a provider before. Deno has one built in: `OTEL_DENO=true`.
 *
 * A run continues the trace of its request: the current span, or the `traceparent` of the run. Its own span is stored with it. If the run continues after a
 * pause or in another process, its next span has a link to that one.
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
  const lastSpan = state("otel.span", () => "");
  const details: Details = {
    provider: (model) => typeof provider === "function" ? provider(model.id) : provider ?? providerOf(model),
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

  /** Starts the operation behind a call. */
  function startInner({ run, callId }: ExecuteContext, { context }: ActiveOperation, operation: Operation) {
    return runs.get(run)?.startIn(context, `inside ${callId}`, operation) ?? recorder.start(operation, context);
  }

  /** Returns the context of a run: that of the parent's call, or of its request. */
  function parentContext({ parent, call = "", traceparent }: Run): ActiveOperation["context"] {
    return (parent && runs.get(parent)?.contextOf(call)) ?? recorder.contextOf(traceparent);
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
    const meaning = meaningOf(ctx);
    const call = start(ctx, ctx.callId, toolOperation(ctx, meaning, details));
    const inner = innerOperation(ctx, meaning);
    const work = async () => {
      if (!inner) return await next();
      const outcomeOf = ({ status }: ToolResult) => status === "ok" ? {} : { error: status };
      return await during(startInner(ctx, call, inner), next, outcomeOf);
    };
    return await during(call, work, (result) => toolOutcome(result, details));
  }

  return {
    name: "otel",
    after: ["retry", "fallback"],
    inherit: true,
    async session(ctx, next) {
      const parent = parentContext(ctx.run);
      const operation = recorder.start(runOperation(ctx, ctx.resumed ? lastSpan.get(ctx) : undefined), parent);
      if (recorder.isIdle(operation.span, parent)) {
        idleRuns.add(ctx.run);
        return await next();
      }
      lastSpan.set(ctx, traceparentOf(operation.span.spanContext())); // saved with the run, for a process that continues it
      const spans = trackRun(ctx.run, operation, recorder, details);
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
