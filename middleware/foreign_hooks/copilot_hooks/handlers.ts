/**
 * The handlers, one for each hook, and how one is asked.
 *
 * @module
 */
import type { Point, Run, Scope } from "../../../mod.ts";
import type { HookHandler, HookInput, SessionHooks } from "./hooks.ts";
import { type HookName, hookNames, type Outputs, read } from "./outputs.ts";

/** How a hook is told the time. */
export type Time = number | Date;

/** What the hook `K` is given, beside what every hook is. */
export type Given<K extends HookName> = Omit<
  Parameters<NonNullable<SessionHooks<Time>[K]>>[0],
  keyof HookInput
>;

/** The handlers. */
export interface Handlers {
  /** What is registered as a hook, and is none. */
  readonly unknown: readonly string[];
  /** Whether one of these hooks has a handler. */
  has(...names: readonly HookName[]): boolean;
  /** Asks the handler of a hook; a hook without one, one that fails and one that says nothing give nothing. */
  ask<K extends HookName>(name: K, ctx: Scope, point: Point, given: Given<K>): Promise<Outputs[K]>;
}

/** The handlers of several registrations: of each hook the last one. Throws a `TypeError` where one is no function. */
export function handlersOf(
  registered: readonly SessionHooks<never>[],
  { time, cwd: root }: { readonly time: () => Time; readonly cwd: string },
): Handlers {
  for (const name of hookNames) {
    const wrong: unknown = registered.map((hooks) => hooks[name] ?? undefined)
      .find((handler) => handler !== undefined && typeof handler !== "function");
    if (wrong !== undefined) throw new TypeError(`Cannot use ${name}: expected a function, received ${typeof wrong}`);
  }

  /** The registration that has the handler. */
  const holder = (name: HookName) => registered.findLast((hooks) => hooks[name]);

  function baseOf({ run }: Scope): HookInput<Time> {
    const cwd = placeOf(run, root);
    return { sessionId: run.session, timestamp: time(), cwd, workingDirectory: cwd };
  }

  return {
    unknown: registered.flatMap((hooks) => Object.keys(hooks))
      .filter((name) => /^on[A-Z]/.test(name) && !hookNames.some((known) => known === name)),
    has: (...names) => names.some((name) => holder(name)),
    async ask<K extends HookName>(name: K, ctx: Scope, point: Point, given: Given<K>): Promise<Outputs[K]> {
      const hooks = holder(name);
      if (!hooks) return {};
      const warn = (message: string, error?: unknown) =>
        ctx.emit({
          type: "warning",
          code: "hook.failed",
          message,
          middleware: "copilot_hooks",
          point,
          ...(error !== undefined && { error: ctx.run.report(error) }),
        });
      const failed = (error: unknown) => warn(`${name} failed, and is left out.`, error);
      try {
        const input = structuredClone({ ...baseOf(ctx), ...given }); // its own: what it writes there is lost
        const handler = hooks[name] as HookHandler<typeof input, unknown>; // each takes what its hook is given
        const invocation = { sessionId: outermost(ctx.run).session };
        const output = await handler.call(hooks, input, invocation, { signal: ctx.signal, failed });
        return output === undefined || output === null
          ? {}
          : read(name, output, (message) => warn(`${name} gave something that is left out: ${message}`));
      } catch (error) {
        failed(error);
        return {};
      }
    },
  };
}

/** The run that nobody else's is above. */
function outermost(run: Run): Run {
  return run.parent ? outermost(run.parent) : run;
}

/** Where a run is: what `workspace()` keeps of it, beneath `root`. */
function placeOf({ state }: Run, root: string): string {
  const place = state.get("workspace");
  const inside = typeof place === "object" && place !== null && "cwd" in place ? String(place.cwd) : ".";
  return inside === "." ? root : `${root.replace(/\/$/, "")}/${inside}`;
}

/** The file that the transcript of a run is in, as `transcript()` keeps it. */
export function transcriptOf({ run }: Scope): string | undefined {
  const path = outermost(run).state.get("transcript.path");
  return typeof path === "string" && path !== "" ? path : undefined;
}
