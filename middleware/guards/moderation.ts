/**
 * Checks messages and answers with a moderation service.
 *
 * @module
 */
import {
  type ContentPart,
  type InputContext,
  type Message,
  type Middleware,
  type ModelContext,
  refused,
} from "../../mod.ts";
import { screen, type Screening } from "../../src/core/features/screen.ts";
import { expectNames, expectTime, withinTime } from "../../src/core/kit.ts";

// The port that a moderation service implements.

/** The result of a moderation. */
export interface Moderation {
  /** Whether the content is not acceptable. */
  readonly flagged: boolean;
  /** The categories of the service that apply, for the operator. */
  readonly categories: readonly string[];
}

/** A moderation service. */
export interface Moderator {
  /** Checks content. Stops when `signal` aborts. A rejection counts as flagged content. */
  moderate(parts: readonly ContentPart[], options: { readonly signal: AbortSignal }): Promise<Moderation>;
}

// OpenAI's moderation endpoint as a moderator.

/** Options of `openaiModerator()`. */
export interface OpenaiModeratorOptions {
  /** The API key. No error contains it. */
  readonly apiKey: string;
  /** The moderation model. Default: "omni-moderation-latest". */
  readonly model?: string;
  /** The address of the API. Default: "https://api.openai.com/v1". */
  readonly baseURL?: string;
  /** The score from which a category counts, by its name. The endpoint decides about a category without a threshold or without a score. Default: none. */
  readonly thresholds?: Readonly<Record<string, number>>;
  /** Sends requests. Default: the platform's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
}

/** A response of the endpoint, as far as it is read. */
interface ModerationResponse {
  readonly results: readonly {
    readonly flagged: boolean;
    readonly categories: Readonly<Record<string, boolean | null>>;
    readonly category_scores?: Readonly<Record<string, number>>;
  }[];
}

/**
 * Creates a moderator that asks OpenAI's moderation endpoint, which checks text and images. Other media are refused, since the endpoint cannot check them.
 *
 * ```ts
 * import { openaiModerator } from "@jizai/jizai/middleware/moderation";
 * import { assertEquals } from "@std/assert";
 *
 * const moderator = openaiModerator({ apiKey: "sk-none", fetch: endpoint });
 * const { flagged, categories } = await moderator.moderate([{ type: "text", text: "..." }], {
 *   signal: AbortSignal.timeout(5_000),
 * });
 * assertEquals([flagged, categories], [true, ["violence"]]);
 *
 * function endpoint() { // stands for the network
 *   return Response.json({ results: [{ flagged: true, categories: { hate: false, violence: true } }] });
 * }
 * ```
 */
export function openaiModerator(options: OpenaiModeratorOptions): Moderator {
  expectNames("Cannot create openaiModerator()", options, ["apiKey", "model", "baseURL", "thresholds", "fetch"]);
  const {
    apiKey,
    model = "omni-moderation-latest",
    baseURL = "https://api.openai.com/v1",
    thresholds = {},
    fetch: send = fetch,
  } = options;
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };

  function moderationOf({ results }: ModerationResponse): Moderation {
    const categories = new Set<string>();
    let flagged = false;
    for (const result of results) {
      const scores = result.category_scores ?? {};
      const hasThreshold = (name: string) => Object.hasOwn(thresholds, name) && Object.hasOwn(scores, name);
      const found = Object.keys(result.categories).filter((name) => result.categories[name]);
      const above = Object.keys(scores).filter((name) => (scores[name] ?? 0) >= (thresholds[name] ?? Infinity));
      for (const name of [...found.filter((name) => !hasThreshold(name)), ...above]) categories.add(name);
      flagged ||= result.flagged && !found.some(hasThreshold);
    }
    return { flagged: flagged || categories.size > 0, categories: [...categories] };
  }

  return {
    async moderate(parts, { signal }) {
      const body = JSON.stringify({ model, input: parts.map(inputOf) });
      const response = await send(`${baseURL}/moderations`, {
        method: "POST",
        headers,
        body,
        signal,
        redirect: "manual",
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw new Error(`Cannot moderate: ${baseURL} answered with status ${response.status}`);
      }
      const answer: ModerationResponse = await response.json();
      if (!Array.isArray(answer?.results) || answer.results.length === 0) {
        throw new TypeError(`Cannot moderate: ${baseURL} answered without results`);
      }
      return moderationOf(answer);
    },
  };
}

function inputOf(part: ContentPart): object {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, data, url } = part;
  if (!mediaType.startsWith("image/")) throw new TypeError(`Cannot moderate ${mediaType}: expected text or an image`);
  return { type: "image_url", image_url: { url: url ?? `data:${mediaType};base64,${data}` } };
}

// The middleware `moderation()`, and its options.

/** Options of `moderation()`. */
export interface ModerationOptions {
  /** The moderation service. */
  readonly moderator: Moderator;
  /** Number of characters of the answer that are checked together. Default: 400. */
  readonly window?: number;
  /** Milliseconds after which a check has failed. Default: 10,000. */
  readonly timeout?: number;
  /** Shown in place of flagged text or media. The rest of the answer is dropped. Default: "[This text was removed.]" */
  readonly replacement?: string;
  /** The reason that a client receives for a refused message. Default: "The message was refused." */
  readonly reason?: string;
  /** Whether messages from outside are checked: prompts, history, steering, replies, edited inputs, and the tools, formats and instructions of clients. Default: true. */
  readonly input?: boolean;
  /** Whether answers, reasoning, refusals, sources, and the calls that the provider of the model runs are checked, with their results. Default: true. */
  readonly output?: boolean;
  /** Whether images and files that the model generates are checked with its answers. A file that the service cannot check is cut. Default: true. */
  readonly media?: boolean;
  /** Called for content that is flagged or could not be checked. Default: nothing. */
  readonly onFlagged?: (moderation: Moderation, source: "input" | "output") => void;
}

/**
 * Checks messages from outside before they are accepted, and the answer while it streams, with a moderation service. A flagged message is refused. A flagged
 * answer is cut before the flagged text or file. If the service fails or takes too long, the message is refused, or the answer is cut. Put it first in `use`,
 * but after `redact()`, so that it checks the text that clients receive and the service receives no secret. Agents that are tools inherit it, so their
 * answers are checked too; an agent with a `moderation()` of its own asks both services, so give it the same object, or none.
 *
 * Throws a `RangeError` if `window` is not a whole number of 1 or more, or `timeout` is not positive or longer than a timer can run. Throws a `TypeError`
 * without a `moderator`, and for an unknown option or one of the wrong type.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { moderation, type Moderator } from "@jizai/jizai/middleware/moderation";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const moderator: Moderator = { // in your app: openaiModerator({ apiKey })
 *   moderate: (parts) => Promise.resolve({ flagged: JSON.stringify(parts).includes("fool"), categories: [] }),
 * };
 * const assistant = agent({ model: scripted("You fool."), use: [moderation({ moderator })] });
 *
 * assertEquals((await assistant.run("Hi").result).text, "[This text was removed.]");
 * assertEquals((await assistant.run("Hi, fool").result).status, "cancelled");
 * ```
 */
export function moderation(options: ModerationOptions): Middleware {
  checkOptions(options);
  const { moderator, window = 400, timeout = 10_000, replacement = "[This text was removed.]" } = options;
  const { reason = "The message was refused.", input = true, output = true, media = true } = options;
  const { onFlagged = () => {} } = options;
  const screenAnswer = screen({
    window,
    timeout,
    check: ({ before, text }, ctx) => screenPart({ type: "text", text: before + text }, ctx),
    ...(media && { checkMedia: screenPart }),
  });

  /** Decides about a part of an answer. */
  async function screenPart(part: ContentPart, { signal }: ModelContext): Promise<Screening> {
    const moderation = await moderator.moderate([part], { signal });
    if (!moderation.flagged) return { type: "pass" };
    onFlagged(moderation, "output");
    return { type: "cut", text: replacement };
  }

  /** Whether a message may be accepted. A failure of the service is reported, and refuses it. */
  async function isAccepted(message: Message, ctx: InputContext): Promise<boolean> {
    const parts = contentOf(message);
    if (parts.length === 0) return true;
    try {
      const moderation = await withinTime((signal) => moderator.moderate(parts, { signal }), {
        ms: timeout,
        signal: ctx.signal,
        operation: "check a message",
      });
      if (moderation.flagged) onFlagged(moderation, "input");
      return !moderation.flagged;
    } catch (error) {
      ctx.run.report(error);
      return false;
    }
  }

  return {
    name: "moderation",
    inherit: true,
    ...(output && { model: screenAnswer }),
    ...(input && {
      async input(ctx, next) {
        const accepted = await Promise.all(ctx.messages.map((message) => isAccepted(message, ctx)));
        return accepted.every(Boolean) ? await next() : refused(reason);
      },
    }),
  };
}

function checkOptions(options: ModerationOptions): void {
  const subject = "Cannot create moderation()";
  const checks = ["input", "output", "media"] as const;
  const others = ["moderator", "window", "timeout", "replacement", "reason", "onFlagged"] as const;
  expectNames(subject, options, [...others, ...checks]);
  if (typeof options.moderator?.moderate !== "function") {
    throw new TypeError(`${subject}: it has no service; expected \`moderator\`, such as openaiModerator({ apiKey })`);
  }
  const wrong = checks.find((name) => !["undefined", "boolean"].includes(typeof options[name]));
  if (wrong) {
    throw new TypeError(`${subject}: \`${wrong}\` is ${JSON.stringify(options[wrong])}; expected true or false`);
  }
  const { timeout = 1, onFlagged } = options;
  if (!["undefined", "function"].includes(typeof onFlagged)) {
    throw new TypeError(`${subject}: \`onFlagged\` is ${JSON.stringify(onFlagged)}; expected a function`);
  }
  const texts = ["replacement", "reason"] as const;
  const other = texts.find((name) => !["undefined", "string"].includes(typeof options[name]));
  if (other) throw new TypeError(`${subject}: \`${other}\` is ${JSON.stringify(options[other])}; expected a text`);
  expectTime(`${subject}: \`timeout\``, timeout);
}

/**
 * Returns the text and the media of a message, and the author that it names. The other parts of an answer that a client sends are checked as JSON, with the
 * provider's own data.
 */
function contentOf(message: Message): readonly ContentPart[] {
  const parts = message.role === "tool" ? message.results.flatMap((result) => result.parts) : message.parts;
  const author = message.role === "user" && message.from ? [{ type: "text", text: message.from } as const] : [];
  return [...author, ...parts].flatMap((part): readonly ContentPart[] => {
    if (part.type === "media") return [part];
    const text = part.type === "text" ? part.text : JSON.stringify(part);
    return text === "" ? [] : [{ type: "text", text }];
  });
}
