/**
 * Agents with mods, and mods that are written in a test.
 *
 * @module
 */
import type { PersonAnswer } from "@jizai/jizai";
import { type Mod, type ModOption, mods, type ModsOptions, type On } from "@jizai/jizai/middleware/mods";
import type { Batch, Outcome } from "./batch.ts";
import { pausedAndResumed, surrounded, type SurroundingParts } from "./hooked.ts";

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
export interface ModdedOptions extends ModsOptions, SurroundingParts {}

/** Creates an agent with mods, whose model makes some calls in one response and then answers. */
export function modded(all: readonly Mod[], options: ModdedOptions = {}): Batch {
  return surrounded((rest) => mods(all, rest), options);
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
  return await pausedAndResumed(modded(all, options), answers);
}

/** Returns the messages of reported errors. */
export function reports({ errors }: Outcome): string[] {
  return errors.map((error) => error instanceof Error ? error.message : String(error));
}
