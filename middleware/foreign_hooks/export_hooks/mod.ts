/**
 * Exports middleware as hooks of other systems.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { expectNames } from "../../../src/core/kit.ts";
import { type Command, commandOf } from "./command.ts";
import { onionsOf } from "./onions.ts";
import { type Rpc, rpcOf } from "./rpc.ts";
import type { OnError } from "./runs.ts";

export type { Command } from "./command.ts";
export type { CommandOutput } from "./output.ts";
export type { Rpc, RpcAnswer } from "./rpc.ts";
export type { OnError } from "./runs.ts";

/** Options of `export_hooks()`. */
export interface ExportOptions {
  /** The name of the hook. Default: "jizai". */
  readonly name?: string;
  /** Receives errors. The other system receives only the fact of a failure. Default: errors are dropped. */
  readonly onError?: OnError;
}

/** Middleware as hooks of other systems. */
export interface Exported {
  /** A hook of PicoClaw: answers a message of JSON-RPC. */
  readonly rpc: Rpc;
  /** A hook of Claude: returns the output of a command. It is a `HookCallback` as well. */
  readonly command: Command;
}

/**
 * Exports middleware, the outermost first, as hooks of other systems. The hooks run at these points:
 *
 * | point | PicoClaw | Claude |
 * |---|---|---|
 * | `model` | `before_llm`, `after_llm` | |
 * | `tool` | `before_tool`, `after_tool` | `PreToolUse`, `PostToolUse`, `PostToolUseFailure` |
 * | `approval` | `approve_tool` | `PreToolUse`, `PermissionRequest` |
 * | `input`, `prompt` | | `UserPromptSubmit` |
 * | `session` | | `SessionStart` |
 * | `stop` | | `Stop` |
 *
 * For PicoClaw, a hook runs once per request and per call: it waits inside `next()` until the result arrives. For Claude, every event is another process:
 * a hook at `tool` runs its code before `next()` twice, and state is lost between events.
 *
 * Differences from the behaviour of the middleware in Jizai. A decision that the other system cannot express is a refusal:
 *
 * - PicoClaw: a question of a guard, and an input that a guard has changed, deny the call. A hook that answers in place of the model replaces the response;
 *   the model is asked all the same.
 * - Claude: a changed prompt, or another tool, is refused with an explanation. An answer in place of a tool denies the call with that answer.
 * - A hook at `approval` that fails denies. Any other failure is reported to the other system, which may continue: put rules that must hold at `approval`.
 * - Hooks at other points do not run.
 *
 * Throws a `TypeError` if the middleware has no hook at one of these points.
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
  options: ExportOptions = {},
): Exported {
  expectNames("Cannot create export_hooks()", options, ["name", "onError"]);
  const { name = "jizai", onError = () => {} } = options;
  const onions = onionsOf([use].flat());
  return { rpc: rpcOf(name, onions, onError), command: commandOf(onions, onError) };
}
