/**
 * The transcript of a session while a run has it. It is always valid: a stored one is repaired.
 *
 * @module
 */
import { countSame } from "./entries.ts";
import type { Events } from "./events.ts";
import type { Point } from "../protocol/event.ts";
import {
  type AssistantMessage,
  type CallResult,
  callsOf,
  type Message,
  textOf,
  type UserMessage,
} from "../protocol/message.ts";

// Repair of transcripts. Providers reject a transcript unless every call has one result, right after the message of the call, in order.

/** A valid transcript, and the problems that were repaired. */
export interface RepairedTranscript {
  /** The messages. They are the array that was given, if it was valid. */
  readonly messages: readonly Message[];
  /** The problems, each as a phrase such as `no result for call c1`. */
  readonly problems: readonly string[];
}

/** Throws a `TypeError` that starts with `operation` if one of `messages` has none of `roles`, or no list of parts or results: it cannot be repaired. */
export function expectMessages(
  operation: string,
  messages: readonly unknown[],
  roles: readonly Message["role"][] = ["user", "assistant", "tool"],
): void {
  for (const message of messages) {
    const { role, parts, results } = Object(message);
    const content = role === "tool" ? results : parts;
    if (roles.includes(role) && Array.isArray(content) && content.every(isPart)) continue;
    throw new TypeError(`${operation}: expected messages with \`role\` and \`parts\`, such as user("Hi")`);
  }
}

/** Returns true for an object that has its text if it is a text. */
function isPart(part: unknown): boolean {
  const { type, text } = Object(part);
  return Object(part) === part && (type !== "text" || typeof text === "string");
}

/** Makes `messages` a valid transcript. */
export function repairTranscript(messages: readonly Message[]): RepairedTranscript {
  const problems: string[] = [];
  const repaired: Message[] = [];
  const callIds = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    if (message?.role === "tool") {
      problems.push(`results without calls: ${message.results.map(({ callId }) => callId).join(", ") || "none"}`);
    } else if (message?.role === "assistant") {
      const kept = dropRepeatedCalls(message, callIds, problems);
      const calls = callsOf(kept);
      const following = messages[index + 1];
      if (kept === message || kept.parts.length > 0) repaired.push(kept);
      if (calls.length > 0) {
        const followingResults = following?.role === "tool" ? following.results : [];
        const results = pairResults(calls, followingResults, problems);
        repaired.push(
          following?.role === "tool" && results === followingResults ? following : { role: "tool", results },
        );
        if (following?.role === "tool") index++;
      }
    } else if (message) repaired.push(message);
  }
  return problems.length === 0 ? { messages, problems } : { messages: repaired, problems };
}

function dropRepeatedCalls(message: AssistantMessage, callIds: Set<string>, problems: string[]): AssistantMessage {
  const before = problems.length;
  const parts = message.parts.filter((part) => {
    if (part.type !== "call") return true;
    if (callIds.has(part.id)) {
      problems.push(`a second call ${part.id}`);
      return false;
    }
    callIds.add(part.id);
    return true;
  });
  return problems.length === before ? message : { ...message, parts };
}

/** Returns one result for each call, in the order of the calls. */
function pairResults(
  calls: readonly { readonly id: string; readonly name: string }[],
  toolResults: readonly CallResult[],
  problems: string[],
): readonly CallResult[] {
  if (toolResults.length === calls.length && toolResults.every((result, index) => result.callId === calls[index]?.id)) {
    return toolResults;
  }
  const before = problems.length;
  const byId = new Map<string, CallResult>();
  for (const result of toolResults) {
    if (byId.has(result.callId)) problems.push(`a second result for call ${result.callId}`);
    else byId.set(result.callId, result);
  }
  const results = calls.map(({ id, name }): CallResult => {
    const result = byId.get(id);
    byId.delete(id);
    if (result) return result;
    problems.push(`no result for call ${id}`);
    return { callId: id, name, status: "skipped", parts: [{ type: "text", text: "There is no result." }] };
  });
  for (const id of byId.keys()) problems.push(`a result for call ${id}, which was not made`);
  if (problems.length === before) problems.push("results out of order");
  return results;
}

// The transcript of a run: its messages, which only the loop changes, and the events about repairs.

/** The messages of a session. */
export class Transcript {
  #messages: readonly Message[];
  #compactions: number;
  /** The messages and the number of compactions at the start of the run, for a rollback. */
  readonly #start: { readonly messages: readonly Message[]; readonly compactions: number };
  #before: number;
  #rolledBack = false;
  readonly #events: Events;
  /** The ids of all calls, also of messages that a compaction removed. */
  #ids: Set<string> | undefined;

  /** Continues with `messages`, of which the first `before` are older than the run. */
  constructor(
    { messages, before, compactions }: {
      readonly messages: readonly Message[];
      readonly before: number;
      readonly compactions: number;
    },
    events: Events,
  ) {
    this.#messages = messages;
    this.#compactions = compactions;
    this.#before = before;
    this.#start = { messages: before < messages.length ? messages.slice(0, before) : messages, compactions };
    this.#events = events;
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }
  /** The number of times that the messages of the session were replaced. */
  get compactions(): number {
    return this.#compactions;
  }
  /** The number of messages that are older than the run. */
  get before(): number {
    return this.#before;
  }

  /** True if everything that the run added was removed. */
  get rolledBack(): boolean {
    return this.#rolledBack;
  }

  /** The text of the run's last message of the model. */
  get lastText(): string {
    const index = this.#messages.findLastIndex(({ role }) => role === "assistant");
    const last = this.#messages[index];
    return last?.role === "assistant" && index >= this.#before ? textOf(last) : "";
  }

  /** Appends messages. After a rollback and after the end of the run nothing is appended. */
  push(messages: readonly Message[]): void {
    if (this.#rolledBack || this.#events.closed || messages.length === 0) return;
    this.#messages = this.#messages.concat(messages); // much faster than a spread
    this.#learn(messages);
  }

  /** Keeps the first `count` messages and removes the others. The ids of removed calls stay in use. */
  keep(count: number): void {
    this.#knownIds();
    this.#messages = this.#messages.slice(0, count);
    this.#before = Math.min(this.#before, count);
  }

  /** Replaces the messages. The ids of removed calls stay in use. Messages that only follow those of the transcript replace none. */
  replace(messages: readonly Message[]): void {
    const { length } = this.#messages;
    if (countSame(this.#messages, messages) === length) return this.push(messages.slice(length));
    this.#compactions++;
    this.#knownIds();
    const runMessages = new Set(this.#messages.slice(this.#before));
    const first = messages.findIndex((message) => runMessages.has(message));
    this.#before = first < 0 ? messages.length : first;
    this.#messages = messages;
    this.#learn(messages);
  }

  /** Removes everything that the run added. */
  rollBack(): void {
    this.#rolledBack = true;
    this.#messages = this.#start.messages;
    this.#before = this.#messages.length;
    this.#compactions = this.#start.compactions;
  }

  /**
   * Returns `messages`, repaired. Warns of repairs, with the point and the middleware that they came from. Those that the transcript begins with are valid, and are
   * not looked at again, unless a call that follows may be one of them.
   */
  repaired(messages: readonly Message[], point: Point, middleware?: string): readonly Message[] {
    const valid = this.#validCount(messages);
    const repaired = repairTranscript(messages.slice(valid));
    if (repaired.problems.length > 0) {
      this.#events.warn("transcript.repaired", `The messages were not valid: ${repaired.problems.join("; ")}`, {
        point,
        ...(middleware !== undefined && { middleware }),
      });
    }
    return repaired.problems.length > 0 ? messages.slice(0, valid).concat(repaired.messages) : messages;
  }

  /** Returns how many of `messages` are the beginning of the transcript, if no call of the rest is known; else 0. */
  #validCount(messages: readonly Message[]): number {
    let same = countSame(this.#messages, messages);
    if (messages[same - 1]?.role === "assistant") same--; // the results of its calls may have changed
    const repeats = (message: Message) =>
      message.role === "assistant" && callsOf(message).some(({ id }) => this.knows(id));
    return messages.slice(same).some(repeats) ? 0 : same;
  }

  /** Returns true if a call has, or had, this id. */
  knows(id: string): boolean {
    return this.#knownIds().has(id);
  }

  #knownIds(): Set<string> {
    if (!this.#ids) {
      this.#ids = new Set();
      this.#learn(this.#messages);
    }
    return this.#ids;
  }

  #learn(messages: readonly Message[]): void {
    if (!this.#ids) return;
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      for (const part of message.parts) if (part.type === "call") this.#ids.add(part.id); // without a list for each message
    }
  }
}

/** The author of the context that `input` hooks add to a message. */
export const inputContext = "input";

/** Returns the messages without the context that `input` hooks added to them. */
export function withoutContext(messages: readonly UserMessage[]): readonly UserMessage[] {
  return messages.filter(({ from }) => from !== inputContext);
}

/** Returns context texts as one message for the model, or no message. */
export function contextMessages(context: readonly string[], from: string): readonly UserMessage[] {
  return context.length === 0 ? [] : [{ role: "user", from, parts: context.map((text) => ({ type: "text", text })) }];
}
