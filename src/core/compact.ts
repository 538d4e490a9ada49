/**
 * Compaction: a transcript that has grown too long is made to fit.
 *
 * ```text
 * auto       its estimate is over `limits.context`, before a turn
 * overflow   the provider refused a request as too large: it is compacted, and asked again, once
 * manual     somebody asks for it, while no run has the session
 * ```
 *
 * It goes down to half of what there may be, so that it is rare, and what a provider has cached of a prompt lasts. Where the session is kept, so is the
 * transcript as it was, in a session of its own that `Session.earlier` names.
 *
 * @module
 */
import type { CompactTrigger } from "../protocol/event.ts";
import { delay } from "./abandon.ts";
import { blaming, judge, recoverable } from "./failure.ts";
import { isInterrupt } from "./interrupt.ts";
import { authored, lawOf } from "./law.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { Answer, CompactChange, CompactContext, Compaction } from "./points.ts";
import type { Scope } from "./scope.ts";
import { trim } from "./trim.ts";

/** The law of `compact`. */
export const compactLaw: Law<CompactContext, CompactChange, Compaction, Live> = lawOf("compact", ["instructions"], {
  seal: authored,
});

/** Compacts the transcript where its estimate is over the limit. */
export async function fit(live: Live, scope: Scope): Promise<void> {
  const { limits: { context }, transcript } = live;
  if (context < Infinity && transcript.tokens > context) await compact(live, scope, { trigger: "auto" });
}

/** Compacts the transcript because somebody asked for it. */
export async function compactByHand(
  live: Live,
  scope: Scope,
  { instructions }: { readonly instructions: string },
): Promise<Answer> {
  if (live.closing) live.abort(live.closing);
  live.checkpoint();
  const compaction = await compact(live, scope, { trigger: "manual", instructions });
  return compaction.type === "compacted"
    ? { status: "done", text: "" }
    : { status: "cancelled", text: "", reason: compaction.reason };
}

/** Why and how a transcript is compacted. */
interface Order {
  readonly trigger: CompactTrigger;
  readonly instructions?: string;
}

/** Compacts the transcript; gives what that came to. */
export async function compact(live: Live, scope: Scope, { trigger, instructions = "" }: Order): Promise<Compaction> {
  const { transcript, settings: { model }, limits: { context } } = live;
  const before = transcript.tokens;
  const budget = Math.floor(Math.min(before, context) / 2);
  live.events.announce(scope.emit, { type: "compact.started", trigger });
  const ctx: CompactContext = { ...scope, trigger, transcript: transcript.messages, instructions, budget, model };
  const { compaction, failed } = await tried(live, ctx);
  if (compaction.usage) live.spend(compaction.usage);
  live.signal.throwIfAborted();
  if (compaction.type === "compacted") {
    await live.keeping?.archive();
    transcript.compact(compaction.messages, live.author);
    live.ground = transcript.messages;
    await live.keep();
  }
  live.events.announce(scope.emit, {
    type: "compact.finished",
    trigger,
    status: failed ? "failed" : compaction.type,
    before,
    after: transcript.tokens,
    ...(!failed && compaction.type === "declined" && { reason: compaction.reason }),
  });
  live.checkpoint();
  return compaction;
}

/** What a compaction came to. */
interface Tried {
  readonly compaction: Compaction;
  /** Whether it failed, and the oldest messages are left out instead. */
  readonly failed: boolean;
}

/** Asks `compact`; `error` decides about a failure, unless somebody waits to hear of it. */
async function tried(live: Live, ctx: CompactContext): Promise<Tried> {
  const { compact } = live.blueprint.onions;
  live.author = undefined;
  if (ctx.trigger === "manual") {
    return { compaction: await blaming(live, ctx, "compact", compact(ctx, live)), failed: false };
  }
  for (let attempt = 1;; attempt++) {
    try {
      return { compaction: await compact(ctx, live), failed: false };
    } catch (error) {
      if (isInterrupt(error) || live.aborted) throw error;
      const decision = await judge(live, ctx, { error, source: "compact", recoverable: recoverable(error), attempt });
      if (decision.type === "abort") throw error;
      live.author = undefined;
      if (decision.type === "skip") return { compaction: await trim(ctx), failed: true };
      await delay(decision.after, ctx.signal);
    }
  }
}
