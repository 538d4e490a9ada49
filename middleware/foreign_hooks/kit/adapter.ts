/**
 * The parts of every adapter: the check of its options, the points that its hooks need, its warnings, and facts about the run.
 *
 * @module
 */
import type { Middleware, Point, Run, Scope } from "../../../mod.ts";
import { points } from "../../../src/core/kit.ts";

// The options of an adapter, and the points that its hooks need.

/** Throws a `TypeError` if `adapterOptions`, the first argument of a factory, has an option and no member of its own: it was to be the second argument. */
export function expectNoOption(
  subject: string,
  adapterOptions: object,
  optionNames: readonly string[],
  options: readonly string[],
): void {
  const misplaced = Object.keys(adapterOptions).find((name) => options.includes(name) && !optionNames.includes(name));
  if (misplaced === undefined || optionNames.some((name) => name in adapterOptions)) return;
  throw new TypeError(`${subject}: "${misplaced}" is an option; expected it in the second argument`);
}

/** For each point, the names of the hooks that need it. */
export type Needs<Name extends string> = Readonly<Partial<Record<Point, readonly Name[]>>>;

/** Returns `middleware` without the hooks at points that no configured hook needs. */
export function atNeededPoints<Name extends string>(
  { name, inherit, ...hooks }: Middleware & { readonly name: string; readonly inherit: boolean },
  needs: Needs<Name>,
  has: (name: Name) => boolean,
): Middleware {
  const used = points.filter((point) => needs[point]?.some(has));
  return { name, inherit, ...Object.fromEntries(used.map((point) => [point, hooks[point]])) };
}

// Warnings about hooks that fail, that are skipped, or that never run.

/** The place and the cause of a hook's failure. */
interface HookFailure {
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

// Facts about a run that hooks of every system receive.

/** Returns the run that has no parent. */
export function outermostRun(run: Run): Run {
  return run.parent ? outermostRun(run.parent) : run;
}

/** Returns the file that `transcript()` writes for the run; undefined without one. */
export function transcriptFile({ state }: Run): string | undefined {
  const path = state.get("transcript.path");
  return typeof path === "string" && path !== "" ? path : undefined;
}

/** Returns the working directory of the run, as `workspace()` keeps it, as a path beneath `root`. */
export function workingDirectory({ state }: Run, root: string): string {
  const place = state.get("workspace");
  const inside = typeof place === "object" && place !== null && "cwd" in place ? String(place.cwd) : ".";
  return absolutePath(root, inside);
}

/** Turns a path of the workspace into an absolute path beneath `root`. */
export function absolutePath(root: string, path: string): string {
  if (path.startsWith("/")) return path;
  const inside = path.replace(/^\.(\/|$)/, "");
  return inside === "" ? root : `${root.replace(/\/$/, "")}/${inside}`;
}
