/**
 * Hides secrets from the model, from whoever watches, and from the transcript.
 *
 * @module
 */
import { type Event, mapText, mapTexts, type Middleware, rewrite } from "../../../mod.ts";
import { maskOf } from "./mask.ts";

/** What is hidden. */
export interface RedactOptions {
  /** Exact texts, such as the keys that your tools use. */
  readonly secrets?: readonly string[];
  /** Texts of a known form. Default: `credentials`. */
  readonly patterns?: readonly RegExp[];
  /**
   * How many characters of a growing text are held back where there are patterns, until its end. By so many a match must be known as one, with what
   * the pattern looks at before and after it; then it may go on for as long as it wants. Default: 256.
   */
  readonly window?: number;
}

/** The forms of common credentials: API keys, access tokens, bearer tokens, private keys. */
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
 * Puts `[redacted]` in place of secrets: in what the model is told, in its answers, thoughts and calls while they stream, in what tools are given and
 * return, and in progress, notices and data. A secret that is split over deltas never leaves, nor does its beginning when the stream breaks off.
 *
 * To that end text is held back: with `patterns: []` what could be the beginning of a secret, else `window` characters. When the stream breaks off,
 * what was held back is dropped. Tools are given `[redacted]` too: let them take their keys from where they are kept. Keys of objects stay as they are,
 * and so do media. An agent that runs as a tool has events of its own: let it use `redact()` as well. Hooks after it in `use` see what tools returned
 * as it was.
 *
 * Throws a `RangeError` for an empty secret, or a window that is not a whole number of 1 or more.
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
export function redact({ secrets = [], patterns = credentials, window = 256 }: RedactOptions = {}): Middleware {
  if (secrets.includes("")) throw new RangeError("Cannot redact an empty secret: leave out what is not set");
  if (!(Number.isInteger(window) && window >= 1)) {
    throw new RangeError(`Cannot redact with a window of ${window}: expected a whole number of 1 or more`);
  }
  const { whole, growing } = maskOf({ secrets, patterns, window });
  const stream = rewrite({ text: growing, reasoning: growing, call: growing });

  function deep<T>(value: T): T {
    return mapTexts(value, whole);
  }

  function watched(event: Event): Event {
    switch (event.type) {
      case "tool.progress":
        return { ...event, data: deep(event.data) };
      case "data":
        return { ...event, data: deep(event.data) };
      case "notice":
        return { ...event, text: whole(event.text) };
      case "subagent.event":
        return { ...event, event: watched(event.event) };
      default:
        return event;
    }
  }

  return {
    name: "redact",
    after: ["truncate"], // what is cut through is no longer known as a secret
    async session(ctx, next) {
      return await next({ emit: (event) => ctx.emit(watched(event)) });
    },
    async prompt(ctx, next) {
      const prompt = mapText(ctx.prompt, whole);
      const context = deep(ctx.context);
      const clean = prompt === ctx.prompt && context === ctx.context;
      return await next(clean ? undefined : { prompt, context });
    },
    async model(ctx, next) {
      const { messages } = ctx.request;
      const masked = messages.map((message) => message.role === "user" ? mapText(message, whole) : message);
      const clean = masked.every((message, index) => message === messages[index]);
      return await stream(ctx, (change) => next(clean ? change : { ...change, request: { messages: masked } }));
    },
    async tool(ctx, next) {
      const input = deep(ctx.input);
      const result = mapText(await next(input === ctx.input ? undefined : { input }), whole);
      const context = deep(result.context);
      const ran = deep(result.input);
      if (context === result.context && ran === result.input) return result;
      return { ...result, ...(context && { context }), ...(ran !== undefined && { input: ran }) };
    },
  };
}
