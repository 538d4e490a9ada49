/**
 * Trimming: what of a transcript may be left out, and what stays.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import { compacted, declined } from "./answers.ts";
import { estimateTokens, sizeOf } from "./estimate.ts";
import type { CompactContext, Compaction } from "./points.ts";

/** A transcript, by what may become of it. */
export interface Division {
  /** What opened the conversation: it stays as it is, so that what a provider has cached of it lasts. */
  readonly opened: readonly Message[];
  /** What may be left out. */
  readonly left: readonly Message[];
  /** What stays after it: the person's last word, and what came last. */
  readonly kept: readonly Message[];
}

/** The core of `compact`: leaves out the oldest, but not what opened the conversation, the person's last word, or what came last. */
export function trim({ transcript, budget }: Pick<CompactContext, "transcript" | "budget">): Promise<Compaction> {
  const { opened, left, kept } = splitTranscript(transcript, budget);
  return Promise.resolve(
    left.length === 0 ? declined("There is nothing that could be left out.") : compacted([...opened, ...kept]),
  );
}

/** Divides a transcript so that what stays fits `budget` tokens, and `keep` of them beside what opened it: as far as it can. Calls stay with their results. */
export function splitTranscript(transcript: readonly Message[], budget: number, keep = Infinity): Division {
  const groups = groupMessages(transcript);
  const rest = groups.splice(openingOf(groups));
  const opened = groups.flat();
  const sizes = rest.map(sizeOf);
  const asked = rest.findLastIndex(isPersons);
  const sizeAt = (index: number) => index === asked ? 0 : sizes[index] ?? 0; // that one stays anyway
  let first = rest.length - 1;
  let room = 4 * Math.min(budget - estimateTokens(opened), keep) - (sizes[asked] ?? 0) - sizeAt(first);
  while (first > 0 && sizeAt(first - 1) <= room) room -= sizeAt(--first);
  const stays = (index: number) => index === asked || index >= first;
  return {
    opened,
    left: rest.filter((_, index) => !stays(index)).flat(),
    kept: rest.filter((_, index) => stays(index)).flat(),
  };
}

/** Messages that belong together: what somebody said, the results of its calls, and what hooks added to it. */
export function groupMessages(transcript: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (const message of transcript) {
    const last = groups.at(-1);
    if (last && message.role !== "assistant" && !isPersons([message])) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** How many groups opened the conversation: up to the first answer, and no more than the person's first word. */
function openingOf(groups: readonly (readonly Message[])[]): number {
  const said = groups.findIndex(isPersons);
  const end = groups.findIndex((group, index) =>
    group[0]?.role === "assistant" || (isPersons(group) && index !== said)
  );
  return end < 0 ? groups.length : end;
}

function isPersons([message]: readonly Message[]): boolean {
  return message?.role === "user" && message.from === undefined;
}
