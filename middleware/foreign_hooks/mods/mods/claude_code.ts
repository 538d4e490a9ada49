/**
 * The values that mods import from `claude-code`: atoms, which name values of `$.state`. A bundler resolves that name to this module.
 *
 * @module
 */

/** The engine, as far as atoms use it. */
export interface StateEngine {
  /** The values of the session. */
  readonly state: {
    /** Returns a value and its version. */
    get(ref: object): Promise<{ readonly value?: unknown; readonly version: number }>;
    /** Sets a value if it has the version. */
    set(ref: object, value: unknown, options: { readonly ifVersion: number }): Promise<{ readonly isSet: boolean }>;
  };
}

/** The name of a value. */
export interface AtomRef {
  /** The mod that the value belongs to. */
  readonly plugin?: string;
  /** The name of the value. */
  readonly key: string;
  /** The member, of a value that has several. */
  readonly id?: string;
}

/** A value of `$.state`, and the value that it has before it is set. */
export interface Atom<T> extends AtomRef {
  /** The value before it is set. */
  readonly default: T;
}

/** A value that is computed from atoms. */
export interface Derived<T> {
  /** The atoms. */
  readonly atoms: readonly Atom<unknown>[];
  /** Computes the value. */
  readonly compute: (...values: never[]) => T;
}

/**
 * Creates an atom.
 *
 * ```ts
 * import { atom, read, update } from "@jizai/jizai/middleware/mods/claude_code";
 * import { mods, type On } from "@jizai/jizai/middleware/mods";
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * type Engine = Parameters<typeof read>[0];
 * const seen: number[] = [];
 * function register(on: On) {
 *   const count = atom({ plugin: "counter", key: "count" }, 0);
 *   on("turn.start", async ($: Engine, e: object, next: (e: object) => unknown) => {
 *     await update($, count, (n) => n + 1);
 *     seen.push(await read($, count));
 *     return next(e);
 *   });
 * }
 *
 * const use = [mods({ name: "counter", module: () => ({ register }) })];
 * await agent({ model: scripted("Hello!"), use }).run("Hi").result;
 * assertEquals(seen, [1]);
 * ```
 */
export function atom<T>(ref: AtomRef, initial: T): Atom<T> {
  return Object.freeze({ ...ref, default: initial });
}

/** Returns the atom of one member of a value that has several. */
export function memberOf<T>(family: Atom<T>, id: string): Atom<T> {
  return Object.freeze({ ...family, id });
}

/** Creates a value that is computed from the values of atoms when it is read. */
export function derive<T>(atoms: readonly Atom<unknown>[], compute: (...values: never[]) => T): Derived<T> {
  return Object.freeze({ atoms, compute });
}

/** Returns the value of an atom, or computes that of a derived one. */
export async function read<T>($: StateEngine, from: Atom<T> | Derived<T>): Promise<T> {
  if ("compute" in from) {
    const values = await Promise.all(from.atoms.map((each) => read($, each)));
    return from.compute(...values as never[]); // the values of its atoms
  }
  const { value = from.default } = await $.state.get(refOf(from));
  return value as T; // only atoms write it
}

/** Replaces the value of an atom with `change(value)`, and returns the new value. It tries again if the value has changed in the meantime. */
export async function update<T>($: StateEngine, target: Atom<T>, change: (value: T) => T): Promise<T> {
  while (true) {
    const { value = target.default, version } = await $.state.get(refOf(target));
    const changed = change(value as T); // only atoms write it
    const { isSet } = await $.state.set(refOf(target), changed, { ifVersion: version });
    if (isSet) return changed;
  }
}

function refOf({ default: _, ...ref }: Atom<unknown>): AtomRef {
  return ref;
}
