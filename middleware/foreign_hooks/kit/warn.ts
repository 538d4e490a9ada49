/**
 * Warnings about foreign hooks.
 *
 * @module
 */
import type { Middleware, Point, Scope } from "../../../mod.ts";

/** The place and the cause of a hook's failure. */
export interface HookFailure {
  readonly middleware: string;
  readonly point: Point;
  readonly message: string;
  /** The error that was thrown. It goes to `onError`; clients receive only its id. */
  readonly error?: unknown;
}

/** Emits a warning that a hook failed or that a part of its answer is ignored. */
export function warnFailed({ run, emit }: Scope, { error, ...failure }: HookFailure): void {
  const id = error === undefined ? undefined : run.report(error);
  emit({ type: "warning", code: "hook.failed", ...failure, ...(id !== undefined && { error: id }) });
}

/** Emits a warning that a hook does not run. */
export function warnSkipped({ emit }: Scope, middleware: string, message: string, point: Point = "session"): void {
  emit({ type: "warning", code: "hook.skipped", message, middleware, point });
}

/** Adds warnings about the hooks that never run to a middleware. They are emitted when a run begins. */
export function warnSilent(middleware: Middleware, silent: readonly string[]): Middleware {
  if (silent.length === 0) return middleware;
  const { name = "hooks" } = middleware;
  return {
    ...middleware,
    async session(ctx, next) {
      for (const message of ctx.run.parent || ctx.resumed ? [] : silent) warnSkipped(ctx, name, message);
      return await (middleware.session ? middleware.session(ctx, next) : next());
    },
  };
}

/** Returns the message of an error, as thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
