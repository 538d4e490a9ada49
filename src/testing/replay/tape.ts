/**
 * Tapes: each collects the values that a run receives from outside.
 *
 * @module
 */
import type { AgentParts, WrapHooks } from "../../core/definition.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { Run, Scope } from "../../core/scope.ts";
import type { RecordedEmit } from "../../core/state.ts";
import type { Session } from "../../core/session.ts";
import { readSession } from "../../core/session_version.ts";
import type { RunStore } from "../../core/store.ts";
import type { Model, ModelEvent, ModelRequest } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage, usageSince } from "../../protocol/message.ts";
import { type RecordedEntry, type RecordedInput, type RecordedOrder, recordError } from "./recording.ts";

/** The name of the middleware that records or replaces what comes from outside the run. Traces do not contain it. */
export const innermost = "~replay";

/** Returns the trace of an agent, which leaves out the innermost middleware. */
export function withoutInnermost(
  { wrapHooks }: Pick<AgentParts, "wrapHooks">,
): Pick<AgentParts, "wrapHooks"> {
  if (!wrapHooks) return { wrapHooks };
  const outer: WrapHooks = (point, name, hook) => name === innermost ? hook : wrapHooks(point, name, hook);
  return { wrapHooks: Object.assign(outer, wrapHooks) };
}

/** An entry before it has a source and a time. */
type Input = RecordedInput extends infer E ? E extends RecordedInput ? Omit<E, "source" | "at"> : never : never;
type Order = RecordedOrder extends infer E ? E extends RecordedOrder ? Omit<E, "source" | "at"> : never : never;

/** Collects the entries and events of one run. */
export class Tape {
  /** The start, in milliseconds since 1970. */
  readonly startedAt: number = Date.now();
  /** The entries so far. */
  readonly entries: RecordedEntry[] = [];
  /** The events so far. */
  readonly events: Event[] = [];
  /** The times that hooks have read, in milliseconds since 1970. */
  readonly times: number[] = [];
  /** The stored session before the run. */
  before: Session | undefined;
  /** The id of the agent's model. */
  model: string | undefined;
  /** The number of executions that run now. */
  #running = 0;
  /** The tokens that the run had used at the last entry. */
  #usage: Usage = noUsage;
  readonly #taped = new WeakMap<Model, Model>();
  readonly #counts = new Map<string, number>();
  readonly #start = performance.now();

  /** Returns a clock whose times are recorded. */
  timed(now: () => number = Date.now): () => number {
    return () => {
      const time = now();
      this.times.push(time);
      return time;
    };
  }

  /** Adds an order of the caller. */
  order(order: Order): void {
    this.entries.push({ source: "caller", at: this.#now(), ...order });
  }

  /** Records a model. */
  taped(model: Model): Model {
    const known = this.#taped.get(model);
    if (known) return known;
    const stream = (request: ModelRequest, options: { readonly signal: AbortSignal }) =>
      this.#record(model, request, options);
    const taped = { id: model.id, stream };
    this.#taped.set(model, taped).set(taped, taped);
    return taped;
  }

  /** Records the models that hooks choose, and the executions of tools. As the innermost, it sees them before any hook. */
  readonly middleware: Middleware = {
    name: innermost,
    inherit: false,
    model: (ctx, next) => next({ request: { model: this.taped(ctx.request.model) } }),
    execute: async (ctx, next) => {
      if (this.#running++ === 0) this.#usage = ctx.run.usage; // between batches, the run itself uses tokens
      const source = this.#source(ctx.callId);
      this.#add(source, { type: "call", call: ctx.callId, name: ctx.tool.name, input: ctx.input });
      const before = new Map(ctx.run.sessionState);
      const leave = () => {
        this.#spend(source, ctx.run.usage);
        if (ctx.tool["~execute"]) this.#addShared(source, before, ctx.run);
      };
      try {
        const result = await next({ emit: this.#emitOf(source, ctx) });
        leave();
        const { error: _, ...kept } = result;
        this.#add(source, { type: "result", result: kept });
        return result;
      } catch (error) {
        leave();
        this.#add(source, { type: "threw", error: recordError(error) });
        throw error;
      } finally {
        this.#running--;
      }
    },
  };

  /** Returns the `emit` of a tool, which records its events and the state that it sets. */
  #emitOf(source: string, { run, emit }: Pick<Scope, "run" | "emit">): RecordedEmit {
    const recorded = (event: Event) => {
      this.#spend(source, run.usage);
      this.#add(source, { type: "emit", event });
      emit(event);
    };
    const set: RecordedEmit["~set"] = (lifetime, name, value) =>
      this.#add(source, { type: "state", lifetime, name, value: structuredClone(value) });
    return Object.assign(recorded, { "~set": set });
  }

  /** Records the state of the session that was set while a subagent ran, which a replay does not run. */
  #addShared(source: string, before: ReadonlyMap<string, unknown>, { sessionState }: Run): void {
    for (const [name, value] of sessionState) {
      if (value === before.get(name)) continue;
      this.#add(source, { type: "state", lifetime: "session", name, value: structuredClone(value) });
    }
  }

  /** Records the tokens that a subagent has used since the last entry. */
  #spend(source: string, usage: Usage): void {
    const spent = addUsage(noUsage, usageSince(usage, this.#usage));
    this.#usage = usage;
    if (spent.input + spent.output > 0) this.#add(source, { type: "spend", usage: spent });
  }

  async *#record(
    model: Model,
    request: ModelRequest,
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly ModelEvent[]> {
    const source = this.#source("model");
    this.#add(source, { type: "model", model: model.id });
    try {
      for await (const events of model.stream({ ...request, model }, options)) {
        this.#add(source, { type: "read", events });
        yield events;
      }
    } catch (error) {
      this.#add(source, { type: "threw", error: recordError(error) });
      throw error;
    }
    this.#add(source, { type: "end" });
  }

  /** Returns the name of the next source of a kind: `model-1`, `model-2`. */
  #source(kind: string): string {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return `${kind}-${count}`;
  }

  #add(source: string, input: Input): void {
    this.entries.push({ source, at: this.#now(), ...input });
  }

  #now(): number {
    return Math.round((performance.now() - this.#start) * 1_000) / 1_000;
  }
}

/** Returns a store whose first loaded session is kept on the tape. */
export function watchedStore(store: RunStore, tape: Tape): RunStore {
  const { journal } = store;
  let loaded = false;
  return {
    ...store,
    journal: {
      ...journal,
      async open(key) {
        const opened = await journal.open(key);
        if (!loaded) tape.before = opened && readSession(opened, opened.session ?? key).session;
        loaded = true;
        return opened;
      },
    },
  };
}
