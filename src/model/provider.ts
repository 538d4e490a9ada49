/**
 * Shared code of the adapters that reach a provider over HTTP. An adapter adds the fields of a request and a parser for the frames of a response.
 *
 * @module
 */
import { type Model, ModelError, type ModelEvent } from "./model.ts";
import { isPage, messageOf, type ProviderErrors, providerErrors } from "./provider_error.ts";
import { wholeCharacters } from "./response.ts";
import type { Json } from "../protocol/part.ts";
import { expectNames, isObject, jsonOrText, type UnknownObject } from "../protocol/shape.ts";
import { type Frame, frames } from "../stream/sse.ts";

// Delta cache: reads a frame that differs from the previous one only in its text without parsing the rest of it. Most frames of a stream are of this kind,
// and parsing each of them is most of the cost of reading a stream.

type Delta = Extract<ModelEvent, { readonly type: "text" | "reasoning" }>;

/** Remembers the last frame that carried one text and nothing else. */
interface DeltaCache {
  /** Returns the event of a frame that differs from the remembered one only in its text. */
  readonly match: (frame: string) => Delta | undefined;
  /** Whether frames are still learned. A stream whose frames never match, since each has a number of its own, is not worth it. */
  readonly isLearning: () => boolean;
  /** Remembers a parsed frame, or forgets the last one if `events` is not a single text. */
  readonly learn: (frame: string, events: readonly ModelEvent[]) => void;
}

/** Matches text that JSON can write in one way only, so that the position of the match is the position of the text. */
const unescaped = /^"[\w ,.]+"$/;

/** Matches exactly one JSON string. */
const literal = /^"(?:[^"\\]|\\.)+"$/;

/** The frames that are learned in a row without a match before the cache gives up. */
const maxMisses = 32;

/** Creates an empty cache. */
export function deltaCache(): DeltaCache {
  let type: Delta["type"] | undefined;
  let before = "";
  let after = "";
  let misses = 0;

  function match(frame: string): Delta | undefined {
    // comparing slices takes a tenth of the time of startsWith() and endsWith()
    if (!type || frame.slice(0, before.length) !== before || frame.slice(-after.length) !== after) return undefined;
    const text = frame.slice(before.length, -after.length);
    if (!literal.test(text)) return undefined;
    misses = 0;
    return { type, text: JSON.parse(text) };
  }

  function learn(frame: string, [event, ...more]: readonly ModelEvent[]): void {
    type = undefined;
    if (more.length > 0 || (event?.type !== "text" && event?.type !== "reasoning")) return;
    const text = JSON.stringify(event.text);
    const [start = "", end = "", ...others] = frame.split(text);
    if (!unescaped.test(text) || end === "" || others.length > 0) return;
    type = ++misses > maxMisses ? undefined : event.type;
    before = start;
    after = end;
  }

  return { match, isLearning: () => misses <= maxMisses, learn };
}

// The requests of an adapter, and the frames of their responses.

/** The address and the credentials of a provider, and defaults for its requests. */
export interface ProviderOptions {
  /** The provider's name of the model. */
  readonly model: string;
  /** The API key. No error contains it. Default: no key is sent. */
  readonly apiKey?: string;
  /** The address of the API; a query is kept. Default: the vendor's address. */
  readonly baseURL?: string;
  /** Headers of every request. They override the adapter's own. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends requests. Default: the platform's `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /** Maximum number of tokens in a response, if the request sets none. */
  readonly maxTokens?: number;
  /** Sampling temperature, if the request sets none. Default: the provider's. */
  readonly temperature?: number;
  /** Fields added to every request body; they override the adapter's own, and `null` removes one. Default: none. */
  readonly options?: { readonly [name: string]: Json };
}

/** A configured provider. */
export interface Provider {
  readonly model: string;
  readonly url: string;
  readonly origin: NonNullable<Model["server"]>;
  readonly headers: Headers;
  readonly send: NonNullable<ProviderOptions["fetch"]>;
  readonly errors: ProviderErrors;
}

/** Parses one response. Frames that differ from the previous one only in their text come from the delta cache and are not parsed. */
export interface ResponseParser {
  /** Appends the events of a frame to `events`. Returns true for the last frame, if the API marks it. */
  readonly parse: (frame: UnknownObject, events: ModelEvent[]) => boolean;
  /** Whether each further frame must be parsed, even if it differs from the previous one only in its text. Default: false. */
  readonly readsAll?: () => boolean;
  /** Returns the remaining events, or none if the response was cut. `complete` is true if the provider marked the end. */
  readonly end: (complete: boolean) => readonly ModelEvent[];
}

/** The defaults of an adapter: its name and those of its own options, the vendor's address, the path and query of a request, and the adapter's headers. */
interface ProviderDefaults {
  readonly name: string;
  /** The name of the provider in the OpenTelemetry conventions. Default: that of the adapter. */
  readonly provider?: string;
  readonly options?: readonly string[];
  readonly base: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly adapterHeaders: Readonly<Record<string, string>>;
}

const optionNames = ["model", "apiKey", "baseURL", "headers", "fetch", "maxTokens", "temperature", "options"];

/** Configures a provider. Throws a `TypeError` for an unknown option, if the model has no name, or if the address, the key or a header is invalid. */
export function provider(
  providerOptions: ProviderOptions,
  { name: adapter, provider: name = adapter, options = [], base, path, query = {}, adapterHeaders }: ProviderDefaults,
): Provider {
  expectNames(`Cannot create ${adapter}()`, providerOptions, [...optionNames, ...options]);
  const { model, apiKey = "", baseURL, headers = {}, fetch: send } = providerOptions;
  if (!model) throw new TypeError("Cannot create a model: expected `model`, the provider's name of it");
  const url = urlOf(model, baseURL ?? base);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  const needsKey = !send && baseURL === undefined && Object.keys(headers).length === 0; // the vendor's own API
  const secrets = [apiKey, ...Object.values(headers).flatMap((value) => value.split(" "))];
  return {
    model,
    url: url.href,
    origin: { provider: name, address: url.hostname, port: Number(url.port || (url.protocol === "http:" ? 80 : 443)) },
    headers: headersOf({ "content-type": "application/json", ...adapterHeaders }, headers, model),
    send: needsKey && apiKey === "" ? () => Promise.reject(missingKey(model)) : send ?? fetch,
    errors: providerErrors(model, secrets.filter((secret) => secret.length >= 8)),
  };
}

function missingKey(model: string): ModelError {
  return new ModelError(`Cannot reach ${model}: its \`apiKey\` is empty; expected the key of your account`, {
    code: "unauthorized",
  });
}

function urlOf(model: string, baseURL: string): URL {
  const url = URL.parse(baseURL);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new TypeError(`Cannot reach ${model}: expected a baseURL with http:// or https://`);
}

/** Merges headers. The error does not quote the invalid value, which may be the key. */
function headersOf(
  defaultHeaders: Readonly<Record<string, string>>,
  ownersHeaders: Readonly<Record<string, string>>,
  model: string,
): Headers {
  try {
    const headers = new Headers(defaultHeaders);
    for (const [name, value] of Object.entries(ownersHeaders)) headers.set(name, value);
    return headers;
  } catch {
    throw new TypeError(`Cannot reach ${model}: its key or one of its headers contains an invalid character`);
  }
}

/** Serializes the body of a request: `fields`, overridden by `layers` in order. Fields that are null are removed. */
export function requestBody(fields: UnknownObject, ...layers: readonly (UnknownObject | undefined)[]): string {
  const all: UnknownObject = Object.assign({}, fields, ...layers);
  const body = JSON.stringify(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
  if (!body.includes("\\ud")) return body;
  // providers reject a lone surrogate, and JSON.stringify escapes exactly those
  return body.replace(/\\(?:\\|ud[89a-f]..)/g, (escape) => escape === "\\\\" ? escape : "\ufffd");
}

/** Sends `body`, or a request without one, and parses the response, one array per read. Throws a {@linkcode ModelError} if it is rejected or cut. */
export async function* streamResponse(
  { model, url, headers, send, errors }: Provider,
  body: string | undefined,
  parser: ResponseParser,
  signal: AbortSignal,
): AsyncGenerator<readonly ModelEvent[]> {
  let failure = `Cannot reach ${model}: the connection failed`;
  try {
    // redirects are not followed, so that the key reaches no other server
    const method = body === undefined ? { method: "GET" } : { method: "POST", body };
    const response = await send(url, { ...method, headers, signal, redirect: "manual" });
    if (!response.ok || (isPage(response.headers) && !await beginsWithFrame(response))) {
      throw await errors.fromResponse(response);
    }
    failure = `Cannot read the response of ${model}: the stream was cut or is invalid`;
    const parse = frameParser(parser, errors);
    const whole = wholeCharacters();
    let isEmpty = true;
    for await (const texts of response.body ? frames(response.body) : []) {
      isEmpty &&= texts.length === 0;
      const events: ModelEvent[] = [];
      let done = false;
      try {
        done = texts.some((text) => parse(text, events));
        if (done) events.push(...parser.end(true));
      } finally {
        if (events.length > 0) yield whole(events); // events before a failure are still delivered
      }
      if (done) return;
    }
    if (isEmpty) throw errors.withoutEvents(response);
    const rest = parser.end(false);
    if (rest.length > 0) yield whole(rest);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof ModelError) throw error;
    throw new ModelError(failure, { cause: error, recoverable: true });
  }
}

/** Whether a body that is typed as JSON begins with a frame: some servers type their streams so. The response can still be read. */
async function beginsWithFrame(response: Response): Promise<boolean> {
  const reader = response.clone().body?.getReader();
  const decoder = new TextDecoder();
  let start = "";
  while (reader && start === "") {
    const { value, done } = await reader.read();
    if (done) break;
    start = decoder.decode(value, { stream: true }).trimStart();
  }
  void reader?.cancel(); // settles once the response itself is read or cancelled, which reports its failure
  return /^[a-z:]/.test(start);
}

/** Returns a function that appends the events of a frame, and returns true for the last frame. */
function frameParser(
  { parse, readsAll = () => false }: ResponseParser,
  errors: ProviderErrors,
): (frame: Frame, events: ModelEvent[]) => boolean {
  const { match, isLearning, learn } = deltaCache();
  return (text, events) => {
    if (typeof text !== "string") throw errors.fromBody(jsonOrText(text.error));
    const delta = match(text);
    if (delta) {
      events.push(delta);
      return false;
    }
    const data = text.trim();
    if (data === "" || data === "[DONE]") return data !== "";
    const frame: unknown = JSON.parse(data);
    if (!isObject(frame)) return false;
    if (isErrorFrame(frame)) throw errors.fromBody(frame);
    const before = events.length;
    const done = parse(frame, events);
    if (isLearning()) learn(text, readsAll() ? [] : events.slice(before));
    return done;
  };
}

/** Whether a frame reports an error, in one of the forms of servers and proxies: some contain nothing but a message. */
function isErrorFrame(frame: UnknownObject): boolean {
  const { error, object, type, choices } = frame;
  if (error || object === "error" || type === "error") return true;
  return !choices && messageOf(frame) !== "" && (typeof type !== "string" || /error/i.test(type));
}
