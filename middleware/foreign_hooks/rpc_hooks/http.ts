/**
 * Hooks behind a URL: every message is a POST request, and the body of the response is the answer.
 *
 * @module
 */
import { readBody } from "../kit/body.ts";
import type { Process } from "./config.ts";
import { answeredBy, mostBytes, type RpcMessage, type Wire } from "./transport.ts";

/** Sends a request. */
export type Fetch = (url: string, init: RequestInit) => Response | Promise<Response>;

/** Returns a function that connects to a URL. Throws a `TypeError` if the text is not a URL. */
export function httpWire({ url = "", headers }: Pick<Process, "url" | "headers">, fetch: Fetch): () => Wire {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new TypeError(`expected a URL with http:// or https://, got "${url}"`);
  }
  const sent = new Headers(headers);
  sent.set("content-type", "application/json");

  async function post(message: RpcMessage, signal: AbortSignal): Promise<Response> {
    const response = await fetch(url, { method: "POST", headers: sent, body: JSON.stringify(message), signal });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`Cannot post to the hook: status ${response.status}`);
  }

  return () => ({
    async ask(request, signal) {
      const answer: unknown = JSON.parse(await readBody(await post(request, signal), mostBytes));
      if (answeredBy(answer) !== request.id) throw new TypeError("Cannot ask the hook: its answer has another id");
      return answer;
    },
    async notify(message, signal) {
      await (await post(message, signal)).body?.cancel();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}
