/**
 * The end of every chain of filters: what happened in a run is numbered here, and written down.
 *
 * @module
 */
import type { Emit, Event, Point, WarningCode } from "../protocol/event.ts";
import type { Sink } from "../stream/channel.ts";

/** An event and its number in the run, from 1. */
export interface NumberedEvent {
  /** What happened. */
  readonly event: Event;
  /** Its number in the run, from 1. */
  readonly id: number;
}

/** Told of what went wrong; `id` is what the client was told instead. */
export type OnError = (error: unknown, info: { readonly id: string; readonly run: string }) => void;

/** Who hears of a run. */
export interface Audience {
  readonly sink: Sink<NumberedEvent>;
  readonly observers: readonly ((event: Event) => void)[];
  readonly onError: OnError | undefined;
}

/** What a warning says beside its message. */
export interface WarningDetails {
  readonly middleware?: string;
  readonly point?: Point;
  /** What was thrown: for the operator alone. */
  readonly error?: unknown;
}

/** The events of one run. */
export class Events {
  /** How many there were. */
  count = 0;
  /** Whether the run is over: nothing that comes later is heard. */
  closed = false;
  readonly #run: { readonly id: string };
  readonly #audience: Audience;
  /** What was announced, until it arrives. */
  #due: Event["type"] | undefined;

  /** Begins at 1. */
  constructor(run: { readonly id: string }, audience: Audience) {
    this.#run = run;
    this.#audience = audience;
  }

  /** Numbers an event, and writes it down. */
  readonly emit: Emit = (event) => {
    if (this.closed) return;
    if (event.type === this.#due) this.#due = undefined;
    const { observers } = this.#audience;
    if (observers.length > 0) this.#show(observers, event);
    this.#write(event);
  };

  /** Emits an event that no filter may leave out. */
  announce(emit: Emit, event: Event): void {
    this.#due = event.type;
    emit(event);
    if (this.#due === event.type && !this.closed) {
      throw new TypeError(`Cannot leave out ${event.type}: a filter may drop only deltas, progress, notices and data`);
    }
  }

  /** Warns whoever watches, and tells the operator the error behind it. */
  warn(code: WarningCode, message: string, { error, ...where }: WarningDetails = {}): void {
    const id = error === undefined ? undefined : this.report(error);
    this.emit({ type: "warning", code, message, ...where, ...(id !== undefined && { error: id }) });
  }

  /** Tells the operator what went wrong; gives the id that a client may be told. */
  report(error: unknown): string {
    const id = crypto.randomUUID();
    try {
      this.#audience.onError?.(error, { id, run: this.#run.id });
    } catch {
      const message = "onError failed, and was not told.";
      this.#write({ type: "warning", code: "observer.failed", message, error: id });
    }
    return id;
  }

  /** Ends the stream. */
  close(): void {
    this.closed = true;
    this.#audience.sink.close();
  }

  #write(event: Event): void {
    this.count++;
    this.#audience.sink.write({ event, id: this.count });
  }

  #show(observers: Audience["observers"], event: Event): void {
    for (const observe of observers) {
      try {
        observe(event);
      } catch (error) {
        this.report(error);
      }
    }
  }
}
