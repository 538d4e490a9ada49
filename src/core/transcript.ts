/**
 * The transcript of a run's session: it grows, it may be replaced, and it is always valid.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";
import { callsOf, type Message, textOf } from "../protocol/message.ts";
import type { Events } from "./events.ts";
import { mend } from "./mend.ts";

/** The messages of a session, while a run has it. */
export class Transcript {
  messages: readonly Message[] = [];
  /** What they were when the run began, for a rollback. */
  before: readonly Message[] = [];
  readonly #events: Events;
  #ids: Set<string> | undefined;

  /** Begins without messages; `events` is told of what had to be mended. */
  constructor(events: Events) {
    this.#events = events;
  }

  /** Adds messages; after the run's end nothing is added any more. */
  push(...messages: readonly Message[]): void {
    if (this.#events.closed || messages.length === 0) return;
    this.messages = [...this.messages, ...messages];
    this.#learn(messages);
  }

  /** Replaces the messages by `messages`, mended. */
  replace(messages: readonly Message[], point: Point, middleware?: string): void {
    this.messages = this.mended(messages, point, middleware);
    this.#learn(this.messages);
  }

  /** The text of what the model said last in the run. */
  get said(): string {
    const last = this.messages.findLast((message) => message.role === "assistant");
    return last && !this.before.includes(last) ? textOf(last) : "";
  }

  /** Takes back what the run added. */
  rollBack(): void {
    this.messages = this.before;
  }

  /** `messages`, valid; what had to be mended is told, with the point and the middleware that it comes from. */
  mended(messages: readonly Message[], point: Point, middleware?: string): readonly Message[] {
    const checked = mend(messages);
    if (checked.problems.length > 0) {
      this.#events.warn("transcript.repaired", `The messages were not valid: ${checked.problems.join("; ")}`, {
        point,
        ...(middleware !== undefined && { middleware }),
      });
    }
    return checked.messages;
  }

  /** Whether there is, or was, a call of this id. */
  knows(id: string): boolean {
    if (!this.#ids) {
      this.#ids = new Set();
      this.#learn(this.messages);
    }
    return this.#ids.has(id);
  }

  /** A call's id is never used again, also where its message was left out since. */
  #learn(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === "assistant") { for (const { id } of callsOf(message)) this.#ids?.add(id); }
    }
  }
}
