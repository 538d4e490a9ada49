/**
 * The events of a run that wait until they are stored. They are sent in order, and the run waits while there are too many.
 *
 * @module
 */
import type { NumberedEvent } from "./events.ts";
import type { Sink } from "../stream/channel.ts";
import { lineOf } from "../stream/sse.ts";

/** The number of waiting characters from which on the run has to wait. */
const highWater = 65_536;

/** Events that wait, in order. A class, because a server keeps one for each stream. */
export class WaitingEvents {
  readonly #out: Sink<NumberedEvent>;
  #events: NumberedEvent[] = [];
  /** The number of characters of their lines. */
  #length = 0;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(out: Sink<NumberedEvent>) {
    this.#out = out;
  }

  get count(): number {
    return this.#events.length;
  }

  /** True if the run has to wait. */
  get isFull(): boolean {
    return this.#length >= highWater;
  }

  /** Resolves once the run need not wait. */
  get room(): Promise<void> {
    return (this.#room ??= Promise.withResolvers()).promise;
  }

  add(event: NumberedEvent): void {
    this.#events.push(event);
    this.#length += event.line?.length ?? 0;
  }

  /** Returns how many of the events have at most this number. */
  countUpTo(number: number): number {
    const after = this.#events.findIndex(({ id }) => id > number);
    return after < 0 ? this.count : after;
  }

  /** Returns the first events, each as JSON on one line. */
  lines(count = this.count): readonly string[] {
    return this.#events.slice(0, count).map(({ event, line = lineOf(event) }) => line);
  }

  /** Sends the first events. */
  send(count = this.count): void {
    const sent = this.#events.splice(0, count);
    if (sent.length > 1) this.#out.cork();
    for (const event of sent) {
      this.#length -= event.line?.length ?? 0;
      this.#out.write(event);
    }
    if (sent.length > 1) this.#out.uncork();
    if (!this.isFull) this.endWait();
  }

  /** Lets the run continue. */
  endWait(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** Drops all events. */
  drop(): void {
    this.#events = [];
    this.#length = 0;
    this.endWait();
  }
}
