/**
 * Makes hooks of other systems from middleware.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { type Command, commandOf } from "./command.ts";
import { onionsOf } from "./onions.ts";
import { type Rpc, rpcOf } from "./rpc.ts";
import type { OnError } from "./runs.ts";

export type { Command } from "./command.ts";
export type { Rpc, RpcAnswer } from "./rpc.ts";
export type { OnError } from "./runs.ts";
export type { CommandOutput } from "./told.ts";

/** What is said of exported middleware. */
export interface ExportOptions {
  /** What it calls itself. Default: "jizai". */
  readonly name?: string;
  /** Told of what went wrong: the other system hears no more than that something did. Default: nobody. */
  readonly onError?: OnError;
}

/** Middleware for other systems. */
export interface Exported {
  /** A hook of PicoClaw: answers a message of JSON-RPC. */
  readonly rpc: Rpc;
  /** A hook of Claude: answers what a command is told. It is a `HookCallback` as well. */
  readonly command: Command;
}

/**
 * Makes hooks of other systems from middleware, the first of which is the outermost. What they do there is what they do here, as far as there is a word for it:
 *
 * | point | PicoClaw | Claude |
 * |---|---|---|
 * | `model` | `before_llm`, `after_llm` | |
 * | `tool` | `before_tool`, `after_tool` | `PreToolUse`, `PostToolUse`, `PostToolUseFailure` |
 * | `approval` | `approve_tool` | `PreToolUse`, `PermissionRequest` |
 * | `prompt` | | `UserPromptSubmit` |
 * | `session` | | `SessionStart` |
 * | `stop` | | `Stop` |
 *
 * At other points nothing happens. For PicoClaw a hook is asked once for each request and each call, and goes on when it is told what came of it. A command is
 * another process for every event: what a hook does at `tool` before `next()` it does twice, and it keeps nothing.
 *
 * Where there is no word, nothing passes: a question that no guard has answered is a denial for PicoClaw, and so is an input that a guard has changed; for Claude
 * a prompt, or a tool, that is another one is refused with what it would have been, and an answer in place of a tool denies it with that answer. Where a hook
 * answers in place of the model, PicoClaw asks it, and is told that it had answered so. A hook at `approval` that fails denies; of any other the system hears
 * that it failed, and may go on without it: what has to hold stands at `approval`.
 *
 * Throws a `TypeError` where the middleware hooks none of these points.
 *
 * ```ts
 * import { export_hooks } from "@jizai/jizai/middleware/export_hooks";
 * import { permissions } from "@jizai/jizai/middleware/permissions";
 * import { assertEquals } from "@std/assert";
 *
 * const { rpc, command } = export_hooks(permissions({ deny: ["delete_*"] }));
 *
 * const asked = { jsonrpc: "2.0", id: 1, method: "hook.approve_tool", params: { tool: "delete_file", arguments: {} } };
 * assertEquals((await rpc(asked))?.result, { approved: false, reason: "delete_file is not permitted here." });
 *
 * assertEquals(await command({ hook_event_name: "PreToolUse", tool_name: "delete_file", tool_input: {} }), {
 *   hookSpecificOutput: {
 *     hookEventName: "PreToolUse",
 *     permissionDecision: "deny",
 *     permissionDecisionReason: "delete_file is not permitted here.",
 *   },
 * });
 * ```
 */
export function export_hooks(
  use: Middleware | readonly Middleware[],
  { name = "jizai", onError = () => {} }: ExportOptions = {},
): Exported {
  const onions = onionsOf([use].flat());
  return { rpc: rpcOf(name, onions, onError), command: commandOf(onions, onError) };
}
