/**
 * Emits OpenTelemetry spans and metrics.
 *
 * @module
 */
import type {
  Change,
  Emit,
  ExecuteContext,
  Middleware,
  ModelChange,
  ModelContext,
  ModelResponse,
  Next,
  Run,
  Scope,
  ToolResult,
} from "../../../mod.ts";
import { onlyIf } from "../../../src/core/kit.ts";
import type { Context, Telemetry } from "./api.ts";
import { type Begun, measures, type Operation, type Outcome, thrown } from "./measure.ts";
import { answered, called, chat, cut, execution, invocation, invoked, type Saying } from "./operations.ts";
import { watch, type Watched } from "./watch.ts";

export type * from "./api.ts";

/** What is said beside the facts. */
export interface OtelOptions {
  /** Who serves the models, or who serves the model of this id: `openai`, `anthropic`, ... Default: it is not said. */
  readonly provider?: string | ((model: string) => string);
  /** Says too what was said: instructions, inputs, results and the latest messages, of each no more than 16,000 characters. Default: false. */
  readonly content?: boolean;
}

/**
 * Emits a span for every run (`invoke_agent`), every request to a model (`chat`) and every call of a tool (`execute_tool`), and with `agent({ trace: true })` one for
 * every hook that did something, with the attributes of the semantic conventions for generative AI. Their times are recorded in `gen_ai.client.operation.duration`,
 * the tokens in `gen_ai.client.token.usage`. Given the module itself, it imports nothing; providers have to be registered before. Deno brings its own: `OTEL_DENO=true`.
 *
 * Spans nest, whether or not the platform can tell what goes on; where it can, what tools and models do belongs to their spans too. Agents beneath have it too,
 * and nest in the calls that they run for. It stands after `retry` and `fallback`, so that every try has a span; an agent beneath that has its own of these uses
 * the same `otel()` after them. No span says what was said, unless `content` is set.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { otel } from "@jizai/jizai/middleware/otel";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import * as api from "@opentelemetry/api";
 * import { assertEquals } from "@std/assert";
 *
 * const telemetry = otel(api, { provider: "openai" });
 * const assistant = agent({ name: "assistant", model: scripted("Hello!"), use: [telemetry], trace: true });
 *
 * const { text } = await assistant.run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function otel(api: Telemetry, { provider, content = false }: OtelOptions = {}): Middleware {
  const measuring = measures(api);
  const saying: Saying = {
    provider(model) {
      if (provider === undefined) return {};
      return { "gen_ai.provider.name": typeof provider === "string" ? provider : provider(model) };
    },
    content,
  };
  const runs = new WeakMap<Run, Watched>();
  /** The runs that nobody records. */
  const idle = new WeakSet<Run>();
  const busy = ({ run }: Scope) => !idle.has(run);

  /** Begins something in a run; where none is watched, it belongs to what goes on. */
  function begin({ run }: Scope, id: string, operation: Operation): Begun {
    return runs.get(run)?.begin(id, operation) ?? measuring.begin(operation, api.context.active());
  }

  /** Where a run belongs: to the call that it works for, or to what goes on. */
  function around({ parent, call = "" }: Run): Context {
    const above = parent && runs.get(parent);
    return above?.within(call) ?? api.context.active();
  }

  /** Does the work of an operation, which ends however that does. */
  async function during<R>(begun: Begun, work: () => Promise<R>, outcomeOf: (result: R) => Outcome): Promise<R> {
    try {
      const result = await api.context.with(begun.context, work);
      begun.end(outcomeOf(result));
      return result;
    } catch (error) {
      begun.end(thrown(error));
      throw error;
    }
  }

  async function asking(ctx: ModelContext, next: Next<ModelChange, ModelResponse>): Promise<ModelResponse> {
    return await during(begin(ctx, "", chat(ctx, saying)), next, (response) => answered(response, saying));
  }

  async function executing(ctx: ExecuteContext, next: Next<Change, ToolResult>): Promise<ToolResult> {
    return await during(begin(ctx, ctx.callId, execution(ctx, saying)), next, (result) => called(result, saying));
  }

  return {
    name: "otel",
    after: ["retry", "fallback"],
    inherit: true,
    async session(ctx, next) {
      const begun = measuring.begin(invocation(ctx, saying), around(ctx.run));
      if (measuring.idle(begun.span)) {
        idle.add(ctx.run);
        return await next();
      }
      const run = watch(begun, measuring, saying);
      runs.set(ctx.run, run);
      const emit: Emit = (event) => {
        run.hear(event);
        ctx.emit(event);
      };
      return await during(run, () => next({ emit }), (result) => invoked(result, saying));
    },
    model: onlyIf(asking, busy),
    execute: onlyIf(executing, busy),
    async abort(ctx, next) {
      try {
        await next();
      } finally {
        // where a hook hangs, nothing comes back to `session`; after a failure it does, and knows more
        if (ctx.reason !== "failure") runs.get(ctx.run)?.end(cut(ctx, saying));
      }
    },
  };
}
