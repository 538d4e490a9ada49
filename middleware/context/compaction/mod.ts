/**
 * Keeps long conversations short.
 *
 * @module
 */
import {
  addUsage,
  compacted,
  declined,
  type Message,
  type Middleware,
  type Model,
  noUsage,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { estimateTokens, groupMessages, splitTranscript } from "../../../src/core/kit.ts";
import { type Summary, summaryBy, type SummaryOptions } from "./summary.ts";

export type { SummaryOptions };

/** Writes a summary of messages, of which the first may be the summary of what came before. */
export type Summarize = (messages: readonly Message[], options: SummaryOptions) => Promise<string>;

/** When a conversation is compacted, and to what. Tokens are estimated, at four bytes each. */
export interface CompactionOptions {
  /** Tokens of the transcript from which on it is. Where `limits.context` is less, that counts. Default: 100,000. */
  readonly at?: number;
  /** Tokens at the end of the conversation that stay as they are, the person's last word among them. Default: a quarter of `at`. */
  readonly keep?: number;
  /** Who writes the summary: a model, or a function. Default: the model of the run. */
  readonly summarize?: Model | Summarize;
}

const name = "compaction";

/**
 * Puts a summary in the place of what lies between the beginning of a conversation and its end, as soon as the transcript has `at` tokens, where a provider
 * refuses a request as too large, and where somebody asks for it with `agent.compact()`. What opened the conversation stays as it is, and so does its end:
 * calls together with their results. The summary is a message of a user, from "compaction"; the next one folds it in.
 *
 * It stands last of those that hook `compact`: it asks nobody beneath. What `next({ instructions })` says above, and whoever asks for a compaction, is told to
 * who summarizes. What takes more than one request is summarized part by part, each with the summary of those before it. Where that fails, the run goes on:
 * the oldest messages are left out without a summary. A model that summarizes is asked past the hooks at `model`; its tokens count among those of the run.
 *
 * Where a session is kept, its transcript is kept as it was, too, whenever it is compacted: `Session.earlier` names the session that it is in, which a run
 * can go on with.
 *
 * Throws a `RangeError` where `at` is not more than 0, or `keep` not from 0 to less than `at`.
 *
 * ```ts
 * import { agent, textOf } from "@jizai/jizai";
 * import { compaction } from "@jizai/jizai/middleware/compaction";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals, assertStringIncludes } from "@std/assert";
 *
 * const model = scripted("See the temples. ".repeat(40), "Try the tofu. ".repeat(40), "About 900 euros.");
 * const summarize = scripted("Kyoto, for its temples and its tofu.");
 * const assistant = agent({ model, use: [compaction({ at: 200, keep: 50, summarize })] });
 *
 * const session = "trip";
 * await assistant.run({ session, prompt: "Plan a trip to Kyoto." }).result;
 * await assistant.run({ session, prompt: "And the food?" }).result;
 * const { messages } = await assistant.run({ session, prompt: "What does it cost?" }).result;
 *
 * const [first, summary = "", ...rest] = messages.flatMap((message) => message.role === "tool" ? [] : textOf(message));
 * assertEquals([first, ...rest], ["Plan a trip to Kyoto.", "What does it cost?", "About 900 euros."]);
 * assertStringIncludes(summary, "Kyoto, for its temples and its tofu.");
 * ```
 */
export function compaction({ at = 100_000, keep = at / 4, summarize }: CompactionOptions = {}): Middleware {
  if (!(at > 0)) throw new RangeError(`Cannot compact at ${at} tokens: expected more than 0`);
  if (!(keep >= 0 && keep < at)) {
    throw new RangeError(`Cannot keep ${keep} tokens of ${at}: expected 0 or more, and less than all`);
  }

  async function write(
    messages: readonly Message[],
    { model, most, ...options }: SummaryOptions & { readonly model: Model; readonly most: number },
  ): Promise<Summary> {
    if (typeof summarize === "function") return { text: await summarize(messages, options), usage: noUsage };
    return await summaryBy(summarize ?? model, messages, { ...options, most });
  }

  return {
    name,
    async session(ctx, next) {
      const { limits } = ctx.settings;
      return await next({ settings: { limits: { ...limits, context: Math.min(limits.context, at) } } });
    },
    async compact(ctx) {
      const { trigger, transcript, budget, instructions, signal, model } = ctx;
      const { opened, left, kept } = splitTranscript(transcript, budget, keep);
      if (left.length === 0 || (trigger === "auto" && estimateTokens(left) < budget / 4)) {
        return declined("There is too little to summarize.");
      }
      const most = Math.max(least, trigger === "overflow" ? budget : 2 * budget);
      let summary: readonly Message[] = opened.filter(isSummary);
      let usage = noUsage;
      for (const part of partsOf(left, most)) {
        signal.throwIfAborted();
        const written = await write([...summary, ...part], { instructions, signal, model, most });
        summary = [summaryOf(written.text)];
        usage = addUsage(usage, written.usage);
      }
      return compacted([...opened.filter((message) => !isSummary(message)), ...summary, ...kept], { usage });
    },
  };
}

/** The tokens that any request may have. */
const least = 1_000;

/** Messages in parts of which each leaves a quarter of `most` tokens for the summary of those before it. */
function partsOf(messages: readonly Message[], most: number): readonly (readonly Message[])[] {
  const parts: Message[][] = [];
  let room = 0;
  for (const group of groupMessages(messages)) {
    const size = estimateTokens(group);
    const last = parts.at(-1);
    if (last && size <= room) last.push(...group);
    else {
      parts.push([...group]);
      room = most * 0.75;
    }
    room -= size;
  }
  return parts;
}

function summaryOf(text: string): UserMessage {
  return user(`This is a summary of what came before, in its place:\n\n${text}`, name);
}

function isSummary(message: Message): boolean {
  return message.role === "user" && message.from === name;
}
