/**
 * The mods of one run: they are loaded when it begins, and events are dispatched to their hooks.
 *
 * @module
 */
import { dispatch } from "./chain.ts";
import {
  type Budget,
  type Dispatch,
  engineOrigin,
  expectNone,
  type Interrupts,
  keepInterrupt,
  type Origin,
  Overrun,
  type Rules,
  WrongAnswer,
} from "./frame.ts";
import { type HostCalls, hostCalls } from "./host.ts";
import type { Resolved } from "./options.ts";
import { copyOf, type Data, freeze } from "./patterns.ts";
import { type Link, load, type Mod, sortMods, tierOf } from "./registration.ts";
import { rulesOf, unsupported } from "./rules.ts";
import { type Chunks, dispatchStream } from "./stream.ts";
import { outermostRun, warnFailed, warnSkipped } from "../kit/adapter.ts";
import { messageOf } from "../kit/calls.ts";
import { isInterrupt, type Message, type Model, type Point, type Scope, type ToolDefinition } from "../../../mod.ts";
import { anySignal, isObject, startTimer } from "../../../src/core/kit.ts";

/** The name of the middleware. */
export const name = "mods";

/** The place in a run where an event is raised. */
export interface At {
  readonly ctx: Scope;
  readonly point: Point;
  /** The source of the event. Default: the engine. */
  readonly origin?: Origin;
  /** The hooks that raise it, by calls of `$`: they do not run inside of themselves. */
  readonly skipped?: readonly Link[];
  /** Throws for fields that the core cannot use. Default: it can use all. */
  readonly expect?: (e: Data) => void;
  /** Aborts the dispatch. Default: the signal of the context. */
  readonly signal?: AbortSignal;
}

/** The loaded mods, and what they keep for a run. */
export class ModRun {
  readonly options: Resolved;
  readonly mods: readonly Mod[];
  readonly links: readonly Link[];
  /** The calls of `$` that a server serves, and those that `engine.create` hooks have added. */
  readonly calls: HostCalls;
  /** The model of the run. */
  model: Model | undefined;
  /** The tools of the last request. */
  tools: readonly ToolDefinition[] = [];
  /** The instructions of the last request. */
  instructions = "";
  /** The messages of the last request, and the response to it. */
  messages: readonly Message[] = [];
  /** Texts that mods submitted, for after the answer. */
  readonly submitted: { readonly mod: string; readonly text: string }[] = [];
  /** The subagents that were started. */
  readonly agents: Map<string, Data> = new Map();
  /** The answers about sections, tools and context that are asked for once. */
  readonly #cached = new Map<string, Data>();
  /** Ends the timers. */
  #timers = new AbortController();
  readonly #selected = new Map<string, readonly Link[]>();

  constructor(options: Resolved, mods: readonly Mod[], links: readonly Link[], added: HostCalls = {}) {
    this.options = options;
    this.mods = mods;
    this.links = links;
    this.calls = { ...hostCalls, ...added };
  }

  /** Aborts when the run ends. */
  get ended(): AbortSignal {
    return this.#timers.signal;
  }

  /** Ends the timers of the run. */
  end(): void {
    this.#timers.abort(new DOMException("The run has ended.", "AbortError"));
    this.#timers = new AbortController();
  }

  /** Forgets the answers that are asked for once, such as those of `tool.describe`. */
  forget(event: string): void {
    for (const key of this.#cached.keys()) if (key.startsWith(`${event} `)) this.#cached.delete(key);
  }

  /** Raises an event, or returns the answer that it gave before. */
  async once(event: string, key: string, raise: () => Promise<Data>): Promise<Data> {
    const known = this.#cached.get(`${event} ${key}`);
    if (known) return known;
    const answer = await raise();
    this.#cached.set(`${event} ${key}`, answer);
    return answer;
  }

  /** Whether a hook selects one of the events. */
  has(...events: readonly string[]): boolean {
    return events.some((event) => this.#linksOf(event).length > 0);
  }

  #linksOf(event: string): readonly Link[] {
    const known = this.#selected.get(event);
    if (known) return known;
    const selected = this.links.filter(({ selects }) => selects(event));
    this.#selected.set(event, selected);
    return selected;
  }

  /** Raises an event, and returns the answer. Throws what ends or pauses the run, whatever the hooks answered. */
  async raise(event: string, e: Data, core: (e: Data, signal: AbortSignal) => Promise<unknown>, at: At): Promise<Data> {
    const interrupts: Interrupts = {};
    const { signal = at.ctx.signal } = at;
    try {
      const answer = await dispatch(this.#dispatch(event, at, interrupts, core), e, signal);
      return answer as Data; // of a core or a hook, which are objects
    } finally {
      expectNone(interrupts); // in place of the answer, or of another error
    }
  }

  /** Raises a streaming event. Throws what ends or pauses the run, whatever the hooks yielded or answered. */
  async *stream(event: string, e: Data, core: (e: Data, signal: AbortSignal) => Chunks, at: At): Chunks {
    const interrupts: Interrupts = {};
    const { signal = at.ctx.signal } = at;
    const chunks = dispatchStream(this.#dispatch(event, at, interrupts, core), e, signal);
    try {
      while (true) {
        const { done, value } = await chunks.next();
        expectNone(interrupts);
        if (done) return value;
        yield value;
      }
    } finally {
      await chunks.return(undefined);
      expectNone(interrupts); // in place of the result, or of another error
    }
  }

  #dispatch<T>(
    event: string,
    at: At,
    interrupts: Interrupts,
    core: (e: Data, signal: AbortSignal) => T,
  ): Dispatch<T> {
    const { origin = engineOrigin, skipped = [] } = at;
    const rules: Rules = rulesOf(event);
    return {
      event,
      rules,
      links: this.#linksOf(event).filter((link) => !skipped.includes(link)),
      origin,
      core,
      engine: (link, budget) => this.#engine(link, { ...at, skipped: [...skipped, link] }, budget, interrupts),
      report(link, event, error) {
        if (interrupts.thrown !== undefined && isInterrupt(error)) return; // a question is no failure
        reportFailure(at, link.mod.name, event, error);
      },
      interrupts,
      expect: at.expect,
      isClosed: this.options.failure === "closed",
    };
  }

  #engine(link: Link, at: At, budget: () => Budget, interrupts: Interrupts): object {
    const { mod } = link;
    const signal = anySignal([at.signal ?? at.ctx.signal, this.ended]);
    const origin: Origin = Object.freeze({ plugin: mod.name, tier: tierOf(mod) });
    return engineFor({ run: this, mod, at: { ...at, origin, signal }, budget, interrupts });
  }
}

/** Reports the failure of a mod. Clients receive the mod, the event and the kind of the failure; `onError` the reason. */
function reportFailure({ ctx, point }: At, mod: string, event: string, error: unknown): void {
  const failure = `The mod "${mod}" failed at ${event}`;
  const isOwn = error instanceof Overrun || error instanceof WrongAnswer;
  const message = isOwn ? `${failure}: ${error.message}.` : `${failure}.`;
  const reported = new Error(`${failure}: ${messageOf(error)}`, { cause: error });
  warnFailed(ctx, { middleware: name, point, message, error: reported });
}

// The engine as mods see it, `$`: each of its calls is an event, which passes the hooks of other mods before it is served.

/** The hook that receives `$`. */
interface Caller {
  readonly run: ModRun;
  readonly mod: Mod;
  readonly at: At;
  readonly budget: () => Budget;
  readonly interrupts: Interrupts;
}

/** Creates `$` for one call of a hook. It is frozen. */
function engineFor(caller: Pick<Caller, "run" | "at"> & Partial<Caller>): object {
  const nouns: Record<string, Record<string, unknown>> = {
    plugin: { name: caller.mod?.name, root: caller.mod?.root ?? "/" },
  };
  for (const event of Object.keys(caller.run.calls)) {
    const [noun = "", method = ""] = event.split(".");
    const timer = noun === "clock" && (method === "after" || method === "every") ? method : undefined;
    (nouns[noun] ??= {})[method] = timer
      ? (ms: unknown, run: unknown) => startWaiting(caller as Caller, timer, ms, run) // `$` of a hook has a caller
      : (...args: unknown[]) => call(caller as Caller, event, args); // the same
  }
  for (const noun of Object.values(nouns)) Object.freeze(noun);
  return Object.freeze(nouns);
}

/** Calls a method of `$`: the hook that calls it is skipped, and its clock stands. */
function call(caller: Caller, event: string, args: readonly unknown[]): Promise<unknown> {
  const raised = raise(caller, event, args);
  raised.catch(() => {}); // mods drop the promises of `$.ui.log()` and others
  return event === "clock.sleep" ? raised : caller.budget().hold(raised);
}

async function raise(caller: Caller, event: string, args: readonly unknown[]): Promise<unknown> {
  const { run, mod, interrupts } = caller;
  const at = addSignal(caller.at, args.at(-1));
  const served = run.calls[event];
  if (!served) throw new TypeError(`Cannot call $.${event}(): there is no such call`);
  try {
    const e = copyOf(served.fields(...args)) as Data; // fields are an object
    const serve = (e: Data, signal: AbortSignal) => Promise.resolve(served.serve(e, { run, mod, at, signal }));
    if (served.isEvent) return await serve(e, at.signal ?? at.ctx.signal);
    const answer = await run.raise(event, e, async (e, signal) => ({ value: copyOf(await serve(e, signal)) }), at);
    if (answer.deny !== undefined) throw new Error(String(answer.deny));
    return answer.value;
  } catch (error) {
    keepInterrupt(interrupts, error);
    throw error;
  }
}

/** Adds the signal that a call was given among its options. */
function addSignal(at: At, options: unknown): At {
  const signal = isObject(options) ? options.signal : undefined;
  return signal instanceof AbortSignal ? { ...at, signal: anySignal([at.signal ?? at.ctx.signal, signal]) } : at;
}

/** `$.clock.after()` and `every()`: the callback runs when the time has passed and no hook refuses it. All timers end with the run. */
function startWaiting(caller: Caller, method: "after" | "every", ms: unknown, callback: unknown): object {
  if (typeof callback !== "function") throw new TypeError(`Cannot call $.clock.${method}(): expected a function`);
  const { run: { ended } } = caller;
  const time = Math.max(1, Number(ms) || 0);
  const controller = new AbortController();
  let timer: ReturnType<typeof startTimer>;
  const cancel = () => {
    controller.abort();
    clearTimeout(timer);
    ended.removeEventListener("abort", cancel);
  };
  ended.addEventListener("abort", cancel, { once: true });

  async function fire(): Promise<void> {
    try {
      await raise(caller, `clock.${method}`, [time]);
      if (!controller.signal.aborted) await (callback as () => unknown)(); // a function was expected
      if (method === "every" && !controller.signal.aborted) timer = startTimer(() => void fire(), time);
      else cancel();
    } catch (error) {
      cancel();
      caller.at.ctx.run.report(new Error(`Cannot run a timer of the mod "${caller.mod.name}": ${messageOf(error)}`));
    }
  }
  timer = startTimer(() => void fire(), time);
  return Object.freeze({ cancel });
}

// Loading: each module is evaluated and registers its hooks.

/** Loads the mods of a run. A mod that cannot be loaded is left out, and reported; with `failure: "closed"`, it fails the run. */
export async function loadMods(all: readonly Mod[], options: Resolved, ctx: Scope): Promise<ModRun> {
  const at: At = { ctx, point: "session" };
  const links: Link[] = [];
  const loaded: Mod[] = [];
  for (const mod of sortMods(all)) {
    try {
      const modLinks = await load(mod);
      const refusal = await refusalOf(new ModRun(options, loaded, links), mod, modLinks, at);
      if (refusal === undefined) {
        loaded.push(mod);
        links.push(...modLinks);
      } else warnSkipped(ctx, name, `The mod "${mod.name}" is not loaded: ${refusal}`);
    } catch (error) {
      if (options.failure === "closed") throw error;
      const message = `The mod "${mod.name}" cannot be loaded.`;
      warnFailed(ctx, { middleware: name, point: "session", message, error });
    }
  }
  const run = new ModRun(options, loaded, links, await addedCalls(options, loaded, links, at));
  for (const message of silentHooks(run)) warnSkipped(ctx, name, message);
  return run;
}

/** Asks the mods that are loaded whether another one may be. Returns the reason of a refusal. */
async function refusalOf(judges: ModRun, mod: Mod, links: readonly Link[], at: At): Promise<string | undefined> {
  const event = "plugin.register";
  if (!judges.has(event)) return undefined;
  const { root = "/", version, calls = [] } = mod;
  const e = {
    name: mod.name,
    tier: tierOf(mod),
    root,
    ...(version !== undefined && { version }),
    provenance: `${mod.name}@inline`,
    uses: { events: [...new Set(links.map(({ pattern }) => pattern))], calls: calls.toSorted() },
  };
  const { refuse } = await judges.raise(event, e, () => Promise.resolve({ allow: true }), at);
  return refuse === undefined ? undefined : String(refuse);
}

/** Runs the hooks of `engine.create`, and returns the calls of the nouns that they add to `$`. They may add nouns to `$`, and replace none. */
async function addedCalls(
  options: Resolved,
  mods: readonly Mod[],
  links: readonly Link[],
  at: At,
): Promise<HostCalls> {
  const event = "engine.create";
  const creators = links.filter(({ pattern, selects }) => selects(event) && !/^[*!]/.test(pattern));
  const e = freeze({ plugins: mods.map((mod) => mod.name) });
  const base: Record<string, unknown> = { ...engineFor({ run: new ModRun(options, mods, []), at }) };
  let built = base;
  for (const { mod, hook } of creators.toReversed()) {
    const beneath = built;
    try {
      const next = () => Promise.resolve(beneath);
      const returned = await (hook as (...args: unknown[]) => unknown)(Object.freeze({}), e, next); // a hook takes these three
      if (typeof returned !== "object" || returned === null) throw new WrongAnswer("it returned no object");
      built = { ...beneath, ...returned, ...base };
    } catch (error) {
      reportFailure(at, mod.name, event, error);
    }
  }
  const nouns = Object.entries(built).filter(([noun]) => !(noun in base));
  const methods = nouns.flatMap(([noun, methods]) =>
    Object.entries<unknown>(Object(methods)).map(([method, call]) => [`${noun}.${method}`, call] as const)
  );
  return Object.fromEntries(methods.flatMap(([event, call]) => {
    if (typeof call !== "function") return [];
    return [[event, { fields: (input: unknown) => ({ ...Object(input) }), serve: (e: Data) => call(e) }]];
  }));
}

/** Returns a message for each event by name that never occurs. */
function silentHooks(run: ModRun): readonly string[] {
  const names = new Map<string, Set<string>>();
  for (const { pattern, mod } of run.links) {
    if (/[*!]/.test(pattern) || !unsupported(pattern, run)) continue;
    names.set(pattern, (names.get(pattern) ?? new Set()).add(mod.name));
  }
  return [...names].map(([event, mods]) =>
    `Hooks of ${event} never run: ${unsupported(event, run)}. Mods with such hooks: ${[...mods].join(", ")}.`
  );
}

/** The mods of runs. A subagent has those of the run that it works for. */
export class ModRuns {
  readonly #mods: readonly Mod[];
  readonly #options: Resolved;
  readonly #byRun = new WeakMap<object, Promise<ModRun>>();
  readonly #bySession = new Map<string, Promise<ModRun>>();

  constructor(mods: readonly Mod[], options: Resolved) {
    this.#mods = mods;
    this.#options = options;
  }

  /** Returns the mods of a run, and loads them the first time. */
  of(ctx: Scope): Promise<ModRun> {
    const run = outermostRun(ctx.run);
    const known = this.#byRun.get(run);
    if (known) return known;
    const { owner = null, session } = run;
    const key = JSON.stringify([owner, session]);
    const isKept = this.#options.lifetime === "session";
    const loading = (isKept ? this.#bySession.get(key) : undefined) ?? loadMods(this.#mods, this.#options, ctx);
    this.#byRun.set(run, loading);
    if (isKept) this.#keep(key, loading);
    return loading;
  }

  #keep(key: string, loading: Promise<ModRun>): void {
    this.#bySession.delete(key);
    this.#bySession.set(key, loading);
    loading.catch(() => this.#bySession.delete(key)); // the run that waits for it fails
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > maxSessions && oldest !== undefined) this.#bySession.delete(oldest);
  }
}

/** The number of sessions whose modules are kept. */
const maxSessions = 1_000;
