/**
 * Assembles the middleware: hooks at the points that the configured events need.
 *
 * @module
 */
import { approvalHook, type CanUseTool, judgeOf } from "./approval.ts";
import type { Configured } from "./config.ts";
import { hooksOf, type HooksOptions } from "./hooks.ts";
import { compactHook, errorHook, promptHooks, sessionHook, stopHook } from "./session.ts";
import { type IsClassifierDenial, toolHooks } from "./tool.ts";
import { turnHooks } from "./turn.ts";
import { warnSilent } from "../kit/adapter.ts";
import { separateCalls } from "../kit/calls.ts";
import type { Middleware } from "../../../mod.ts";

/** The parts of a middleware besides its hooks. */
interface HookMiddlewareOptions extends HooksOptions {
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
