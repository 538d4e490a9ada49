/**
 * How a change travels down: checked, merged into a new context, and seen only by what lies beneath.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";
import type { Law, Layer } from "./onion.ts";

/** What follows from a change: the context beneath, completed. */
export type Derive<C, E> = (beneath: C, above: C, own: E, name: string) => C;

/** A law whose points may change `signal`, `emit` and `keys`. Keys that are undefined are ignored; others are refused by name. */
export function lawOf<C extends object, D extends object, R, E>(
  point: Point,
  keys: readonly (keyof D & string)[],
  { derive, ...law }: Partial<Law<C, D, R, E>> & { readonly derive?: Derive<C, E> } = {},
): Law<C, D, R, E> {
  const allowed: readonly string[] = ["signal", "emit", ...keys];
  return {
    point,
    change(ctx, change, name, own) {
      const stray = Object.keys(change).find((key) => !allowed.includes(key));
      if (stray !== undefined) {
        throw new TypeError(`Cannot change "${stray}" at ${point} in "${name}": expected ${allowed.join(", ")}`);
      }
      const beneath = merged<C>(ctx, change as Partial<C>); // its keys are the context's
      return derive ? derive(beneath, ctx, own, name) : beneath;
    },
    ...law,
  };
}

/** What becomes of settings that a change names: those that it does not name stay. */
export function resettled<C extends { readonly settings: object }>(beneath: C, { settings }: C): C {
  return beneath.settings === settings ? beneath : { ...beneath, settings: merged(settings, beneath.settings) };
}

/** Notes who gave what did not lie beneath them: should it have to be mended, the warning says their name. */
export function authored<C, R>({ name, returned, own }: Layer<C, R, { author: string | undefined }>): R {
  own.author = name;
  return returned;
}

/** Refuses what does not say by `key` what it is: a hook that was written without types may give anything. */
export function saying<C, R extends object, E>(point: Point, key: keyof R & string): (layer: Layer<C, R, E>) => R {
  return ({ name, returned }) => {
    if (typeof returned?.[key] === "string") return returned;
    throw new TypeError(`Cannot leave ${point}: "${name}" returned no answer, which has a ${key}`);
  };
}

/** `base` with what `change` defines. */
export function merged<T extends object>(base: T, change: Partial<T>): T {
  const whole = { ...base };
  for (const [key, value] of Object.entries(change)) if (value !== undefined) Reflect.set(whole, key, value);
  return whole;
}
