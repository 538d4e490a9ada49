/**
 * Assembles the middleware: hooks at the points that the configured events need.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { separateCalls } from "../kit/groups.ts";
import { warnSilent } from "../kit/warn.ts";
import { type Hooks, hooksOf } from "./ask/hooks.ts";
import type { Configured } from "./config/config.ts";
import type { CanUseTool } from "./permissions/permission_request.ts";
import { judgeOf } from "./permissions/pre_tool_use.ts";
import { approvalHook } from "./points/approval.ts";
import { compactHook } from "./points/compact.ts";
import { promptHooks } from "./points/prompt.ts";
import { sessionHook } from "./points/session.ts";
import { errorHook, stopHook } from "./points/stop.ts";
import { type IsClassifierDenial, toolHooks } from "./points/tool.ts";
import { turnHooks } from "./points/turn.ts";

/** The parts of a middleware besides its hooks. */
export interface HookMiddlewareOptions extends Pick<Hooks, "name" | "dialect" | "cwd"> {
  readonly canUseTool?: CanUseTool | undefined;
  readonly isClassifierDenial?: IsClassifierDenial | undefined;
  /** Whether each call runs alone, with its hooks around it. */
  readonly groups: boolean;
}

/** Creates a middleware that runs the hooks of a configuration. Subagents inherit it. */
export function hookMiddleware(
  { definitions, silent }: Configured,
  { canUseTool, isClassifierDenial = () => false, groups, ...options }: HookMiddlewareOptions,
): Middleware {
  const hooks = hooksOf(definitions, options);
  const { has } = hooks;
  const judge = judgeOf(hooks);
  const guards = has("PreToolUse", "PermissionRequest") || canUseTool;
  const reviews = has("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "PostToolBatch");
  return warnSilent({
    name: options.name,
    inherit: true,
    ...(groups && (guards || reviews) && separateCalls()),
    ...sessionHook(hooks),
    ...promptHooks(hooks),
    ...turnHooks(hooks),
    ...((reviews || has("WorktreeCreate", "WorktreeRemove")) && toolHooks(hooks, judge, isClassifierDenial)),
    ...(guards && approvalHook(hooks, judge, canUseTool)),
    ...(has("Stop", "SubagentStop") && stopHook(hooks)),
    ...(has("PreCompact", "PostCompact", "SessionStart") && compactHook(hooks)),
    ...(has("StopFailure") && errorHook(hooks)),
  }, silent);
}
