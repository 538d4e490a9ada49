/**
 * Around a call: `PreToolUse`, and `PostToolUse`, `PostToolUseFailure` or `PermissionDenied`.
 *
 * @module
 */
import {
  type Call,
  type Decider,
  denied,
  type Event,
  type Middleware,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { type Answers, blockOf, contextOf, lastOf } from "./answers.ts";
import { partsOf, responseOf, toldOf } from "./call.ts";
import type { Hooks } from "./hooks.ts";
import type { Judging } from "./pre_tool_use.ts";
import { entering, leaving } from "./worktree.ts";

/** What is known of work that was done. */
interface Work {
  readonly ms: number;
  /** Whether it failed by what it threw. */
  readonly threw: boolean;
}

/** What the model is told that may try again. */
const mayRetry = "A hook says that you may try the denied call again.";

/** The hooks of a middleware at `tool` and `execute`. */
export function tool(hooks: Hooks, { judge, judged }: Judging): Pick<Middleware, "tool" | "execute"> {
  const { dialect, memory } = hooks;
  const works = new WeakMap<Call, Work>();
  const ofEvery = hooks.has("PostToolBatch");

  /** Whether any hook is for calls of a tool. */
  function concerned(name: string): boolean {
    return ofEvery || /^(Enter|Exit)Worktree$/.test(name) ||
      hooks.hear(name, "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied");
  }

  /** The result that comes out, after the hooks for how it ended were asked. */
  async function reviewed(ctx: ToolContext, result: ToolResult, by: Decider | undefined): Promise<ToolResult> {
    switch (result.status) {
      case "ok":
        return await succeeded(ctx, result);
      case "error":
      case "timeout":
        return await failed(ctx, result);
      case "denied":
        return await refused(ctx, result, by);
      default:
        return result;
    }
  }

  async function succeeded(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
    const answers = await hooks.ask("PostToolUse", ctx, {
      point: "tool",
      of: ctx.name,
      call: ctx.call.id,
      told: () => ({ ...toldOf(ctx), tool_response: responseOf(result, dialect), ...timeOf(ctx) }),
    });
    hooks.endOf("PostToolUse", ctx, answers);
    const output = outputOf(ctx, answers);
    const silent = answers.some(({ suppressOutput }) => suppressOutput);
    return added(
      { ...result, ...(output !== undefined && { parts: partsOf(output) }), ...(silent && { silent }) },
      [blockOf(answers), ...contextOf(answers)],
    );
  }

  /** What the model is told instead. */
  function outputOf({ name }: ToolContext, answers: Answers): unknown {
    const taken = (output: unknown) => output === "" && !dialect.takesEmpty ? undefined : output;
    const output = lastOf(answers, dialect, ({ specific }) => taken(specific.updatedToolOutput));
    if (output !== undefined || !name.startsWith("mcp__")) return output;
    return lastOf(answers, dialect, ({ specific }) => taken(specific.updatedMCPToolOutput));
  }

  async function failed(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
    const answers = await hooks.ask("PostToolUseFailure", ctx, {
      point: "tool",
      of: ctx.name,
      call: ctx.call.id,
      told: () => ({ ...toldOf(ctx), error: textOf(result), is_interrupt: false, ...timeOf(ctx) }),
    });
    hooks.endOf("PostToolUseFailure", ctx, answers);
    const blocked = blockOf(answers);
    const replaces = dialect.replacesFailures && !works.get(ctx.call)?.threw;
    if (blocked === undefined || !replaces) return added(result, [blocked, ...contextOf(answers)]);
    return added({ ...result, parts: partsOf(blocked) }, contextOf(answers));
  }

  async function refused(ctx: ToolContext, result: ToolResult, by: Decider | undefined): Promise<ToolResult> {
    if (by !== "policy" || judged(ctx.call)?.decision === "deny") return result;
    const reason = textOf(result);
    const answers = await hooks.ask("PermissionDenied", ctx, {
      point: "tool",
      of: ctx.name,
      call: ctx.call.id,
      told: () => ({ ...toldOf(ctx), reason, denial_reason: reason }),
    });
    return answers.some(({ specific }) => specific.retry) ? added(result, [mayRetry]) : result;
  }

  function timeOf({ call }: ToolContext) {
    const work = works.get(call);
    return work && { duration_ms: Math.round(work.ms) };
  }

  return {
    async tool(ctx, next) {
      if (!concerned(ctx.name)) return await next();
      const { decision, reason, input } = await judge(ctx, "tool");
      let by: Decider | undefined;
      const emit = (event: Event) => {
        if (event.type === "approval.decided") by = event.by;
        ctx.emit(event);
      };
      const make = async () => {
        if (decision === "deny") return denied(reason ?? "Blocked by a hook.");
        const entered = await entering(hooks, ctx, input);
        return "type" in entered ? entered : await next({ ...entered, emit });
      };
      const result = await make();
      const told = { ...ctx, input: result.input ?? input };
      const after = await reviewed(told, added(result, judged(ctx.call)?.context ?? []), by);
      await leaving(hooks, told, after);
      if (ofEvery) {
        memory.inputs.update(ctx, (inputs) => ({ ...inputs, [ctx.call.id]: told.input }));
      }
      return after;
    },
    async execute(ctx, next) {
      if (!concerned(ctx.tool.name)) return await next();
      const start = performance.now();
      let threw = true;
      try {
        const result = await next();
        threw = false;
        return result;
      } finally {
        works.set(ctx.call, { ms: performance.now() - start, threw });
      }
    },
  };
}

/** A result that says more to the model. */
function added(result: ToolResult, said: readonly (string | undefined)[]): ToolResult {
  const context = said.filter((text) => text !== undefined);
  return context.length === 0 ? result : { ...result, context: [...result.context ?? [], ...context] };
}
