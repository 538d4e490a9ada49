/**
 * The events of a run: numbered at the end of every chain of filters, then written to the sink. Errors go to `onError`.
 *
 * @module
 */
import { expectJson } from "./lib/json.ts";
import type { Emit, Event, Point, WarningCode } from "../protocol/event.ts";
import type { Sink } from "../stream/channel.ts";
import { nextTick } from "../stream/tick.ts";

// The default receiver of errors. No other file of `src` writes to the console.

/** Writes an error to the console, with the id that clients see in its place, and its run, if one had begun. */
export function logError(error: unknown, { id, run }: ErrorInfo): void {
  console.error(run === undefined ? `Error ${id}:` : `Error ${id} in run ${run}:`, error);
}

// The events of a run, and their sink.

/** An event and its number in the run. */
export interface NumberedEvent {
  /** The event. */
  readonly event: Event;
  /** The number in the run, from 1. */
  readonly id: number;
  /** The event as JSON on one line, if it was stored so. */
  readonly line?: string;
}

/** The types of the events that hooks and tools emit. */
const fromTools: ReadonlySet<Event["type"]> = new Set(["tool.progress", "data", "notice", "warning"]);

/**
 * The ids of a reported error, by which a log is searched, as far as they are known. It is JSON without content:
 * `console.log(JSON.stringify({ error: String(error), ...info }))` is a complete line.
 */
export interface ErrorInfo {
  /** The id that clients see in place of the error. */
  readonly id: string;
  /** The id of the run; of a child run its own. Default: none had begun. */
  readonly run?: string | undefined;
  /** The id of the session. Default: the error belongs to none. */
  readonly session?: string | undefined;
  /** The owner of the session. Default: there are no owners, or the client was not identified. */
  readonly owner?: string | undefined;
  /** The id of the trace in the `traceparent` of the request: 32 hexadecimal digits. Default: the request had none. */
  readonly trace?: string | undefined;
}

/** The run, the session, the owner and the trace of an error. */
export type ErrorPlace = Omit<ErrorInfo, "id">;

/** Returns a place without the parts that are not known. */
export function errorPlace({ run, session, owner, trace }: ErrorPlace): ErrorPlace {
  return {
    ...(run !== undefined && { run }),
    ...(session !== undefined && { session }),
    ...(owner !== undefined && { owner }),
    ...(trace !== undefined && { trace }),
  };
}

/** Receives every error with the id that clients see in its place, and with its run, session, owner and trace. */
export type OnError = (error: unknown, info: ErrorInfo) => void;

/** The receivers of a run's events. */
interface Audience {
  readonly sink: Sink<NumberedEvent>;
  readonly observers: readonly ((event: Event) => void)[];
  readonly onError: OnError;
  /** Returns the event that follows an event, if there is one: a change of the streamed output. */
  readonly derive: ((event: Event) => Event | undefined) | undefined;
}

/** The details of a warning. */
interface WarningDetails {
  readonly middleware?: string;
  readonly point?: Point;
  /** The thrown value, for the operator. */
  readonly error?: unknown;
}

/** The events of one run. */
export class Events {
  /** The number of the last event. */
  count: number;
  /** True once the run is over. Later events are dropped. */
  closed = false;
  /** The functions that receive each event, as clients do. */
  observers: Audience["observers"];
  readonly #place: ErrorPlace;
  readonly #audience: Audience;
  /** The type of the event that `emitThrough()` emits, until a filter has passed it on. */
  #due: Event["type"] | undefined;
  /** Cancels the release of the gathered events. */
  #cancelRelease: (() => void) | undefined;

  /** Continues after the event with the number `count`. */
  constructor(place: ErrorPlace, count: number, audience: Audience) {
    this.#place = place;
    this.count = count;
    this.observers = audience.observers;
    this.#audience = audience;
  }

  /** The latest progress of each call that was not written, because the receivers are slower than the tools. */
  #waiting: Map<string, Event> | undefined;

  /** Numbers an event and writes it. */
  readonly emit: Emit = (event) => {
    if (this.closed) return;
    if (fromTools.has(event.type)) {
      expectJson(`Cannot emit ${event.type}`, "data" in event ? event.data : event, { convert: false }); // receivers call toJSON(), if there are any
    }
    if (event.type === this.#due) this.#due = undefined;
    const { observers } = this;
    if (observers.length > 0) this.#observe(observers, event);
    if (event.type === "tool.progress" && this.#audience.sink.congested) {
      this.#waiting ??= new Map();
      this.#waiting.set(event.call, event);
      return;
    }
    if (this.#waiting) this.#writeWaiting(this.#waiting, event);
    this.#write(event);
    const next = this.#audience.derive?.(event);
    if (next) this.emit(next);
  };

  /** Emits an event through the filters of `emit`. Throws a `TypeError` if one drops it. */
  emitThrough(emit: Emit, event: Event): void {
    this.#due = event.type;
    emit(event);
    if (this.#due === event.type && !this.closed) {
      throw new TypeError(`Cannot drop ${event.type}: a filter may drop only deltas, progress, notices and data`);
    }
  }

  /** Accepts an event of `emitThrough()` that a filter emits later, in its place among the events that the filter holds back. */
  defer(event: Event): void {
    if (event.type === this.#due) this.#due = undefined;
  }

  /** Emits a warning, and reports the error behind it to the operator. */
  warn(code: WarningCode, message: string, { error, ...details }: WarningDetails = {}): void {
    const id = error === undefined ? undefined : this.report(error);
    this.emit({ type: "warning", code, message, ...details, ...(id !== undefined && { error: id }) });
  }

  /** Reports an error to the operator. Returns the id that a client may see. */
  report(error: unknown): string {
    const id = crypto.randomUUID();
    const fail = () => {
      if (!this.closed) {
        this.#write({ type: "warning", code: "observer.failed", message: "onError failed.", error: id });
      }
    };
    callSafely(() => this.#audience.onError(error, { id, ...this.#place }), fail);
    return id;
  }

  /** Sends the events of one burst together: at the latest when the event loop turns. */
  gather(): void {
    if (this.closed) return;
    this.#audience.sink.cork();
    this.#cancelRelease ??= nextTick(() => this.#release());
  }

  #release(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    this.#audience.sink.uncork();
  }

  /** Drops later events. */
  mute(): void {
    this.closed = true;
  }

  /** Ends the stream. */
  close(): void {
    this.mute();
    this.#release();
    this.#audience.sink.close();
  }

  /** Writes the latest progress of a call before its result. Newer progress replaces it. */
  #writeWaiting(waiting: Map<string, Event>, event: Event): void {
    if (event.type !== "tool.progress" && event.type !== "tool.finished") return;
    const latest = waiting.get(event.call);
    waiting.delete(event.call);
    if (latest && event.type === "tool.finished") this.#write(latest);
  }

  #write(event: Event): void {
    const id = ++this.count;
    try {
      this.#audience.sink.write({ event, id });
    } catch (error) {
      this.count = id - 1; // an event that cannot be encoded gets no number
      throw error;
    }
  }

  #observe(observers: Audience["observers"], event: Event): void {
    for (const observe of observers) callSafely(() => observe(event), (error) => this.report(error));
  }
}

/** Calls a function that may also return a promise or a thenable. `fail` receives what it throws or rejects with. */
export function callSafely(call: () => unknown, fail: (error: unknown) => void): void {
  try {
    const returned = call();
    if (typeof returned === "object" && returned !== null) Promise.resolve(returned).catch(fail);
  } catch (error) {
    fail(error);
  }
}
