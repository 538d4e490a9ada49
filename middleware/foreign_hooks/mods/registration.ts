/**
 * Mods: their modules are evaluated, register their hooks, and are ordered.
 *
 * @module
 */
import { type Data, freeze, matcherOf, selectorOf, type Selects } from "./patterns.ts";
import { messageOf } from "../kit/calls.ts";
import { expectChoice, expectNames, isObject, withinTime } from "../../../src/core/kit.ts";

// The public form of a mod.

/** A tier of hooks. */
export type Tier = "prepend" | "user" | "append" | "builtin" | "core";

/** The tiers, outermost first. */
export const tiers: readonly Tier[] = ["prepend", "user", "append", "builtin", "core"];

/** The value of a field of `userConfig`. */
export type ModOption = string | number | boolean | readonly string[];

/** A function of a mod, of any signature: the types that a mod is written against are its own. */
export type ModFunction = (...args: never[]) => unknown;

/** The return value of `on()`. */
export interface Registration {
  /** Sets the handler that is asked if the hook fails. Throws a `TypeError` after the first time, and after `register()` has ended. */
  catch(handler: ModFunction): Registration;
}

/** Registers a hook: `on(pattern, hook)`, or `on(pattern, matcher, hook)`. */
export type On = (pattern: string, ...hook: readonly (object | ModFunction)[]) => Registration;

/** The module of a mod, as `import()` returns it. */
export interface ModModule {
  /** Registers the hooks. It may return a promise. */
  register(on: On, options: Readonly<Record<string, ModOption>>): unknown;
}

/** A field of `userConfig` in `plugin.json`. */
export interface ModField {
  /** The value of a mod that was given none. */
  readonly default?: ModOption | undefined;
  /** Whether the mod needs a value. Default: false. */
  readonly required?: boolean | undefined;
}

/** A mod: the module, and what its `plugin.json` says. */
export interface Mod {
  /** The name in `plugin.json`. */
  readonly name: string;
  /** Evaluates the module anew, and returns it. With `shared: true`, the module itself. */
  readonly module: ModModule | (() => ModModule | Promise<ModModule>);
  /** Whether all runs share the module's variables, and so those of all users. Default: false. */
  readonly shared?: boolean | undefined;
  /** The values of the fields of `userConfig`. Default: none. */
  readonly options?: Readonly<Record<string, ModOption>> | undefined;
  /** `userConfig` in `plugin.json`: the fields of `options`, with their defaults. */
  readonly userConfig?: Readonly<Record<string, ModField>> | undefined;
  /** `prepend` and `append` are for mods of the operator. Default: "user". */
  readonly tier?: Exclude<Tier, "core"> | undefined;
  /** The names of mods that it uses, in `plugin.json`: it stands before them. Default: none. */
  readonly dependencies?: readonly string[] | undefined;
  /** The folder, as `$.plugin.root`. Default: `/`. */
  readonly root?: string | undefined;
  /** The version in `plugin.json`. */
  readonly version?: string | undefined;
  /** The calls of `$` in its source, such as `fs.read`, as `plugin.register` shows them. Default: none. */
  readonly calls?: readonly string[] | undefined;
}

/** The names of its fields. */
const members = [
  "name",
  "module",
  "shared",
  "options",
  "userConfig",
  "tier",
  "dependencies",
  "root",
  "version",
  "calls",
];

/** Throws a `TypeError` for a mod that cannot be loaded. */
export function expectMod(mod: Mod): void {
  const operation = `Cannot use the mod "${mod?.name}"`;
  if (typeof mod?.name !== "string" || mod.name === "") throw new TypeError(`${operation}: expected a name`);
  expectNames(operation, mod, members);
  if (mod.tier !== undefined) expectChoice(operation, "tier", mod.tier, tiers.slice(0, -1));
  if (typeof mod.module !== "function" && !(mod.shared && typeof mod.module?.register === "function")) {
    throw new TypeError(
      `${operation}: expected a function that evaluates its module anew, so that runs share none of its variables; a module itself needs "shared: true"`,
    );
  }
  for (const [name, field] of Object.entries(mod.userConfig ?? {})) {
    if (field.required && valueOf(mod, name) === undefined) {
      throw new TypeError(`${operation}: its option "${name}" has no value`);
    }
  }
}

function valueOf({ options = {}, userConfig = {} }: Mod, name: string): ModOption | undefined {
  return options[name] ?? userConfig[name]?.default;
}

/** Returns the options of a mod, with the defaults of its fields. */
function optionsOf(mod: Mod): Readonly<Record<string, ModOption>> {
  const names = new Set([...Object.keys(mod.userConfig ?? {}), ...Object.keys(mod.options ?? {})]);
  const values = [...names].map((name) => [name, valueOf(mod, name)] as const);
  return Object.fromEntries(values.filter((entry): entry is [string, ModOption] => entry[1] !== undefined));
}

/** Sorts mods: by tier, in the given order inside of one, and a user mod before those that it depends on. */
export function sortMods(mods: readonly Mod[]): readonly Mod[] {
  const placed = new Set<Mod>();
  function place(mod: Mod, path: readonly Mod[]): void {
    if (placed.has(mod) || path.includes(mod)) return;
    const dependents = mods.filter((each) => tierOf(each) === "user" && each.dependencies?.includes(mod.name));
    if (tierOf(mod) === "user") { for (const each of dependents) place(each, [...path, mod]); }
    placed.add(mod);
  }
  for (const tier of tiers) for (const mod of mods) if (tierOf(mod) === tier) place(mod, []);
  return [...placed];
}

/** Returns the tier of a mod. */
export function tierOf({ tier = "user" }: Mod): Tier {
  return tier;
}

// The registration: `register(on, options)` is called, and `on` collects the hooks.

/** A hook of a mod. */
export interface Link {
  readonly mod: Mod;
  readonly pattern: string;
  readonly selects: Selects;
  readonly matches: (e: Data) => boolean;
  readonly hook: ModFunction;
  readonly handler: () => ModFunction | undefined;
}

/** Milliseconds in which a module is evaluated and registers its hooks. */
const loadTime = 10_000;

/** Evaluates the module of a mod, and returns its hooks in the order in which it registers them. Throws an `Error` if it cannot be loaded. */
export async function load(mod: Mod): Promise<readonly Link[]> {
  const collector = new Collector(mod);
  try {
    await withinTime(async () => {
      const module = typeof mod.module === "function" ? await mod.module() : mod.module;
      if (!isObject(module) || typeof module.register !== "function") {
        throw new TypeError("expected a module that exports register(on, options)");
      }
      await module.register(collector.on, freeze(structuredClone(optionsOf(mod))));
    }, { ms: loadTime, signal: new AbortController().signal }); // several runs may wait for it: no abort of one ends it
    return collector.links;
  } catch (error) {
    throw new Error(`Cannot load the mod "${mod.name}": ${messageOf(error)}`, { cause: error });
  } finally {
    collector.close();
  }
}

/** Collects the hooks that a module registers. */
class Collector {
  readonly links: Link[] = [];
  readonly #mod: Mod;
  readonly #unmatched = new Set<string>();
  #isClosed = false;

  constructor(mod: Mod) {
    this.#mod = mod;
  }

  /** Registers nothing from now on. */
  close(): void {
    this.#isClosed = true;
  }

  readonly on: On = (pattern, ...rest) => {
    this.#expectOpen("on()");
    const [matcher, hook] = rest.length > 1 ? rest : [undefined, rest[0]];
    const selects = selectorOf(pattern);
    if (typeof hook !== "function") throw new TypeError(`Cannot register a hook at "${pattern}": expected a function`);
    if (matcher === undefined && this.#unmatched.has(pattern)) {
      throw new TypeError(`Cannot register a hook at "${pattern}": the mod has one without a matcher`);
    }
    if (matcher === undefined) this.#unmatched.add(pattern);
    const matches = matcher === undefined ? () => true : matcherOf(matcher);
    let handler: ModFunction | undefined;
    const link = { mod: this.#mod, pattern, selects, matches, hook: hook as ModFunction, handler: () => handler }; // a function was expected
    this.links.push(link);
    const registration: Registration = {
      catch: (asked) => {
        this.#expectOpen(".catch()");
        if (pattern === "engine.create") throw new TypeError(`Cannot set .catch() at "${pattern}": it has none`);
        if (typeof asked !== "function") {
          throw new TypeError(`Cannot set .catch() at "${pattern}": expected a function`);
        }
        if (handler) throw new TypeError(`Cannot set .catch() at "${pattern}": it was set before`);
        handler = asked;
        return registration;
      },
    };
    return Object.freeze(registration);
  };

  #expectOpen(operation: string): void {
    if (this.#isClosed) throw new TypeError(`Cannot call ${operation} in a hook: expected register() to call it`);
  }
}
