/**
 * Hides secrets from the model, from clients, and from the transcript.
 *
 * @module
 */
import { type Event, type InputSource, mapText, type Message, type Middleware, type Stop } from "../../../mod.ts";
import { expectCount, expectNames } from "../../../src/core/kit.ts";
import { maskExecution, sessionMask, unwinding } from "./session.ts";
import { type Mask, maskOf } from "./mask.ts";
import {
  maskContent,
  maskEach,
  maskEvent,
  maskFields,
  maskParts,
  maskQuestion,
  maskResult,
  maskValue,
  messagesMask,
  requestMask,
} from "./values.ts";
import { RunEvents, StreamedResponse } from "./response.ts";

/** Options of `redact()`. */
export interface RedactOptions {
  /** Exact texts, such as the keys that your tools use. */
  readonly secrets?: readonly string[];
  /** Texts of a known form. In a stream, a pattern can look back over 64 characters. Default: `credentials`. */
  readonly patterns?: readonly RegExp[];
  /**
   * Characters of a streamed text that are held back for each pattern with a lookahead, a back reference or the flag `v`. Matches and
   * their context must be shorter, and a match that only the mask of a secret beside it uncovers may stay in the deltas. Other patterns hold back only what may
   * belong to a match. Default: 256.
   */
  readonly window?: number;
}

/** The middleware that `redact()` returns. */
export interface Redaction extends Middleware {
  /** Masks a text in the same way, for what leaves the process elsewhere, such as logs. */
  readonly mask: (text: string) => string;
}

const subject = "Cannot create redact()";

/** Patterns of common credentials: API keys, access tokens, bearer tokens, private keys. */
export const credentials: readonly RegExp[] = [
  /\bsk-[\w-]{20,}/,
  /\b(?:sk|rk)_(?:live|test)_\w{16,}/,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\bAIza[\w-]{35}/,
  /\b(?:gh[oprsu]_\w{36,}|github_pat_\w{22,})/,
  /\bxox[abprs]-[\w-]{10,}/,
  /\beyJ[\w-]{10,}(?:\.[\w-]*){0,2}/,
  /\bBearer\s+[\w.~+/-]{16,}=*/i,
  /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:\s|\\[nr])*(?:Proc-Type|[\w+/=]{16})(?:[^]{0,8192}?-----END (?:[A-Z]+ )*PRIVATE KEY-----|[^]{0,8192})/,
];

/**
 * Replaces secrets with `[redacted]`. It does so in messages from outside before they are accepted (prompts, history, steering, replies, edited inputs, and the tools, formats and instructions of clients), in what the model
 * reads (messages, context, instructions, tools), in what is summarized and in the summary, in the model's answers, thoughts and calls while they stream, in
 * the inputs and results of tools before they are saved, in questions and reasons, in events, and in everything that the store keeps of a session, with the
 * state of middleware. A secret that is split over deltas, texts or a thought is found too, and so is one that is written with the escapes of JSON. Agents
 * that are tools inherit it. The mask of a secret may uncover the next one, such as a token whose pattern begins with `\\b` right after it: a text is masked
 * until that changes nothing, in deltas too.
 *
 * Of a streamed text, only what may belong to a secret is held back. If the stream breaks off, the held text is dropped. Tools receive `[redacted]` as well,
 * so they must read their keys elsewhere. Not masked: media, ids (of calls, runs, sessions, owners), names that the application chose (of agents, middleware,
 * models, steps, `data` events), texts that the model encodes or spells out, what a provider signs or encrypts (`meta` of a thought), the options of a request, and
 * errors, which only `onError` receives. A secret is not found in the deltas of a tool or a hook that emits one part of it before the start or the end of a
 * response or a turn, and the rest after it.
 *
 * Place it first in `use`, so that it is around all others; only `truncate()` and `cache()` stand before it. A subagent with one of these of its own uses the
 * same `redact()` after it. `otel({ content })` needs its `mask`.
 *
 * Throws a `RangeError` for an empty secret, and if `window` is not a whole number of 1 or more. Throws a `TypeError` for an unknown option, and for secrets
 * and patterns of another type, which would mask nothing.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { redact } from "@jizai/jizai/middleware/redact";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted({ text: ["The password is hun", "ter2."] });
 *
 * const { text } = await agent({ model, use: [redact({ secrets: ["hunter2"] })] }).run("Which?").result;
 * assertEquals(text, "The password is [redacted].");
 * ```
 */
export function redact(options: RedactOptions = {}): Redaction {
  expectNames(subject, options, ["secrets", "patterns", "window"]);
  const { secrets = [], patterns = credentials, window = 256 } = options;
  if (!Array.isArray(secrets) || secrets.some((secret) => typeof secret !== "string")) {
    throw new TypeError(`${subject}: \`secrets\` is not a list of texts; expected texts`);
  }
  if (!Array.isArray(patterns) || patterns.some((pattern) => !(pattern instanceof RegExp))) {
    throw new TypeError(
      `${subject}: \`patterns\` is not a list of regular expressions; expected new RegExp(text) for a text`,
    );
  }
  if (secrets.includes("")) {
    throw new RangeError(`${subject}: a secret is empty; expected no secret where none is set`);
  }
  expectCount(subject, { window });
  const mask = maskOf({ secrets, patterns, window });
  const maskMessages = messagesMask(mask);
  const maskRequest = requestMask(mask, maskMessages);
  /** The deltas that were masked where they were streamed. */
  const released = new WeakSet<Event>();

  return {
    name: "redact",
    after: ["truncate"], // a secret that is cut is not recognised
    before: ["compaction"], // which does not call the inner hooks
    inherit: true,
    mask: mask.whole,
    "~request": maskRequest, // inner hooks may add secrets to the request that the `model` hook has masked
    "~save": sessionMask(mask, maskMessages),
    "~mask": (event) => maskEvent(event, mask), // hooks outside of this one emit to clients directly
    async session(ctx, next) {
      const events = new RunEvents(mask, ctx.emit, released);
      const result = await unwinding(next({ emit: (event) => events.pass(event) }), mask);
      events.end();
      const masked = maskFields(result, ["text", "output", "reason"], mask);
      const questions = maskEach(result.questions, (question) => maskQuestion(question, mask));
      return questions === result.questions ? masked : { ...masked, questions };
    },
    async input(ctx, next) {
      const isJson = jsonSources.includes(ctx.source);
      const messages = isJson ? maskEach(ctx.messages, (each) => maskJson(each, mask)) : maskMessages(ctx.messages);
      const context = maskValue(ctx.context, mask);
      const clean = messages === ctx.messages && context === ctx.context;
      return maskFields(await unwinding(next(clean ? undefined : { messages, context }), mask), ["reason"], mask);
    },
    async prompt(ctx, next) {
      const prompt = maskContent(ctx.prompt, mask);
      const context = maskValue(ctx.context, mask);
      const clean = prompt === ctx.prompt && context === ctx.context;
      return maskFields(
        await unwinding(next(clean ? undefined : { prompt, context }), mask),
        ["text", "output", "reason"],
        mask,
      );
    },
    async model(ctx, next) {
      const stream = new StreamedResponse(mask, ctx.emit, released);
      const request = maskRequest(ctx.request);
      try {
        const response = await next({
          emit: (event) => stream.pass(event),
          ...(request !== ctx.request && { request }),
        });
        stream.end();
        const parts = maskParts(response.parts, mask);
        return parts === response.parts ? response : { ...response, parts };
      } catch (error) {
        stream.breakOff();
        throw error;
      }
    },
    async tool(ctx, next) {
      const input = maskValue(ctx.input, mask);
      return maskResult(await unwinding(next(input === ctx.input ? undefined : { input }), mask), mask);
    },
    approval: async (_, next) => maskFields(await unwinding(next(), mask), decisionFields, mask),
    execute: (_, next) => maskExecution(next, mask),
    stop: async (_, next) => maskStop(await unwinding(next(), mask), mask),
    async compact(ctx, next) {
      const transcript = maskMessages(ctx.transcript);
      const instructions = mask.whole(ctx.instructions);
      const clean = transcript === ctx.transcript && instructions === ctx.instructions;
      const compaction = await unwinding(next(clean ? undefined : { transcript, instructions }), mask);
      if (compaction.type === "declined") return maskFields(compaction, ["reason"], mask);
      const messages = maskMessages(compaction.messages);
      return messages === compaction.messages ? compaction : { ...compaction, messages };
    },
  };
}

/** The sources whose messages are JSON, which stays JSON. */
const jsonSources: readonly InputSource[] = ["edit", "client_tool", "format"];

/** Masks the leaves and the keys of a message that is JSON. A text that another hook has put in its place is masked as text. */
function maskJson(message: Message, mask: Mask): Message {
  if (message.role !== "user") return message;
  return mapText(message, (text) => {
    try {
      const value = JSON.parse(text);
      const masked = maskValue(value, mask);
      return masked === value ? text : JSON.stringify(masked);
    } catch {
      return mask.whole(text);
    }
  });
}

/** Fields of decisions that contain text or JSON. */
const decisionFields = ["reason", "questions", "question", "input"];

function maskStop(stop: Stop, mask: Mask): Stop {
  if (stop.type !== "continue") return maskFields(stop, decisionFields, mask);
  const messages = maskEach(stop.messages, (message) => maskContent(message, mask));
  return messages === stop.messages ? stop : { ...stop, messages };
}
