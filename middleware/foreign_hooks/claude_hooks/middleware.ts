/**
 * Hooks as a middleware: at the points of those events that have any, and at no other.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { approval } from "./approval.ts";
import { compact } from "./compact.ts";
import type { Configured } from "./config.ts";
import { hooksOf, type HooksOptions } from "./hooks.ts";
import type { CanUseTool } from "./permission_request.ts";
import { judging } from "./pre_tool_use.ts";
import { prompt } from "./prompt.ts";
import { session, warned } from "./session.ts";
import { error, stop } from "./stop.ts";
import { tool } from "./tool.ts";
import { turn } from "./turn.ts";

/** Whose hooks they are, and who else is asked. */
export interface MiddlewareOptions extends HooksOptions {
  /** Asked beside the hooks of `PermissionRequest`. */
  readonly canUseTool?: CanUseTool | undefined;
}

/** The middleware that asks the hooks of a configuration. Agents beneath have it too. */
export function middlewareOf(
  { definitions, silent }: Configured,
  { canUseTool, ...options }: MiddlewareOptions,
): Middleware {
  const hooks = hooksOf(definitions, options);
  const { has } = hooks;
  const asked = judging(hooks);
  const guards = has("PreToolUse", "PermissionRequest") || canUseTool;
  const reviews = has("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "PostToolBatch");
  return warned({
    name: options.name,
    inherit: true,
    ...session(hooks),
    ...prompt(hooks),
    ...turn(hooks),
    ...(reviews || has("WorktreeCreate", "WorktreeRemove") ? tool(hooks, asked) : {}),
    ...(guards && approval(hooks, asked, canUseTool)),
    ...(has("Stop", "SubagentStop") && stop(hooks)),
    ...(has("PreCompact", "PostCompact", "SessionStart") && compact(hooks)),
    ...(has("StopFailure") && error(hooks)),
  }, silent);
}
