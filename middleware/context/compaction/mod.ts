/**
 * Compacts long conversations.
 *
 * @module
 */
import { compacted, declined, type Message, type Middleware, type Model, user } from "../../../mod.ts";
import { compactionHooks } from "../../../src/core/engine.ts";
import { estimateTokens, expectNames, groupMessages, splitTranscript } from "../../../src/core/kit.ts";
import { shortened, summaryBy, type SummaryOptions } from "./summary.ts";

export { compact, type CompactOptions } from "../../../src/core/engine.ts";
export type { SummaryOptions };

/** Summarizes messages, the first of which may be an earlier summary. */
export type Summarize = (messages: readonly Message[], options: SummaryOptions) => Promise<string>;

/** Options of `compaction()`. Tokens are estimated at four bytes each. */
export interface CompactionOptions {
  /** Tokens of the transcript at which it is compacted; `limits.context` if that is less. Default: 100,000. */
  readonly at?: number;
  /** Tokens at the end of the transcript that stay as they are, including the last prompt. Default: a quarter of `at`. */
  readonly keep?: number;
  /** The author of the summary: a model, or a function; false to drop the oldest messages without a summary. Default: the model of the run. */
  readonly summarize?: Model | Summarize | false;
}

const name = "compaction";

/**
 * Replaces the middle of a conversation with a summary: when the transcript reaches `at` tokens, when a provider refuses a request as too large, and when
 * `compact()` is called. The first messages and the last ones stay as they are, calls together with their results. The summary is a user message from
 * "compaction"; the next compaction includes it in its summary.
 *
 * It stands last among the middleware with a `compact` hook, because it does not call `next()`. Instructions from `next({ instructions })` and from
 * `compact()` are given to the summarizer. A transcript that is too long for one request is summarized in parts. A summary of more than a quarter of a
 * request is shortened.
 *
 * Requests for a summary pass the `model` hooks of the run, with the `purpose` "summary": retry, fallback, timeout, budget and masks apply to them. Clients
 * receive nothing of their responses, and their tokens count for the run. A function that summarizes makes its own requests.
 *
 * A summary fails if its request fails, or if its answer has no text, was cut or was stopped. Then the transcript stays as it is, and the next turn tries
 * again. If a provider refuses the transcript as too large, or it exceeds a `limits.context` that is larger than `at`, and the summary fails, the oldest messages
 * are left out, with the warning `transcript.trimmed`.
 * `compact()` fails instead.
 *
 * If the session is stored, the previous messages stay in its history: `store.history()` reads them, and `store.fork()` continues from them.
 *
 * Throws a `TypeError` for an unknown option, and a `RangeError` unless `at` is a positive number and `keep` is 0 or more and less than `at`.
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
export function compaction(options: CompactionOptions = {}): Middleware {
  expectNames("Cannot create compaction()", options, ["at", "keep", "summarize"]);
  const { at = 100_000, keep = at / 4, summarize } = options;
  if (!(0 <= keep && keep < at)) {
    throw new RangeError(
      `Cannot create compaction(): \`at\` is ${at} and \`keep\` is ${keep}; expected 0 <= keep < at`,
    );
  }

  const fit: Middleware = {
    name,
    ...compactionHooks,
    async session(ctx, next) {
      const { limits } = ctx.settings;
      return await next({ settings: { limits: { ...limits, context: Math.min(limits.context, at) } } });
    },
  };
  if (summarize === false) return fit;

  return {
    ...fit,
    async compact({ trigger, transcript, budget, instructions, signal, model, askModel }) {
      const { opened, left, kept } = splitTranscript(transcript, budget, keep);
      if (left.length === 0 || (trigger === "auto" && estimateTokens(left) < budget / 4)) {
        return declined("There are too few messages to summarize.");
      }
      const most = Math.max(least, trigger === "overflow" ? budget : 2 * budget);
      const earlier = opened.filter((message) => message.role === "user" && message.from === name);
      let summary: readonly Message[] = earlier;
      for (const part of partsOf(left, most)) {
        signal.throwIfAborted();
        const messages = [...summary, ...part];
        const text = typeof summarize === "function"
          ? textIn(await summarize(messages, { instructions, signal }))
          : await summaryBy(summarize ?? model, messages, { instructions, signal, most, askModel });
        summary = [user(`This is a summary of what came before, in its place:\n\n${shortened(text, most / 4)}`, name)];
      }
      return compacted([...opened.filter((message) => !earlier.includes(message)), ...summary, ...kept]);
    },
  };
}

/** Returns the text that a function returned. Throws a `TypeError` for an empty one. */
function textIn(returned: unknown): string {
  if (typeof returned === "string" && returned.trim() !== "") return returned;
  throw new TypeError("Cannot summarize: `summarize` returned no text");
}

/** Tokens that every request may have. */
const least = 1_000;

/** Divides messages into parts that leave a quarter of `most` tokens for the summary of the earlier parts. */
function partsOf(messages: readonly Message[], most: number): readonly (readonly Message[])[] {
  const parts: Message[][] = [];
  let size = Infinity; // no part is open
  for (const group of groupMessages(messages)) {
    const added = estimateTokens(group);
    size += added;
    if (size > most * 0.75) {
      parts.push([]);
      size = added;
    }
    parts.at(-1)?.push(...group);
  }
  return parts;
}
