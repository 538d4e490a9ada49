/**
 * Hooks behind a URL: every message is posted, and what comes back answers it.
 *
 * @module
 */
import type { Process } from "./config.ts";
import { answeredBy, mostBytes, type RpcMessage, type Wire } from "./wire.ts";

/** Sends a request. */
export type Fetch = (url: string, init: RequestInit) => Response | Promise<Response>;

/** A way to a hook behind a URL. Throws a `TypeError` where there is none. */
export function httpWire({ url = "", headers }: Pick<Process, "url" | "headers">, fetch: Fetch): () => Wire {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) throw new TypeError(`"${url}" is no URL to post to`);
  const sent = new Headers(headers);
  sent.set("content-type", "application/json");

  async function post(message: RpcMessage, signal: AbortSignal): Promise<Response> {
    const response = await fetch(url, { method: "POST", headers: sent, body: JSON.stringify(message), signal });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`It answered with status ${response.status}`);
  }

  return () => ({
    async ask(request, signal) {
      const answer: unknown = JSON.parse(await textOf(await post(request, signal)));
      if (answeredBy(answer) !== request.id) throw new TypeError("It answered another request");
      return answer;
    },
    async tell(message, signal) {
      await (await post(message, signal)).body?.cancel();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

/** The text of a response, as long as it is not more than a hook may say. */
async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > mostBytes) throw new RangeError(`It answered with more than ${mostBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
