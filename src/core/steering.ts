/**
 * Steering: messages to a run while it works, and requests that it end. They wait here, in order, until `beginTurn` (`after_turn.ts`) or `askModel`
 * (`model_step.ts`) takes them.
 *
 * @module
 */
import { skipped } from "./hook_answers.ts";
import { type Mail, mailedMessages } from "./session.ts";
import { withoutContext } from "./transcript.ts";
import { brand } from "../protocol/brand.ts";
import type { ToolResult, UserMessage } from "../protocol/message.ts";

/** The number of messages that may wait for one run. */
export const maxWaiting = 10;

/** The key of the waiting messages in the run's state. */
const key = "steering";

/** The error of `send()` if as many messages wait as may. */
export class TooManyMessagesError extends RangeError {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "TooManyMessagesError");
}

/** The options of `send()`. */
export interface SendOptions {
  /**
   * "batch": the message is delivered after the running batch of calls. "calls": it is delivered when the running calls have ended, and calls that have
   * not begun are answered as skipped. Default: "batch".
   */
  readonly after?: "batch" | "calls";
}

/** The part of the run's state that steering uses. */
interface Waiting {
  readonly messages: readonly UserMessage[];
  readonly finishing: boolean;
}

/** Returns the messages that wait in the state of a run. */
export function waitingMessages(state: Iterable<readonly [string, unknown]>): readonly UserMessage[] {
  return waitingIn(new Map(state)).messages;
}

/** Returns how many messages wait in the state of a run, without their context. */
export function waitingCount(state: Iterable<readonly [string, unknown]>): number {
  return withoutContext(waitingMessages(state)).length;
}

const nothing: Waiting = { messages: [], finishing: false };

function waitingIn(state: ReadonlyMap<string, unknown>): Waiting {
  return state.get(key) as Waiting | undefined ?? nothing; // only steering writes this key
}

/** The messages and requests that wait for one run. They are saved with its state. The engine asks for them at the end of each turn. */
export class Steering {
  #state = new Map<string, unknown>();
  /** True once the run is over. */
  closed = false;
  /** The reason why no further turn begins, if there is one. */
  draining: string | undefined;
  /** The result of calls that have not begun, if something waits that does not wait for them. */
  skipped: ToolResult | undefined;

  /** True if messages wait. */
  get waiting(): boolean {
    return waitingIn(this.#state).messages.length > 0;
  }
  /** True if the run should end with one more answer, without tools. */
  get finishing(): boolean {
    return waitingIn(this.#state).finishing;
  }

  /** Keeps the messages in the state of the run from now on. */
  attach(state: Map<string, unknown>): void {
    const { messages, finishing } = waitingIn(this.#state);
    this.#state = state;
    this.#put(messages);
    if (finishing || this.finishing) this.finish();
  }

  /** Adds a message and its context. Throws a `TooManyMessagesError` if too many messages wait. */
  add(messages: readonly UserMessage[], { after }: SendOptions = {}): void {
    if (withoutContext(waitingIn(this.#state).messages).length >= maxWaiting) {
      throw new TooManyMessagesError(`Cannot send a message to the run: ${maxWaiting} wait already`);
    }
    this.#put(messages, after);
  }

  /** Adds requests of other processes, which were accepted before. */
  receive(mail: readonly Mail[]): void {
    for (const request of mail) {
      if (request.type === "finish") this.finish();
      else this.#put(mailedMessages([request]), request.after);
    }
  }

  /** Asks the run to end with one more answer, without tools. */
  finish(): void {
    this.#set({ ...waitingIn(this.#state), finishing: true });
    this.skipped = skipped("Skipped due to graceful interrupt.");
  }

  /** Begins no further turn. */
  drain(reason: string): void {
    this.draining ??= reason;
  }

  /** Returns the messages that wait, each after its context, and removes them. */
  take(): readonly UserMessage[] {
    const { messages, finishing } = waitingIn(this.#state);
    if (messages.length > 0) this.#set({ ...nothing, finishing });
    if (!finishing) this.skipped = undefined;
    return messages;
  }

  /** Accepts no further messages: the run is about to end. */
  close(): void {
    this.closed = true;
  }

  #put(added: readonly UserMessage[], after?: SendOptions["after"]): void {
    const { messages, finishing } = waitingIn(this.#state);
    this.#set({ messages: [...messages, ...added], finishing });
    if (after === "calls") this.skipped = skipped("Skipped due to queued user message.");
  }

  #set(waiting: Waiting): void {
    if (waiting.messages.length === 0 && !waiting.finishing) this.#state.delete(key);
    else this.#state.set(key, waiting);
  }
}
