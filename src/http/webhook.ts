/**
 * A signed webhook for the ends of runs, as Standard Webhooks 1.0 describes it.
 *
 * @module
 */
import { expectTime } from "../core/lib/options.ts";
import type { ApprovalLinks } from "./approval_links/approval_links.ts";
import type { OnEnd } from "./options.ts";
import type { Event } from "../protocol/event.ts";
import { type Question, sentForm } from "../protocol/question.ts";
import { expectNames } from "../protocol/shape.ts";

export type { ApprovalLinks, LinkedQuestion, QuestionLinks } from "./approval_links/approval_links.ts";

/** Options of `webhook()`. */
export interface WebhookOptions {
  /** The address that receives the requests. It comes from your configuration, never from a request. */
  readonly url: string;
  /** The secret of the receiver: `whsec_` and base64, of 24 to 64 bytes. */
  readonly secret: string;
  /** Milliseconds that a request may take. Default: 10,000. */
  readonly timeout?: number;
  /** Adds links to the questions of a pause, with which a person approves or denies a call: those of `approvalLinks()`. Default: no links. */
  readonly links?: ApprovalLinks;
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
}

/**
 * Creates an `onEnd` that sends each end as a signed POST: `{ type, timestamp, data: { run, session, owner, event } }`. `webhook-id` is the same each time an
 * end is sent, so that the receiver can ignore a repetition. The resume token of a pause is left out: everyone who has it can continue the run. A response
 * other than 2xx counts as a failure, which `serve()` retries. Throws a `TypeError` for a secret or a URL that cannot be used, and a `RangeError` for a
 * `timeout` out of range.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { webhook } from "@jizai/jizai/webhook";
 *
 * const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"; // from your configuration
 * const onEnd = webhook({ url: "https://example.com/runs", secret });
 * const app = serve(agent({ model: scripted("Done.") }), { onEnd });
 * ```
 */
export function webhook(options: WebhookOptions): OnEnd {
  expectNames("Cannot send webhooks", options, ["url", "secret", "timeout", "links", "fetch"]);
  const { url, secret, timeout = 10_000, links, fetch: send = fetch } = options;
  const bytes = secretBytes(secret);
  const { href } = addressOf(url);
  expectTime("Cannot send webhooks: `timeout`", timeout);
  const key = once(() => crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]));

  return async (end) => {
    const { id, event, ...run } = end;
    const questions = await links?.questions(end);
    const data = { ...run, event: withoutToken(event, questions) };
    const now = Date.now();
    const timestamp = String(Math.floor(now / 1_000));
    const { type } = event;
    const body = JSON.stringify({ type, timestamp: new Date(now).toISOString(), data });
    const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
    const signature = new Uint8Array(await crypto.subtle.sign("HMAC", await key(), signed));
    const response = await send(href, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`,
      },
      body,
      redirect: "error", // another address was never configured
      signal: AbortSignal.timeout(timeout),
    });
    await response.body?.cancel();
    if (!response.ok) {
      throw new Error(`Cannot report the end of run "${data.run}": the webhook answered ${response.status}`);
    }
  };
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const [, text = ""] = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(secret) ?? [];
  const bytes = Uint8Array.from(decodeBase64(text), (character) => character.charCodeAt(0));
  if (bytes.length >= 24 && bytes.length <= 64) return bytes;
  throw new TypeError("Cannot sign webhooks: the secret is invalid; expected `whsec_` and 24 to 64 bytes in base64");
}

/** Returns an event without the resume token, which lets everyone who has it continue the run. A pause has `questions`, with their links. */
function withoutToken(event: Event, questions: readonly Question[] | undefined): Event {
  if (event.type !== "run.paused") return event;
  const { resumeToken: _, ...rest } = event;
  return sentForm({ ...rest, ...(questions && { questions }) });
}

/** Returns the decoded characters, or none if the text is not base64. */
function decodeBase64(text: string): string {
  try {
    return atob(text);
  } catch {
    return "";
  }
}

function addressOf(url: string): URL {
  const address = URL.parse(url);
  if (address?.protocol === "https:" || address?.protocol === "http:") return address;
  throw new TypeError(`Cannot send webhooks to "${url}": expected an http or https URL`);
}

/** Calls `make` until it has made something once. A promise would not settle if the request that began it were ended, as on Cloudflare Workers. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: T | undefined;
  return async () => made ??= await make();
}
