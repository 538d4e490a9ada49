/**
 * Trimming: removes the oldest messages of a transcript.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { CompactContext, Compaction } from "../hooks/points/turn.ts";
import { compacted, declined } from "../hooks/results.ts";
import { estimateTokens } from "../lib/estimate.ts";

/** A transcript, split for a compaction. */
export interface Division {
  /** The opening of the conversation. It stays, so that the provider's prompt cache stays valid. */
  readonly opened: readonly Message[];
  /** The messages that may be removed. */
  readonly left: readonly Message[];
  /** The messages that stay after them: the person's last message, and the last messages. */
  readonly kept: readonly Message[];
}

/** The core of `compact`: removes the oldest messages, except the opening, the person's last message, and the last messages. */
export function trim({ transcript, budget }: CompactContext): Promise<Compaction> {
  const { opened, left, kept } = splitTranscript(transcript, budget);
  return Promise.resolve(
    left.length === 0 ? declined("There is nothing that could be left out.") : compacted([...opened, ...kept]),
  );
}

/** Splits a transcript so that the rest fits `budget` tokens, of which at most `keep` follow the opening, if possible. Calls stay with their results. */
export function splitTranscript(transcript: readonly Message[], budget: number, keep = Infinity): Division {
  const groups = groupMessages(transcript);
  const rest = groups.splice(openingOf(groups));
  const opened = groups.flat();
  const asked = rest.findLast(isPersons) ?? [];
  const kept = new Set([asked, rest.at(-1)]);
  let room = Math.min(budget - estimateTokens(opened), keep) - estimateTokens(asked);
  for (const group of rest.toReversed()) {
    if (group !== asked) room -= estimateTokens(group);
    if (room < 0 && !kept.has(group)) break;
    kept.add(group);
  }
  return {
    opened,
    left: rest.filter((group) => !kept.has(group)).flat(),
    kept: rest.filter((group) => kept.has(group)).flat(),
  };
}

/** Groups messages that belong together: a message, the results of its calls, and the context that hooks added. */
export function groupMessages(transcript: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (const message of transcript) {
    const last = groups.at(-1);
    if (last && message.role !== "assistant" && !isPersons([message])) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** Returns the number of groups in the opening: up to the first answer, and at most the person's first message. */
function openingOf(groups: readonly (readonly Message[])[]): number {
  let prompts = 0;
  const end = groups.findIndex((group) => group[0]?.role === "assistant" || (isPersons(group) && ++prompts > 1));
  return end < 0 ? groups.length : end;
}

function isPersons([message]: readonly Message[]): boolean {
  return message?.role === "user" && message.from === undefined;
}
