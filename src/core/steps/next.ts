/**
 * The transitions that several steps share: the next turn, and the end of a prompt.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { type Message, textOf, type UserMessage } from "../../protocol/message.ts";
import type { Answer } from "../hooks/points/run.ts";
import type { Move, Position } from "../run/position.ts";
import type { EngineRun } from "../run/run.ts";
import { withoutContext } from "../run/transcript.ts";

/** Begins the next turn after `added`, with the messages that have arrived; or ends the prompt at a limit. */
export function beginTurn(engine: EngineRun, added: readonly Message[]): Move {
  const { arrivals, loop, control, closing } = engine;
  if (closing !== undefined) control.abort(closing);
  const { turns } = loop.counters;
  const over = arrivals.draining ?? (turns >= engine.limits.turns ? "turns" : undefined);
  if (over !== undefined) {
    const last = added.findLast(({ role }) => role === "assistant");
    const text = last?.role === "assistant" ? textOf(last) : loop.transcript.lastText;
    return { add: added, to: endWith({ status: "limit", text, reason: over }) };
  }
  const messages = control.aborted ? [] : arrivals.take();
  return {
    add: [...added, ...messages],
    to: { at: "model", turn: turns + 1 },
    counters: { turns: turns + 1 },
    ...(messages.length > 0 && { announce: [injected(messages)] }),
  };
}

/** Returns the event of messages that enter the transcript. Their context is for the model only. */
export function injected(messages: readonly UserMessage[]): Event {
  return { type: "steering.injected", messages: withoutContext(messages) };
}

/** Returns the end position of a prompt. */
export function endWith(answer: Answer): Position {
  return { at: "promptEnd", answer };
}
