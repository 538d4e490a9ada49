/**
 * The events `classic.*` of mods: hooks with the inputs of settings hooks, such as `classic.PreToolUse`.
 *
 * @module
 */
import type { ClassicEvents, ClassicPort } from "../options.ts";
import type { Data } from "../patterns.ts";
import type { At, ModRun } from "../run.ts";
import { transcriptFile } from "../../kit/adapter.ts";
import { addContext, allowAsk, errorOf, replaceText } from "../../kit/calls.ts";
import {
  ask,
  type Call,
  continueWith,
  declined,
  denied,
  type Point,
  type Scope,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../../mod.ts";
export type { ClassicEvents } from "../options.ts";

/** The events that occur on a server. */
const names = [
  ...["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionStart"],
  ...["SessionEnd", "PreCompact", "PostCompact"],
];

/** Raises an event with the fields that all have. Returns the answer; an empty one without hooks. */
async function raise(run: ModRun, at: At, name: string, fields: Data): Promise<Data> {
  const event = `classic.${name}`;
  if (!run.has(event)) return {};
  const { ctx: { run: { session, id, parent } } } = at;
  const common = {
    session_id: session,
    transcript_path: transcriptFile(at.ctx.run) ?? "",
    cwd: run.options.cwd ?? "/",
    hook_event_name: name,
    ...(parent && { agent_id: id }),
  };
  const answer = await run.raise(
    event,
    name === "PreToolUse" ? fields : { ...common, ...fields },
    () => Promise.resolve({}),
    at,
  );
  if (answer.preventContinuation === true) {
    at.ctx.run.end(String(answer.stopReason ?? `A mod stopped the run at ${event}.`));
  }
  return answer;
}

function textsOf({ additionalContext }: Data): readonly string[] {
  return (Array.isArray(additionalContext) ? additionalContext : [additionalContext]).filter((text) =>
    typeof text === "string"
  );
}

/** Returns the reason of a block; undefined without one. */
function blockOf({ block }: Data): string | undefined {
  return block === undefined || block === false || block === null ? undefined : String(block);
}

/** Returns the reason with which a wrong decision about a call denies it: a guard's answer that cannot be read allows nothing. */
function denialOf({ deny, ask: question }: Data): string | undefined {
  if (deny !== undefined) return typeof deny === "string" ? deny : "A mod denied it.";
  return question !== undefined && typeof question !== "string" ? "A mod asked without a text." : undefined;
}

/** The decisions of `classic.PreToolUse` about calls that were not denied. */
const decisions = /* @__PURE__ */ new WeakMap<Call, { readonly ask?: string; readonly allow?: boolean }>();

async function call(
  run: ModRun,
  ctx: ToolContext,
  e: Data,
  execute: (e: Data) => Promise<ToolResult>,
): Promise<ToolResult> {
  const at: At = { ctx, point: "tool" };
  const before = await raise(run, at, "PreToolUse", e);
  const denial = denialOf(before) ?? blockOf(before);
  if (denial !== undefined) return addContext(denied(denial), textsOf(before));
  const { ask: question, allow } = before;
  decisions.set(ctx.call, { ...(typeof question === "string" && { ask: question }), ...(allow === true && { allow }) });
  const { tool, tool_use_id } = e;
  const input = typeof before.updatedInput === "object" ? before.updatedInput : undefined;
  const result = await execute(input ? { ...input, tool, tool_use_id } : e);
  if (result.status === "denied") return addContext(result, textsOf(before));
  const fields = { tool_name: ctx.name, tool_input: input ?? ctx.input, tool_use_id };
  const after = result.status === "ok"
    ? await raise(run, at, "PostToolUse", { ...fields, tool_response: textOf(result) })
    : await raise(run, at, "PostToolUseFailure", { ...fields, error: errorOf(result) });
  const { updatedToolOutput: output } = after;
  const changed = output === undefined
    ? result
    : { ...result, parts: replaceText(result.parts, typeof output === "string" ? output : JSON.stringify(output)) };
  return addContext(changed, [...textsOf(before), ...textsOf(after), blockOf(after)]);
}

function at(ctx: Scope, point: Point): At {
  return { ctx, point };
}

const port: ClassicPort = {
  events: names.map((name) => `classic.${name}`),
  async submit(run, at, e) {
    const answer = await raise(run, at, "UserPromptSubmit", { prompt: e.text });
    const block = blockOf(answer);
    if (block !== undefined) return { drop: block };
    const texts = textsOf(answer);
    if (texts.length === 0) return undefined;
    return { ...e, context: [...Array.isArray(e.context) ? e.context : [], ...texts] };
  },
  call,
  approve({ call }, inner) {
    const { ask: question, allow } = decisions.get(call) ?? {};
    if (question !== undefined && inner.type === "allow") return ask(question);
    return allow ? allowAsk(inner) : inner;
  },
  async stop(run, ctx, next) {
    const name = ctx.run.parent ? "SubagentStop" : "Stop";
    const fields = { stop_hook_active: ctx.continuations > 0, last_assistant_message: textOf(ctx.message) };
    const block = blockOf(await raise(run, at(ctx, "stop"), name, fields));
    return block === undefined ? await next() : continueWith(block);
  },
  async start(run, ctx, source) {
    return textsOf(await raise(run, at(ctx, "session"), "SessionStart", { source }));
  },
  async end(run, at) {
    await raise(run, at, "SessionEnd", { reason: "other" });
  },
  async compact(run, ctx, next) {
    const trigger = ctx.trigger === "manual" ? "manual" : "auto";
    const place = at(ctx, "compact");
    const block = blockOf(
      await raise(run, place, "PreCompact", { trigger, custom_instructions: ctx.instructions || null }),
    );
    if (block !== undefined) return declined(block);
    const compaction = await next();
    if (compaction.type === "declined") return compaction;
    const added = compaction.messages.filter((message) => !ctx.transcript.includes(message));
    const compact_summary = added.map((message) => message.role === "tool" ? "" : textOf(message)).join("\n").trim();
    await raise(run, place, "PostCompact", { trigger, compact_summary });
    return compaction;
  },
};

/**
 * Gives mods the events `classic.*`, as the option `classic` of `mods()`: `UserPromptSubmit`, `PreToolUse`, `PostToolUse`, `PostToolUseFailure`, `Stop`,
 * `SubagentStop`, `SessionStart`, `SessionEnd`, `PreCompact` and `PostCompact`. They run inside the hooks of the mods' own events. Hooks of settings files run
 * with `claude_hooks()` and `command_hooks()`.
 *
 * Hooks answer with `block` (a reason), `preventContinuation` and `stopReason`, `additionalContext` and `updatedToolOutput`; at `PreToolUse` with `deny`, `ask`,
 * `allow: true` and `updatedInput`. A `deny` or an `ask` that is no text denies.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { mods, type On } from "@jizai/jizai/middleware/mods";
 * import { classic } from "@jizai/jizai/middleware/mods/classic";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const module = () => ({
 *   register: (on: On) => on("classic.UserPromptSubmit", () => ({ block: "Not today." })),
 * });
 * const use = [mods({ name: "closed", module }, { classic })];
 * const { status, reason } = await agent({ model: scripted(), use }).run("Hi").result;
 * assertEquals([status, reason], ["cancelled", "Not today."]);
 * ```
 */
export const classic: ClassicEvents = { "~events": port };
