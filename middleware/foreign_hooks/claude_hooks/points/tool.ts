/**
 * The `tool` and `execute` points: PreToolUse, PostToolUse, PostToolUseFailure, PermissionDenied, and the end of a batch.
 *
 * @module
 */
import {
  type Call,
  denied,
  type Event,
  type Middleware,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../../mod.ts";
import type { Decider } from "../../../../src/core/engine.ts";
import { jsonThatRuns } from "../../../../src/core/kit.ts";
import { addContext, errorOf } from "../../kit/call.ts";
import { type Answers, blockOf, contextOf, lastOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import { callFields, type Judge } from "../permissions/pre_tool_use.ts";
import { completeBatch } from "./batch.ts";
import { partsOf, responseOf } from "./result.ts";
import { enterWorktree, leaveWorktree } from "./worktree.ts";

/** Says whether a denial, by its reason, was made by a classifier and not by a rule. */
export type IsClassifierDenial = (
  reason: string,
  call: { readonly name: string; readonly input: unknown },
) => boolean | Promise<boolean>;

/** Creates the hooks at `tool` and `execute`. */
export function toolHooks(
  hooks: Hooks,
  judge: Judge,
  isClassifierDenial: IsClassifierDenial,
): Pick<Middleware, "tool" | "execute"> {
  const { memory } = hooks;
  /** The milliseconds that the last execution of a call took. */
  const durations = new WeakMap<Call, number>();
  const review = reviewOf(hooks, durations);
  const ofEvery = hooks.has("PostToolBatch");

  function isConcerned(name: string): boolean {
    return ofEvery || /^(Enter|Exit)Worktree$/.test(name) ||
      hooks.hasFor(name, "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied");
  }

  /** Asks PermissionDenied about a denial that no hook and no person made. */
  async function refused(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
    const reason = textOf(result);
    if (!hooks.dialect.reportsRules && !await isClassifierDenial(reason, ctx)) return result;
    const fields = () => ({ ...callFields(ctx), reason, denial_reason: reason });
    const answers = await hooks.ask("PermissionDenied", ctx, fields);
    const mayRetry = answers.some(({ specific }) => specific.retry);
    return addContext(result, [mayRetry ? "A hook says that you may try the denied call again." : undefined]);
  }

  async function reviewed(ctx: ToolContext, result: ToolResult, by: Decider | undefined): Promise<ToolResult> {
    if (result.status === "ok") return await review.success(ctx, result);
    if (result.status === "error" || result.status === "timeout") return await review.failure(ctx, result);
    const isPolicy = by === "policy" && judge.of(ctx.call)?.decision !== "deny";
    return result.status === "denied" && isPolicy ? await refused(ctx, result) : result;
  }

  return {
    async tool(ctx, next) {
      const runs = isConcerned(ctx.name) ? await jsonThatRuns(ctx) : undefined;
      if (!runs) return await next();
      const judged = await judge.enter({ ...ctx, input: runs.json }, memory.batch.get(ctx).ids.length);
      const { decision, reason, input, updated } = judged;
      let by: Decider | undefined;
      const emit = (event: Event) => {
        if (event.type === "approval.decided") by = event.by;
        ctx.emit(event);
      };
      const call = async () => {
        if (decision === "deny") return denied(reason ?? "Blocked by a hook.");
        const entered = await enterWorktree(hooks, ctx, updated ?? ctx.input);
        return "type" in entered ? entered : await next({ ...entered, emit });
      };
      const result = await call();
      judge.leave(ctx);
      const made = { ...ctx, input: result.input ?? input };
      const after = await reviewed(made, addContext(result, judge.of(ctx.call)?.context ?? []), by);
      await leaveWorktree(hooks, made, after);
      return ofEvery ? await completeBatch(hooks, made, after) : after;
    },
    async execute(ctx, next) {
      const start = performance.now();
      try {
        return await next();
      } finally {
        durations.set(ctx.call, performance.now() - start);
      }
    },
  };
}

/** Asks PostToolUse and PostToolUseFailure about results. */
function reviewOf(hooks: Hooks, durations: WeakMap<Call, number>) {
  const { dialect } = hooks;

  function timeOf({ call }: ToolContext) {
    const duration = durations.get(call);
    return duration !== undefined && { duration_ms: Math.round(duration) };
  }

  /** Returns the output that replaces a result. */
  function outputOf({ name }: ToolContext, answers: Answers): unknown {
    const taken = (output: unknown) => output === "" && !dialect.takesEmpty ? undefined : output;
    const output = lastOf(answers, dialect, ({ specific }) => taken(specific.updatedToolOutput));
    if (output !== undefined || !name.startsWith("mcp__")) return output;
    return lastOf(answers, dialect, ({ specific }) => taken(specific.updatedMCPToolOutput));
  }

  return {
    async success(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
      const fields = () => ({
        ...callFields(ctx),
        tool_response: responseOf(result, dialect.response),
        ...timeOf(ctx),
      });
      const answers = await hooks.ask("PostToolUse", ctx, fields);
      hooks.endOf("PostToolUse", ctx, answers);
      const output = outputOf(ctx, answers);
      const isSilent = dialect.suppresses && answers.some(({ suppressOutput }) => suppressOutput);
      const replaced = output === undefined ? result : { ...result, parts: partsOf(output) };
      return addContext(isSilent ? { ...replaced, silent: true } : replaced, [blockOf(answers), ...contextOf(answers)]);
    },
    async failure(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
      const error = errorOf(result);
      const fields = () => ({ ...callFields(ctx), error, is_interrupt: false, ...timeOf(ctx) });
      const answers = await hooks.ask("PostToolUseFailure", ctx, fields);
      hooks.endOf("PostToolUseFailure", ctx, answers);
      const blocked = blockOf(answers);
      const isReplaced = blocked !== undefined && dialect.replacesFailures && result.error === undefined;
      if (!isReplaced) return addContext(result, [blocked, ...contextOf(answers)]);
      return addContext({ ...result, parts: partsOf(blocked) }, contextOf(answers));
    },
  };
}
