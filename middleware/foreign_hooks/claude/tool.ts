/**
 * The `tool` and `execute` points: PreToolUse, PostToolUse, PostToolUseFailure, PermissionDenied, and the end of a batch.
 *
 * @module
 */
import * as z from "zod";
import { callFields, type Judge } from "./approval.ts";
import type { Dialect } from "./dialect.ts";
import type { BatchCall, Hooks } from "./hooks.ts";
import { type Answers, blockOf, contextOf, lastOf } from "./outputs.ts";
import { objectOf, parseJson } from "../kit/answers.ts";
import { addContext, errorOf, textPart } from "../kit/calls.ts";
import {
  type Call,
  callsOf,
  type ContentPart,
  denied,
  type Event,
  failed,
  type Middleware,
  type Scope,
  textOf,
  type ToolContext,
  type ToolResult,
  type TurnResult,
} from "../../../mod.ts";
import type { Decider } from "../../../src/core/engine.ts";
import { jsonThatRuns } from "../../../src/core/kit.ts";

// Results of tools, as hooks receive and return them.

/** Returns a result as `tool_response`: its text, the JSON in its text, or blocks of content if it has more than text. */
function responseOf(
  result: { readonly parts: readonly ContentPart[] },
  response: Dialect["response"],
): unknown {
  if (result.parts.some(({ type }) => type !== "text")) return result.parts.map(contentBlockOf);
  const text = textOf(result);
  return response === "text" || !/^\s*[[{]/.test(text) ? text : parseJson(text) ?? text;
}

function contentBlockOf(part: ContentPart): unknown {
  if (part.type === "text") return part;
  const { mediaType: mimeType, data, url: uri } = part;
  return data === undefined ? { type: "resource_link", uri, mimeType } : { type: "image", data, mimeType };
}

const block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() })
    .transform(({ data, mimeType: mediaType }) => ({ type: "media" as const, data, mediaType })),
]);
const blocks = z.array(block).min(1);
const content = z.union([blocks, z.object({ content: blocks }).transform(({ content }) => content)]);

/** Returns the parts of an output that a hook returned: a text, blocks of content, or another value as JSON. */
function partsOf(output: unknown): readonly ContentPart[] {
  if (typeof output === "string") return [textPart(output)];
  const parsed = content.safeParse(output);
  return parsed.success ? parsed.data : [textPart(JSON.stringify(output) ?? "")];
}

// Worktrees: hooks create and remove them for the tools `EnterWorktree` and `ExitWorktree`.

/** Asks WorktreeCreate for a call of `EnterWorktree`. Returns the input with the path, or a failed result. */
async function enterWorktree(
  hooks: Hooks,
  ctx: ToolContext,
  input: unknown,
): Promise<{ readonly input: unknown } | ToolResult> {
  if (ctx.name !== "EnterWorktree" || !hooks.has("WorktreeCreate")) return { input };
  const fields = objectOf(input);
  const name = typeof fields.name === "string" ? fields.name : ctx.call.id;
  const answers = await hooks.ask("WorktreeCreate", ctx, () => ({ name }));
  const path = lastOf(answers, hooks.dialect, ({ specific }) => specific.worktreePath);
  const problem = blockOf(answers) ?? (path === undefined ? "No hook returned its path." : undefined);
  if (path === undefined || problem !== undefined) return failed(`Cannot create the worktree ${name}: ${problem}`);
  hooks.memory.worktree.set(ctx, path);
  return { input: { ...fields, path } };
}

/** Asks WorktreeRemove after a call of `ExitWorktree`. */
async function leaveWorktree({ ask, memory }: Hooks, ctx: ToolContext, { status }: ToolResult): Promise<void> {
  const worktree_path = memory.worktree.get(ctx);
  const isKept = objectOf(ctx.input).action === "keep";
  if (ctx.name !== "ExitWorktree" || status !== "ok" || worktree_path === "" || isKept) return;
  memory.worktree.set(ctx, "");
  await ask("WorktreeRemove", ctx, () => ({ worktree_path }));
}

// `PostToolBatch`: asked when all calls of a response have come out.

/** Records a call that has come out. After the last one, asks PostToolBatch and adds its context to the result. */
async function completeBatch(hooks: Hooks, ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
  const { call: { id }, name, input } = ctx;
  const call = { tool_name: name, tool_input: input, tool_use_id: id, tool_response: textOf(result) };
  const batch = hooks.memory.batch.update(ctx, (batch) => ({ ...batch, calls: { ...batch.calls, [id]: call } }));
  const calls = batch.ids.flatMap((id) => batch.calls[id] ?? []);
  return calls.length < batch.ids.length ? result : addContext(result, await askBatch(hooks, ctx, calls));
}

/** Asks PostToolBatch about a batch of which another middleware answered a call. The next request has its context. */
export async function finishBatch(hooks: Hooks, ctx: Scope, { response, results }: TurnResult): Promise<void> {
  const { calls, asked } = hooks.memory.batch.get(ctx);
  if (results.length === 0 || asked) return;
  const inputs = Object.fromEntries(callsOf(response).map(({ id, input }) => [id, input]));
  const made = results.map(({ name, callId, parts }) => ({
    ...{ tool_name: name, tool_input: inputs[callId], tool_use_id: callId },
    ...calls[callId],
    tool_response: textOf({ parts }),
  }));
  hooks.addLater(ctx, await askBatch(hooks, ctx, made));
}

async function askBatch(hooks: Hooks, ctx: Scope, tool_calls: BatchCall[]): Promise<readonly string[]> {
  hooks.memory.batch.update(ctx, (batch) => ({ ...batch, asked: true }));
  const answers = await hooks.ask("PostToolBatch", ctx, () => ({ tool_calls }));
  const blocked = blockOf(answers);
  if (!hooks.endOf("PostToolBatch", ctx, answers) && blocked !== undefined) hooks.end(ctx, blocked);
  return contextOf(answers);
}

// The hooks at `tool` and `execute`: a call comes in, runs, and its result is reviewed.

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
    const accepted = (output: unknown) => output === "" && !dialect.takesEmpty ? undefined : output;
    const output = lastOf(answers, dialect, ({ specific }) => accepted(specific.updatedToolOutput));
    if (output !== undefined || !name.startsWith("mcp__")) return output;
    return lastOf(answers, dialect, ({ specific }) => accepted(specific.updatedMCPToolOutput));
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
