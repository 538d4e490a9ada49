/**
 * Providers: how a model behind an HTTP API is asked, and how what it streams is read. What differs between them is the shape of a request and of a frame.
 *
 * @module
 */
import type { Json } from "../protocol/message.ts";
import { frames } from "../stream/frames.ts";
import { alike } from "./alike.ts";
import { type Fields, isFields } from "./fields.ts";
import { ModelError, type ModelEvent } from "./model.ts";
import { type Refusals, refusals } from "./refusal.ts";

/** How a provider's model is reached, and what it is told with every request. */
export interface ProviderOptions {
  /** The name of the model, as the provider has it. */
  readonly model: string;
  /** The key. No error shows it. Default: none is sent. */
  readonly apiKey?: string;
  /** Where the provider is; a query is kept. Default: the vendor's own. */
  readonly baseURL?: string;
  /** Sent with every request, over those that are made here. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends requests. Default: the platform's. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /** The most tokens an answer may have, where the request does not say. */
  readonly maxTokens?: number;
  /** How freely the model chooses its words, where the request does not say. Default: as the provider has it. */
  readonly temperature?: number;
  /** Fields of the request that the provider knows and we do not, over those that are made here; `null` leaves one out. Default: none. */
  readonly options?: { readonly [name: string]: Json };
}

/** A provider that can be asked. */
export interface Provider {
  readonly model: string;
  readonly url: string;
  readonly headers: Headers;
  readonly send: NonNullable<ProviderOptions["fetch"]>;
  readonly refusals: Refusals;
}

/** Reads one answer, frame by frame; but no frame that differs from the one before in its text alone, which says that text as the other did. */
export interface Reader {
  /** Adds what a frame says to `events`. Gives true for the last one, where frames say so. */
  readonly read: (frame: Fields, events: ModelEvent[]) => boolean;
  /** What is left to say at the end. Nothing where the answer was cut; `told` is whether the provider said that this is the end. */
  readonly end: (told: boolean) => readonly ModelEvent[];
}

/** The provider at `base`, which is asked at `path` with the headers `own`. Throws a `TypeError` where it cannot be reached that way. */
export function provider(
  { model, apiKey = "", baseURL, headers = {}, fetch: send = fetch }: ProviderOptions,
  { base, path, own }: { readonly base: string; readonly path: string; readonly own: Readonly<Record<string, string>> },
): Provider {
  const url = URL.parse(baseURL ?? base);
  if (!url) throw new TypeError(`Cannot reach ${model}: its baseURL is not a URL`);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  const secrets = [apiKey, ...Object.values(headers).flatMap((value) => value.split(" "))];
  return {
    model,
    url: url.href,
    headers: headersOf({ "content-type": "application/json", ...own }, headers, model),
    send,
    refusals: refusals(model, secrets.filter((secret) => secret.length >= 8)),
  };
}

/** The headers `own`, and `given` over them. Their own complaint about a value would show it. */
function headersOf(
  own: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>>,
  model: string,
): Headers {
  try {
    const headers = new Headers(own);
    for (const [name, value] of Object.entries(given)) headers.set(name, value);
    return headers;
  } catch {
    throw new TypeError(`Cannot reach ${model}: its key or one of its headers has a character that no header may have`);
  }
}

/** The body of a request: `fields`, and over them what is given by `layers`, the last of which counts most. */
export function bodyOf(fields: Fields, ...layers: readonly (Fields | undefined)[]): string {
  const all: Fields = Object.assign({}, fields, ...layers);
  const body = JSON.stringify(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
  if (!body.includes("\\ud")) return body;
  // half a surrogate pair is no character, and providers refuse it
  return body.replace(/\\(?:\\|ud[89a-f]..)/g, (escape) => escape === "\\\\" ? escape : "\ufffd");
}

/** Sends `body`, and reads the answer: one array for every read. Throws a {@linkcode ModelError} where it is refused or cut. */
export async function* ask(
  { model, url, headers, send, refusals }: Provider,
  body: string,
  reader: Reader,
  signal: AbortSignal,
): AsyncGenerator<readonly ModelEvent[]> {
  let failed = `Cannot reach ${model}`;
  try {
    const response = await send(url, { method: "POST", headers, body, signal, redirect: "manual" }); // a key goes nowhere else
    if (!response.ok || isPage(response)) throw await refusals.of(response);
    if (!response.body) return;
    failed = `Cannot hear ${model} out: its answer was cut, or cannot be read`;
    const hear = hearing(reader, refusals);
    for await (const texts of frames(response.body)) {
      const events: ModelEvent[] = [];
      let over = false;
      try {
        over = texts.some((text) => hear(text, events));
        if (over) events.push(...reader.end(true));
      } finally {
        if (events.length > 0) yield events; // what came before a failure was said all the same
      }
      if (over) return;
    }
    const rest = reader.end(false);
    if (rest.length > 0) yield rest;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof ModelError) throw error;
    throw new ModelError(failed, { cause: error, recoverable: true });
  }
}

/** Adds what a frame says to the events, and gives true for the last frame. */
function hearing({ read }: Reader, refusals: Refusals): (text: string, events: ModelEvent[]) => boolean {
  const { hear, learn } = alike();
  return (text, events) => {
    const known = hear(text);
    if (known) {
      events.push(known);
      return false;
    }
    if (text === "[DONE]") return true;
    const frame: unknown = JSON.parse(text);
    if (!isFields(frame)) return false;
    if (frame.error || frame.object === "error") throw refusals.in(frame);
    const before = events.length;
    const over = read(frame, events);
    learn(text, events.slice(before));
    return over;
  };
}

/** Whether a response is for people, or all in one: what is wrong is in it. */
function isPage({ headers }: Response): boolean {
  return /json|html/.test(headers.get("content-type") ?? "");
}
