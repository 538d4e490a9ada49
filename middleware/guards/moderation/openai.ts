/**
 * OpenAI's moderation endpoint as a moderator.
 *
 * @module
 */
import type { ContentPart } from "../../../mod.ts";
import { expectNames } from "../../../src/core/kit.ts";
import type { Moderation, Moderator } from "./moderator.ts";

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
