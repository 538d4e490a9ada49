/**
 * Refusals: what a provider says of a request that it does not answer, or of an answer that it breaks off.
 *
 * @module
 */
import { isFields, textIn } from "./fields.ts";
import { ModelError } from "./model.ts";

/** How much is read of what a provider says, and how much of it is told, in characters. */
const mostRead = 8_192;
const mostTold = 1_000;

/** What is known of a response. */
type Answered = Partial<Pick<Response, "status" | "headers">>;

/** Makes the errors of one provider. */
export interface Refusals {
  /** The error of a response that is no answer. */
  readonly of: (response: Response) => Promise<ModelError>;
  /** The error that is told of in a frame, or in a body that was read; then with what is known of the response. */
  readonly in: (said: unknown, response?: Answered) => ModelError;
}

/** The errors of requests to `model`, in which `secrets` are masked: providers are known to repeat what they were sent. */
export function refusals(model: string, secrets: readonly string[]): Refusals {
  function refusal(said: unknown, { status, headers }: Answered = {}): ModelError {
    const { message, kind, code } = wordsOf(said);
    const known = status ?? code;
    const overflow = isTooLong(known, kind, message);
    const retryAfter = headers && retryAfterOf(headers);
    const why = secrets.reduce((text, secret) => text.replaceAll(secret, "***"), message || kind);
    const short = why.length > mostTold ? `${why.slice(0, mostTold)}…` : why;
    return new ModelError(`Cannot ask ${model}: ${[known, short].filter(Boolean).join(" ") || "it gave no reason"}`, {
      overflow,
      recoverable: !overflow && mayPass(known, kind, headers),
      ...(retryAfter !== undefined && { retryAfter }),
      ...(known !== undefined && { status: known }),
    });
  }

  return { of: async (response) => refusal(await beginningOf(response), response), in: refusal };
}

/** What is found in every provider's way of saying it: `{ error: { ... } }`, a list of one, or the text alone. */
function wordsOf(said: unknown): { readonly message: string; readonly kind: string; readonly code?: number } {
  const outer: unknown = Array.isArray(said) ? said[0] : said;
  const inner = isFields(outer) ? outer.error || outer : outer;
  if (!isFields(inner)) return { message: textIn(inner), kind: "" };
  const { message, detail, type, code, status } = inner;
  return {
    message: textIn(message) || textIn(detail),
    kind: [type, code, status].map(textIn).filter(Boolean).join(" "),
    ...(typeof code === "number" && code >= 400 && code < 600 && { code }),
  };
}

/** How providers say that a request is larger than the model's context. */
const tooLong =
  /context[ _](length|window|size|limit)|exceed_context|maximum prompt length|number of tokens allowed|too many (input )?tokens|(prompt|input) is too long|request_too_large/i;

function isTooLong(status: number | undefined, kind: string, message: string): boolean {
  return status === 413 || status !== 429 && !/rate_limit/.test(kind) && tooLong.test(`${kind} ${message}`);
}

/** Whether the same request may succeed later. An answer that breaks off may, unless what the provider says is about the request. */
function mayPass(status: number | undefined, kind: string, headers?: Headers): boolean {
  const said = headers?.get("x-should-retry");
  if (said === "true" || said === "false") return said === "true";
  if (/quota|billing/.test(kind)) return false;
  if (status !== undefined) return status >= 500 || status === 408 || status === 409 || status === 429;
  return !/invalid|authentication|permission|not_found|filter|policy/i.test(kind);
}

/** How long the provider asks to wait, in milliseconds. */
function retryAfterOf(headers: Headers): number | undefined {
  const exact = headers.get("retry-after-ms");
  if (exact && Number(exact) >= 0) return Number(exact);
  const given = headers.get("retry-after");
  if (!given) return undefined;
  const seconds = Number(given);
  const ms = Number.isNaN(seconds) ? Date.parse(given) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** How a body begins, read as JSON where it is that: no refusal is worth megabytes. */
async function beginningOf({ body }: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of body ?? []) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= mostRead) break;
    }
    return JSON.parse(text);
  } catch {
    return text; // it was cut, or is a page: as it stands it says enough
  }
}
