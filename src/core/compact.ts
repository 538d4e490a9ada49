/**
 * Compaction: a transcript that has grown too long is made to fit.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import { compacted, declined } from "./answers.ts";
import { blaming } from "./failure.ts";
import { authored, lawOf } from "./law.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { CompactChange, CompactContext, Compaction } from "./points.ts";
import type { Scope } from "./scope.ts";

/** The law of `compact`. */
export const compactLaw: Law<CompactContext, CompactChange, Compaction, Live> = lawOf("compact", ["instructions"], {
  seal: authored,
});

/** Tokens that `messages` will take, estimated at four characters a token. */
export function estimate(messages: readonly Message[]): number {
  return Math.ceil(sizeOf(messages) / 4);
}

/** Characters of what a model reads of `messages`. */
function sizeOf(messages: readonly Message[]): number {
  let size = 0;
  for (const message of messages) {
    const read = message.role === "tool" ? message.results.map(({ parts }) => parts) : message.parts;
    size += JSON.stringify(read).length;
  }
  return size;
}

/** The core of `compact`: leaves out the oldest, but not what opened the conversation, the person's last word, or what came last. */
export function trim({ transcript, budget }: CompactContext): Promise<Compaction> {
  const groups = grouped(transcript);
  const answered = groups.findIndex(([message]) => message?.role === "assistant");
  const opened = answered < 0 ? groups.length : answered;
  const asked = groups.findLastIndex(([message]) => message?.role === "user" && message.from === undefined);
  let over = sizeOf(transcript) - budget * 4;
  const kept = groups.filter((group, index) => {
    if (over <= 0 || index < opened || index === asked || index === groups.length - 1) return true;
    over -= sizeOf(group);
    return false;
  });
  return Promise.resolve(
    kept.length === groups.length ? declined("There is nothing that could be left out.") : compacted(kept.flat()),
  );
}

/** Messages that belong together: one that calls, and its results. */
function grouped(transcript: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (const message of transcript) {
    const last = groups.at(-1);
    if (message.role === "tool" && last) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** Compacts the transcript where its estimate is over the limit. */
export async function fit(live: Live, scope: Scope): Promise<void> {
  const budget = live.limits.context;
  if (budget === Infinity) return;
  const before = estimate(live.transcript.messages);
  if (before <= budget) return;
  const trigger = "auto";
  live.events.announce(scope.emit, { type: "compact.started", trigger });
  const ctx: CompactContext = {
    ...scope,
    trigger,
    transcript: live.transcript.messages,
    instructions: "",
    budget,
  };
  const compaction = await blaming(live, ctx, "compact", live.blueprint.onions.compact(ctx, live));
  if (compaction.type === "compacted") live.transcript.replace(compaction.messages, "compact", live.author);
  live.events.announce(scope.emit, {
    type: "compact.finished",
    trigger,
    before,
    after: estimate(live.transcript.messages),
  });
  live.checkpoint();
}
