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
import { later, type Stopping } from "./abandon.ts";
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
  /** What happened. */
  readonly event: Event;
  /** Its number in the run, from 1. */
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
  slots: Slots;
  readonly state = new Map<string, unknown>();
  readonly session: string;
  readonly view: Run;
  readonly answers = new Map<string, PersonAnswer>();
  readonly #onError: OnError | undefined;
  readonly #controller = new AbortController();
  /** Aborts when the run should stop. */
  readonly signal: AbortSignal = this.#controller.signal;
  /** Whether it has. */
  aborted = false;
  readonly #leaving = new Set<() => void>();
  #closed = false;
  /** What was announced, until it arrives. */
  #due: Event["type"] | undefined;
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
  /** The transcript as it was when the run began, for a rollback. */
  before: readonly Message[] = [];
  pending: Pending | undefined;
  /** The pause that it unwinds with. */
  pausing: Pause | undefined;
  /** Gives up on the batch that is being run: unwinds its calls and answers them. */
  unfinished: (() => void) | undefined;
  /** The cleanup, once it has begun. */
  cleaning: Promise<void> | undefined;
  /** What the session was opened with, and the emit outside of `prompt`. */
  #settings: Settings | undefined;
  outer: Emit = (event) => this.emit(event);
  /** What was shown of an answer that is not complete: what a hook held back or changed is not kept as it was. */
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
  /** The middleware that gave the last answer. */
  author: string | undefined;
  ended: End | undefined;
  /** Why no other turn begins, where none does. */
  draining: string | undefined;
  /** What it failed with. */
  failure: { readonly error: unknown } | undefined;
  /** Failures that were judged to be its end. */
  readonly judged = new Set<unknown>();

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

  /** Why it should stop: an `AbortError` whose message is the reason. */
  get reason(): unknown {
    return this.signal.reason;
  }

  /** Calls `leave` when the run should stop: one listener for all of them. */
  onAbort(leave: () => void): () => void {
    this.#leaving.add(leave);
    return () => this.#leaving.delete(leave);
  }

  /** Stops the run. The first reason counts. */
  abort(reason: string): void {
    if (this.aborted || this.#closed) return;
    this.aborted = true;
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
    if (event.type === this.#due) this.#due = undefined;
    if (this.blueprint.observers.length > 0) this.#show(event);
    this.#write(event);
  };

  /** Emits an event that no filter may leave out. */
  announce(emit: Emit, event: Event): void {
    if (droppable(event)) return emit(event);
    this.#due = event.type;
    emit(event);
    if (this.#due === event.type && !this.#closed) {
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
    try {
      this.#onError?.(error, { id, run: this.id });
    } catch {
      this.#write({
        type: "warning",
        code: "observer.failed",
        message: "onError failed, and was not told.",
        error: id,
      });
    }
    return id;
  }

  /** Throws where the run has ended or should stop. */
  checkpoint(): void {
    if (this.ended) throw this.ended;
    if (this.pausing) throw this.pausing;
    this.signal.throwIfAborted();
  }

  /** Pauses the run, whatever hooks make of the `Pause` they see; `where` is where it goes on. */
  hold(pause: Pause, where: Omit<Pending, "questions"> = {}): Pause {
    const questions = [...this.pending?.questions ?? [], ...pause.questions];
    this.pending = { ...this.pending, ...where, questions };
    this.pausing = pause;
    return pause;
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
    this.#learn(messages);
  }

  /** Replaces the transcript by `messages`, mended. */
  replace(messages: readonly Message[], point: Point, middleware?: string): void {
    this.messages = this.mended(messages, point, middleware);
    this.#learn(this.messages);
  }

  /** `messages`, valid; what had to be mended is told, with the point and the middleware that it comes from. */
  mended(messages: readonly Message[], point: Point, middleware?: string): readonly Message[] {
    const checked = mend(messages);
    if (checked.problems.length > 0) {
      this.warn("transcript.repaired", `The messages were not valid: ${checked.problems.join("; ")}`, {
        point,
        ...(middleware !== undefined && { middleware }),
      });
    }
    return checked.messages;
  }

  /** A call's id is never used again, also where its message was left out since. */
  #learn(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === "assistant") { for (const { id } of callsOf(message)) this.#ids?.add(id); }
    }
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
    const tools = settings.tools as readonly AnyTool[]; // what they need of vars, `run()` requires
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.definitions = [...this.tools.values()].map(({ definition }) => definition);
    if (settings.limits !== this.limits) {
      this.limits = limited(this.limits, settings.limits);
      if (this.path.length === 0) this.slots = new Slots(this.limits.parallel);
      this.arm();
    }
  }

  /** Starts the clock. */
  arm(): void {
    clearTimeout(this.#deadline);
    this.#deadline = later(() => this.abort("deadline"), this.limits.time);
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
    const { id, startedAt, events, usage, turns, calls, continuations, batches, outputs, pending, before } = this;
    const since = this.messages.findIndex((message, index) => message !== before[index]);
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
      outputs,
      before: since < 0 ? this.messages.length : since,
      state: [...this.state],
      ...(pending && { pending }),
    };
  }

  /** Goes on where a record ends. */
  restore(record: RunRecord): void {
    const { id, startedAt, events, usage, turns, calls, continuations, batches, outputs } = record;
    Object.assign(this, { id, startedAt, events, usage, turns, calls, continuations, batches, outputs });
    for (const [name, value] of record.state) this.state.set(name, value);
    this.before = this.messages.slice(0, record.before);
    const { prompt, questions, ...where } = record.pending ?? { questions: [] };
    this.prompt = prompt && [prompt];
    this.pending = { ...where, questions: questions.filter(({ callId }) => callId !== undefined) };
  }

  /** Nothing that comes later is heard. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#deadline);
    this.#leaving.clear();
    this.sink.close();
  }

  #write(event: Event): void {
    this.events++;
    this.sink.write({ event, id: this.events });
  }

  #show(event: Event): void {
    for (const observe of this.blueprint.observers) {
      try {
        observe(event);
      } catch (error) {
        this.report(error);
      }
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
    report: (error) => live.report(error),
    end(reason, options) {
      live.ended ??= new End(reason, options);
      return live.ended;
    },
    pause: (question) => new Pause([{ questions: [question] }]),
  };
}
