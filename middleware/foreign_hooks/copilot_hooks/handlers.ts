/**
 * The handlers of the hooks: one per hook, and how it is called.
 *
 * @module
 */
import type { Point, Scope } from "../../../mod.ts";
import { isObject } from "../kit/fields.ts";
import { outermostRun, workingDirectory } from "../kit/run.ts";
import { warnFailed } from "../kit/warn.ts";
import type { HookInput } from "./hook_input.ts";
import type { HookHandler, SessionHooks } from "./hooks.ts";
import type { ForeignDecision } from "../kit/denial.ts";
import { foreignOutput, type HookName, hookNames, type Outputs, readOutput, unknownOutput } from "./outputs.ts";

/** The time in inputs. */
export type Time = number | Date;

/** The input of the hook `K`, without the common fields. */
export type Fields<K extends HookName> = Omit<
  Parameters<NonNullable<SessionHooks<Time>[K]>>[0],
  keyof HookInput
>;

/** The output of a hook, and a decision in it that has the form of another system. */
export type Answer<K extends HookName> = Outputs[K] & { readonly foreign?: ForeignDecision };

/** The handlers. */
export interface Handlers {
  /** The id of the middleware in this process. */
  readonly owner: string;
  /** Registered names that look like hooks but are unknown. */
  readonly unknown: readonly string[];
  /** Whether one of these hooks has a handler. */
  has(...names: readonly HookName[]): boolean;
  /** Calls the handler of a hook. The output is empty if there is no handler, or if it fails or returns nothing. */
  ask<K extends HookName>(name: K, ctx: Scope, point: Point, fields: Fields<K>): Promise<Answer<K>>;
}

/** Collects the handlers of several registrations: of each hook, the last one. Throws a `TypeError` if a handler is not a function. */
export function handlersOf(
  registered: readonly SessionHooks<never>[],
  { time, cwd: root }: { readonly time: () => Time; readonly cwd: string },
): Handlers {
  if (!registered.every(isObject)) {
    throw new TypeError("Cannot use hooks: expected an object with `onPreToolUse` and others");
  }
  for (const name of hookNames) {
    const wrong: unknown = registered.map((hooks) => hooks[name] ?? undefined)
      .find((handler) => handler !== undefined && typeof handler !== "function");
    if (wrong !== undefined) throw new TypeError(`Cannot use ${name}: expected a function, received ${typeof wrong}`);
  }
  const holderOf = (name: HookName) => registered.findLast((hooks) => hooks[name]);

  let owner: string | undefined;

  return {
    get owner() {
      return owner ??= crypto.randomUUID(); // not before the first call: Workers have no random numbers at their start
    },
    unknown: registered.flatMap((hooks) => Object.keys(hooks))
      .filter(isMisspelt),
    has: (...names) => names.some((name) => holderOf(name)),
    async ask<K extends HookName>(name: K, ctx: Scope, point: Point, fields: Fields<K>): Promise<Answer<K>> {
      const hooks = holderOf(name);
      if (!hooks) return {};
      const warn = (problem: string, error?: unknown) =>
        warnFailed(ctx, { middleware: "copilot_hooks", point, message: `${name} ${problem}`, error });
      const onFailed = (error: unknown) => warn("failed.", error);
      try {
        const cwd = workingDirectory(ctx.run, root);
        const common = { sessionId: ctx.run.session, timestamp: time(), cwd, workingDirectory: cwd };
        const input = structuredClone({ ...common, ...fields }); // a copy, so that changes of the hook are lost
        const handler = hooks[name] as HookHandler<typeof input, unknown>; // a handler receives the input of its own hook
        const invocation = { sessionId: outermostRun(ctx.run).session };
        const output = await handler.call(hooks, input, invocation, { signal: ctx.signal, onFailed });
        if (output === undefined || output === null) return {};
        const read = readOutput(name, output, (problem) => warn(`returned an invalid output: ${problem}`));
        const foreign = foreignOutput(name, output);
        const unknown = foreign ? undefined : unknownOutput(name, output, input);
        if (unknown !== undefined) warn(`returned ${unknown}.`);
        if (!foreign) return read;
        warn(`${foreign.type === "deny" ? "denies" : "asks"} in the form of another system: ${foreign.member}.`);
        return { ...read, foreign };
      } catch (error) {
        onFailed(error);
        return {};
      }
    },
  };
}

/** Whether a name looks like that of a hook, and is none: `onPreTooluse`, or `preToolUse` as in settings. */
function isMisspelt(name: string): boolean {
  if (hookNames.some((known) => known === name)) return false;
  const similar = [name.toLowerCase(), `on${name.toLowerCase()}`];
  return /^on[A-Z]/.test(name) || hookNames.some((known) => similar.includes(known.toLowerCase()));
}
