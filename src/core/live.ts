/**
 * A run while it lives: what the engine knows of it. Hooks are shown its `view`.
 *
 * @module
 */
import type { Emit, Event, Point, WarningCode } from "../protocol/event.ts";
import { droppable } from "../protocol/event.ts";
import {
  addUsage,
  type AssistantMessage,
  type Call,
  callsOf,
  type Message,
  noUsage,
  type Usage,
} from "../protocol/message.ts";
import type { Pending, PersonAnswer, RunRecord } from "../protocol/session.ts";
import type { ToolDefinition } from "../model/model.ts";
import type { Sink } from "../stream/channel.ts";
import type { Stopping } from "./abandon.ts";
import type { Blueprint } from "./blueprint.ts";
import { End, Pause } from "./interrupt.ts";
import { limited, type Limits } from "./limits.ts";
import type { Settings } from "./points.ts";
import type { Run, Scope } from "./scope.ts";
import { Slots } from "./slots.ts";
import type { Store } from "./store.ts";
import { mend } from "./transcript.ts";
import type { AnyTool } from "./tool.ts";

/** An event and its number in the run, from 1. */
export interface Numbered {
  readonly event: Event;
  readonly id: number;
}

/** Told of what went wrong; `id` is what the client was told instead. */
export type OnError = (error: unknown, info: { readonly id: string; readonly run: string }) => void;

/** What a run begins with. */
export interface LiveOptions {
  readonly blueprint: Blueprint;
  readonly session: string;
  readonly sink: Sink<Numbered>;
  readonly vars: unknown;
  readonly limits: Limits;
  readonly parent?: { readonly live: Live } | undefined;
  readonly onError?: OnError | undefined;
}

/** The engine's own record of a run. */
export class Live implements Stopping {
  readonly blueprint: Blueprint;
  readonly sink: Sink<Numbered>;
  readonly vars: unknown;
  readonly path: readonly string[];
  readonly slots: Slots;
  readonly state = new Map<string, unknown>();
  readonly session: string;
  readonly view: Run;
  readonly answers = new Map<string, PersonAnswer>();
  readonly #onError: OnError | undefined;
  readonly #controller = new AbortController();
  readonly #leaving = new Set<() => void>();
  #closed = false;
  #last: Event | undefined;
  #ids: Set<string> | undefined;
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #keeping: { readonly store: Store; readonly version: number; readonly always: boolean } | undefined;

  id: string = crypto.randomUUID();
  startedAt: number = Date.now();
  limits: Limits;
  tools: ReadonlyMap<string, AnyTool> = new Map();
  definitions: readonly ToolDefinition[] = [];
  /** A prompt that was not accepted yet, and the messages before it. */
  prompt: readonly Message[] | undefined;
  messages: readonly Message[] = [];
  /** How long the transcript was when the run began, for a rollback. */
  base = 0;
  pending: Pending | undefined;
  paused = false;
  /** The message whose calls are being run. */
  unfinished: AssistantMessage | undefined;
  /** The cleanup, once it has begun. */
  cleaning: Promise<void> | undefined;
  /** What the session was opened with, and the emit outside of `prompt`. */
  #settings: Settings | undefined;
  outer: Emit = (event) => this.emit(event);
  /** What the model has said of an answer that is not complete. */
  partial: (() => AssistantMessage) | undefined;
  /** Calls that have no result yet. */
  open: readonly Call[] = [];
  usage: Usage = noUsage;
  turns = 0;
  calls = 0;
  continuations = 0;
  batches = 0;
  outputs = 0;
  events = 0;
  ended: End | undefined;
  /** Why no other turn begins, where none does. */
  draining: string | undefined;
  /** The failure that was judged already. */
  judged: { readonly error: unknown } | undefined;

  /** Begins a run. */
  constructor({ blueprint, session, sink, vars, limits, parent, onError }: LiveOptions) {
    this.blueprint = blueprint;
    this.session = session;
    this.sink = sink;
    this.vars = vars;
    this.limits = limits;
    this.path = parent ? [...parent.live.path, parent.live.blueprint.name] : [];
    this.slots = parent ? parent.live.slots : new Slots(limits.parallel);
    this.#onError = onError;
    this.view = viewOf(this);
  }

  /** Aborts when the run should stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the run should stop. */
  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Why it should stop: an `AbortError` whose message is the reason. */
  get reason(): unknown {
    return this.#controller.signal.reason;
  }

  /** Calls `leave` when the run should stop: one listener for all of them. */
  onAbort(leave: () => void): () => void {
    this.#leaving.add(leave);
    return () => this.#leaving.delete(leave);
  }

  /** Stops the run. The first reason counts. */
  abort(reason: string): void {
    if (this.aborted || this.#closed) return;
    this.#controller.abort(new DOMException(reason, "AbortError"));
    for (const leave of this.#leaving) leave();
  }

  /** What hooks at the outermost layer of a point are given. */
  scope(): Scope {
    return { run: this.view, signal: this.signal, emit: this.emit, vars: this.vars };
  }

  /** The end of every chain of filters: numbers an event and writes it down. */
  readonly emit: Emit = (event) => {
    if (this.#closed) return;
    this.#last = event;
    this.events++;
    for (const observe of this.blueprint.observers) this.#show(observe, event);
    this.sink.write({ event, id: this.events });
  };

  /** Emits an event that no filter may leave out. */
  announce(emit: Emit, event: Event): void {
    emit(event);
    if (emit !== this.emit && !this.#closed && this.#last?.type !== event.type && !droppable(event)) {
      throw new TypeError(`Cannot leave out ${event.type}: a filter may drop only deltas, progress, notices and data`);
    }
  }

  /** Warns whoever watches, and tells the operator the error behind it. */
  warn(
    code: WarningCode,
    message: string,
    more: { readonly middleware?: string; readonly point?: Point; readonly error?: unknown } = {},
  ): void {
    const { error, ...where } = more;
    const id = error === undefined ? undefined : this.report(error);
    this.emit({ type: "warning", code, message, ...where, ...(id !== undefined && { error: id }) });
  }

  /** Tells the operator what went wrong; gives the id that a client may be told. */
  report(error: unknown): string {
    const id = crypto.randomUUID();
    this.#onError?.(error, { id, run: this.id });
    return id;
  }

  /** Throws where the run has ended or should stop. */
  checkpoint(): void {
    if (this.ended) throw this.ended;
    this.signal.throwIfAborted();
  }

  /** Whether the session has a call of this id. */
  knows(id: string): boolean {
    this.#ids ??= new Set(
      this.messages.flatMap((message) => message.role === "assistant" ? callsOf(message) : []).map((call) => call.id),
    );
    return this.#ids.has(id);
  }

  /** Adds to the transcript. */
  push(...messages: readonly Message[]): void {
    if (this.#closed || messages.length === 0) return;
    this.messages = [...this.messages, ...messages];
    for (const message of messages) {
      if (message.role === "assistant") { for (const { id } of callsOf(message)) this.#ids?.add(id); }
    }
  }

  /** Replaces the transcript by a mended `messages`, and says who broke what. */
  replace(messages: readonly Message[], by: { readonly middleware?: string; readonly point: Point }): void {
    this.messages = this.mended(messages, by);
  }

  /** `messages`, valid; what had to be mended is told. */
  mended(
    messages: readonly Message[],
    by: { readonly middleware?: string; readonly point: Point },
  ): readonly Message[] {
    const checked = mend(messages);
    if (checked.problems.length > 0) {
      this.warn("transcript.repaired", `The messages were not valid: ${checked.problems.join("; ")}`, by);
    }
    return checked.messages;
  }

  /** Counts tokens. */
  spend(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
  }

  /** What the session was opened with. */
  get settings(): Settings {
    if (!this.#settings) throw new Error("Cannot read settings: the session is not open");
    return this.#settings;
  }

  /** Opens the session with `settings`; its `emit` is the one outside of the prompt. */
  settle(settings: Settings, { emit }: Scope): void {
    this.#settings = settings;
    this.outer = emit;
    this.tools = new Map(settings.tools.map((tool) => [tool.name, tool]));
    this.definitions = settings.tools.map(({ definition }) => definition);
    if (settings.limits !== this.limits) {
      this.limits = limited(this.limits, settings.limits);
      this.arm();
    }
  }

  /** Starts the clock. */
  arm(): void {
    clearTimeout(this.#deadline);
    if (this.limits.time !== Infinity) this.#deadline = setTimeout(() => this.abort("deadline"), this.limits.time);
  }

  /** Says where the session is kept; without `always` it is only where the run pauses. */
  keep(keeping: { readonly store: Store; readonly version: number; readonly always: boolean }): void {
    this.#keeping = keeping;
  }

  /** Saves the session; gives whether it is still this run's. */
  async save(status: RunRecord["status"] | "ended" = "running"): Promise<boolean> {
    const { store, version = 0, always } = this.#keeping ?? {};
    if (!store || !(always || status === "paused")) return true;
    const { session: id, messages } = this;
    const saved = await store.save({ id, version, messages, ...(status !== "ended" && { run: this.record(status) }) });
    if (saved === undefined) return false;
    this.#keeping = { store, version: saved, always: true };
    return true;
  }

  /** What is kept of the run. */
  record(status: RunRecord["status"]): RunRecord {
    const { id, startedAt, events, usage, turns, calls, continuations, batches, pending } = this;
    return {
      id,
      status,
      startedAt,
      events: status === "paused" ? events + 1 : events, // run.paused is still to come
      usage,
      turns,
      calls,
      continuations,
      batches,
      state: [...this.state],
      ...(pending && { pending }),
    };
  }

  /** Goes on where a record ends. */
  restore({ id, startedAt, events, usage, turns, calls, continuations, batches, state, pending }: RunRecord): void {
    Object.assign(this, { id, startedAt, events, usage, turns, calls, continuations, batches, pending });
    for (const [name, value] of state) this.state.set(name, value);
  }

  /** Nothing that comes later is heard. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#deadline);
    this.#leaving.clear();
    this.sink.close();
  }

  #show(observe: (event: Event) => void, event: Event): void {
    try {
      observe(event);
    } catch (error) {
      this.report(error);
    }
  }
}

/** What hooks see of a run. */
function viewOf(live: Live): Run {
  return {
    get id() {
      return live.id;
    },
    session: live.session,
    get startedAt() {
      return live.startedAt;
    },
    path: live.path,
    state: live.state,
    get usage() {
      return live.usage;
    },
    get used() {
      const { turns, calls, continuations } = live;
      return { turns, calls, continuations };
    },
    get limits() {
      return live.limits;
    },
    end(reason, options) {
      live.ended ??= new End(reason, options);
      return live.ended;
    },
    pause: (question) => new Pause([{ questions: [question] }]),
  };
}
