/**
 * Hides secrets from the model, from clients, and from the transcript.
 *
 * @module
 */
import {
  type Event,
  type Middleware,
  type ModelContext,
  type ModelRequest,
  Pause,
  type Stop,
  ToolError,
  type ToolResult,
} from "../../../mod.ts";
import { type Mask, maskOf } from "./mask.ts";
import { StreamedResponse } from "./response.ts";
import { maskContent, maskFields, maskMessage, maskParts, maskResult, maskValue } from "./values.ts";

/** Options of `redact()`. */
export interface RedactOptions {
  /** Exact texts, such as the keys that your tools use. */
  readonly secrets?: readonly string[];
  /** Texts of a known form. In a stream, a pattern can look back over 64 characters. Default: `credentials`. */
  readonly patterns?: readonly RegExp[];
  /**
   * Characters of a streamed text that are held back for each pattern with a lookahead, a back reference or the flag `v`. Matches and
   * their context must be shorter. Other patterns hold back only what may belong to a match. Default: 256.
   */
  readonly window?: number;
}

/** The middleware that `redact()` returns. */
export interface Redaction extends Middleware {
  /** Masks a text in the same way, for what leaves the process elsewhere, such as logs. */
  readonly mask: (text: string) => string;
}

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
 * Replaces secrets with `[redacted]`. It does so in messages from outside before they are accepted (prompts, history, steering, replies), in context, in
 * what the model reads, in its answers, thoughts and calls while they stream, in the inputs and results of tools before they are saved, in the questions
 * and the reasons of guards, and in events. A secret that is split over deltas, texts or a thought is found too, and so is one that
 * is written with the escapes of JSON.
 *
 * Of a streamed text, only what may belong to a secret is held back. If the stream breaks off, the held text is dropped. Tools receive `[redacted]` as well,
 * so they must read their keys elsewhere. Not masked: the keys of objects, media, names and ids, texts that the model encodes or spells out, context that
 * hooks after it add at `session` and `prompt` (the model reads it masked, the session keeps it), and the events and messages of an agent that runs as a
 * tool, which needs its own `redact()`.
 *
 * Throws a `RangeError` for an empty secret, and if `window` is not a whole number of 1 or more.
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
export function redact({ secrets = [], patterns = credentials, window = 256 }: RedactOptions = {}): Redaction {
  if (secrets.includes("")) {
    throw new RangeError("Cannot create redact(): a secret is empty; expected no secret where none is set");
  }
  if (!(Number.isInteger(window) && window >= 1)) {
    throw new RangeError(`Cannot create redact(): \`window\` is ${window}; expected a whole number of 1 or more`);
  }
  const mask = maskOf({ secrets, patterns, window });
  const maskRequest = requestMask(mask);

  return {
    name: "redact",
    after: ["truncate"], // a secret that is cut is not recognised
    mask: mask.whole,
    async session(ctx, next) {
      const result = await unwinding(next({ emit: (event) => ctx.emit(maskEvent(event, mask)) }), mask);
      return maskFields(result, ["reason"], mask);
    },
    async input(ctx, next) {
      const messages = ctx.messages.map((message) => maskMessage(message, mask));
      const clean = messages.every((message, index) => message === ctx.messages[index]);
      return maskFields(await next(clean ? undefined : { messages }), ["reason"], mask);
    },
    async prompt(ctx, next) {
      const prompt = maskContent(ctx.prompt, mask);
      const context = maskValue(ctx.context, mask);
      const clean = prompt === ctx.prompt && context === ctx.context;
      return maskFields(await unwinding(next(clean ? undefined : { prompt, context }), mask), ["reason"], mask);
    },
    async model(ctx, next) {
      const stream = new StreamedResponse(mask, ctx.emit);
      const request = maskRequest(ctx);
      try {
        const response = await next({ emit: (event) => stream.pass(event), ...(request && { request }) });
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
  };
}

/** Fields of events that contain text or JSON. The other fields are ids, names and enumerations. */
const eventFields = ["text", "message", "reason", "questions", "input", "data", "output", "path", "from", "to"];

/** Fields of decisions that contain text or JSON. */
const decisionFields = ["reason", "questions", "question", "input"];

/** Fields of questions that contain text or JSON. */
const questionFields = ["input", "questions", "schema", "suggestions"];

function maskStop(stop: Stop, mask: Mask): Stop {
  if (stop.type !== "continue") return maskFields(stop, decisionFields, mask);
  const messages = stop.messages.map((message) => maskContent(message, mask));
  return messages.every((message, index) => message === stop.messages[index]) ? stop : { ...stop, messages };
}

/** Masks the questions of a hook or a tool that pauses the run. */
async function unwinding<R>(work: Promise<R>, mask: Mask): Promise<R> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof Pause ? maskPause(error, mask) : error;
  }
}

/** Masks the questions of a pause, and the JSON that the tool saved with it. The ids of calls stay. */
function maskPause(pause: Pause, mask: Mask): Pause {
  const masked = pause.questions.map((question) => maskFields(question, questionFields, mask));
  const questions = masked.every((each, index) => each === pause.questions[index]) ? pause.questions : masked;
  const saved = maskValue(pause.saved, mask);
  return questions === pause.questions && saved === pause.saved ? pause : new Pause(questions, saved);
}

/** Masks a result before the engine saves it, and the message of a `ToolError`, from which the engine makes one. */
async function maskExecution(next: () => Promise<ToolResult>, mask: Mask): Promise<ToolResult> {
  try {
    return maskResult(await next(), mask);
  } catch (error) {
    if (error instanceof Pause) throw maskPause(error, mask);
    const message = error instanceof ToolError ? mask.whole(error.message) : undefined;
    if (message === undefined || !(error instanceof ToolError) || message === error.message) throw error;
    throw new ToolError(message, { cause: error });
  }
}

/** Returns a function that masks the messages and the instructions of a request. Each message is masked once. */
function requestMask(mask: Mask): (ctx: ModelContext) => Partial<ModelRequest> | undefined {
  const known = new WeakMap<object, ModelRequest["messages"][number]>();
  return ({ request }) => {
    const messages = request.messages.map((message) => {
      const masked = known.get(message) ?? maskMessage(message, mask);
      known.set(message, masked);
      return masked;
    });
    const instructions = mask.whole(request.instructions);
    const clean = instructions === request.instructions &&
      messages.every((message, index) => message === request.messages[index]);
    return clean ? undefined : { messages, instructions };
  };
}

/** Masks an event, except for deltas, which are masked where they are streamed. */
function maskEvent(event: Event, mask: Mask): Event {
  switch (event.type) {
    case "text.delta":
    case "reasoning.delta":
    case "call.delta":
      return event;
    case "subagent.event":
      return { ...event, event: maskEvent(event.event, mask) };
    case "prompt.accepted":
      return { ...event, prompt: maskContent(event.prompt, mask) };
    case "steering.injected":
      return { ...event, messages: event.messages.map((message) => maskContent(message, mask)) };
    case "tool.finished":
      return { ...event, result: maskContent(event.result, mask) };
    default:
      return maskFields(event, eventFields, mask);
  }
}
