/**
 * Agents with mods, and mods that are written in a test.
 *
 * @module
 */
import type { AnyTool, Event, Limits, Middleware, PersonAnswer } from "@jizai/jizai";
import { type Mod, type ModOption, mods, type ModsOptions, type On } from "@jizai/jizai/middleware/mods";
import type { ScriptedCall } from "@jizai/jizai/model/scripted";
import { batch, type Outcome } from "./batch.ts";
import { command, shell } from "./hooked.ts";

/** Values of mods, which are written without types. */
// deno-lint-ignore no-explicit-any -- each event and each call of `$` has fields of its own
export type Loose = any;

/** A hook of a mod. */
export type LooseHook = ($: Loose, e: Loose, next: Loose) => unknown;

/** `on()`, for hooks without types. */
export interface LooseOn {
  (pattern: string, hook: LooseHook): { catch(handler: LooseHook): unknown };
  (pattern: string, matcher: object, hook: LooseHook): { catch(handler: LooseHook): unknown };
}

/** Creates a mod whose module is evaluated for each run. */
export function mod(
  register: (on: LooseOn, options: Readonly<Record<string, ModOption>>) => unknown,
  more: Partial<Mod> = {},
): Mod {
  return {
    name: "guard",
    module: () => ({ register: (on: On, options) => register(on as LooseOn, options) }),
    ...more,
  };
}

/** Creates a mod with one hook. */
export function hook(event: string, run: LooseHook, more: Partial<Mod> = {}): Mod {
  return mod((on) => on(event, run), more);
}

/** Creates a mod with a hook and its handler. */
export function caught(event: string, run: LooseHook, handler: LooseHook, more: Partial<Mod> = {}): Mod {
  return mod((on) => on(event, run).catch(handler), more);
}

/** Returns a hook that throws. */
export function throwing(message = "broken"): LooseHook {
  return () => {
    throw new Error(message);
  };
}

/** Options of an agent with mods. */
export interface ModdedOptions extends ModsOptions {
  readonly calls?: readonly ScriptedCall[];
  readonly tools?: readonly AnyTool[];
  readonly before?: readonly Middleware[];
  readonly after?: readonly Middleware[];
  readonly limits?: Partial<Limits>;
}

/** Creates an agent with mods, whose model makes some calls in one response and then answers. Default: `Bash` with `ls`. */
export function modded(all: readonly Mod[], options: ModdedOptions = {}) {
  const { calls = [command("a", "ls")], tools = [shell()], before = [], after = [], limits = {}, ...rest } = options;
  return batch(calls, { tools, limits, use: [...before, mods(all, rest), ...after] });
}

/** Runs an agent with mods once. */
export async function ran(all: readonly Mod[], options?: ModdedOptions): Promise<Outcome> {
  return await modded(all, options).run().outcome;
}

/** Runs an agent with mods and resumes it with `answers`. */
export async function resumed(
  all: readonly Mod[],
  answers: readonly PersonAnswer[],
  options?: ModdedOptions,
): Promise<readonly [Outcome, Outcome]> {
  const agent = modded(all, options);
  const first = await agent.run().outcome;
  return [first, await agent.resume(first.result.session, answers).outcome];
}

/** Returns the messages of the warnings. */
export function warnings(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "warning" ? [event.message] : []);
}

/** Returns the messages of reported errors. */
export function reports({ errors }: Outcome): string[] {
  return errors.map((error) => error instanceof Error ? error.message : String(error));
}
