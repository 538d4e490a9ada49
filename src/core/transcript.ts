/**
 * The transcript of a run's session: it grows, it may be replaced, and it is always valid.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";
import { callsOf, type Message, textOf, type UserMessage } from "../protocol/message.ts";
import { sizeOf, tokensOf } from "./estimate.ts";
import type { Events } from "./events.ts";
import { repairTranscript } from "./mend.ts";

/** The messages of a session, while a run has it. */
export class Transcript {
  messages: readonly Message[] = [];
  /** The session that keeps them as they were before they were last compacted. */
  earlier: string | undefined;
  /** What they were when the run began, for a rollback. */
  before: readonly Message[] = [];
  /** How many of them were there when the run began, or stand for those. */
  began = 0;
  readonly #events: Events;
  #ids: Set<string> | undefined;
  #earlierBefore: string | undefined;
  /** The messages that were measured, and their size. */
  #measured: readonly Message[] = [];
  #size = 0;

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

  /** Tokens that they will take, estimated: what has only grown is measured where it has. */
  get tokens(): number {
    const { messages } = this;
    const before = this.#measured;
    if (messages !== before) {
      const grown = before.every((message, index) => message === messages[index]);
      this.#size = grown ? this.#size + sizeOf(messages.slice(before.length)) : sizeOf(messages);
      this.#measured = messages;
    }
    return tokensOf(this.#size);
  }

  /** Replaces the messages by `messages`, mended. */
  replace(messages: readonly Message[], point: Point, middleware?: string): void {
    this.messages = this.mended(messages, point, middleware);
    this.#learn(this.messages);
  }

  /** Replaces the messages by what they were compacted to, mended. */
  compact(messages: readonly Message[], middleware?: string): void {
    this.#known(); // what is left out keeps its ids
    const own = new Set(this.messages.slice(this.began));
    this.replace(messages, "compact", middleware);
    const first = this.messages.findIndex((message) => own.has(message));
    this.began = first < 0 ? this.messages.length : first;
  }

  /** Says that the first `count` of the messages were there before the run. Default: all. */
  mark(count: number = this.messages.length): void {
    this.before = this.messages.slice(0, count);
    this.began = count;
    this.#earlierBefore = this.earlier;
  }

  /** The text of what the model said last in the run. */
  get said(): string {
    const last = this.messages.findLast((message) => message.role === "assistant");
    return last && !this.before.includes(last) ? textOf(last) : "";
  }

  /** Takes back what the run added. */
  rollBack(): void {
    this.messages = this.before;
    this.began = this.before.length;
    this.earlier = this.#earlierBefore;
  }

  /** `messages`, valid; what had to be mended is told, with the point and the middleware that it comes from. */
  mended(messages: readonly Message[], point: Point, middleware?: string): readonly Message[] {
    const checked = repairTranscript(messages);
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
    return this.#known().has(id);
  }

  #known(): Set<string> {
    if (!this.#ids) {
      this.#ids = new Set();
      this.#learn(this.messages);
    }
    return this.#ids;
  }

  /** A call's id is never used again, also where its message was left out since. */
  #learn(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role === "assistant") { for (const { id } of callsOf(message)) this.#ids?.add(id); }
    }
  }
}

/** Context, as one message for the model. */
export function contextMessages(context: readonly string[], from: string): readonly UserMessage[] {
  return context.length === 0 ? [] : [{ role: "user", from, parts: context.map((text) => ({ type: "text", text })) }];
}
