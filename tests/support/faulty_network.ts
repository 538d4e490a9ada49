/**
 * A network that loses requests and responses.
 *
 * @module
 */
import type { App } from "./requests.ts";

/** A fault of a request: it is lost, its response is lost, a proxy refuses it, or its stream is cut or ended early. */
export type Fate =
  | { readonly type: "well" | "lost" | "unanswered" }
  | { readonly type: "refused"; readonly status: number }
  | { readonly type: "cut" | "ended"; readonly after: number };

/** Options of the network. */
export interface NetworkFaults {
  /** Returns the fault of the request with this number, from 0. Default: no fault. */
  readonly fate?: (request: number) => Fate;
  /** Splits the bytes of a response as they arrive. Default: all at once. */
  readonly pieces?: (text: string) => readonly Uint8Array<ArrayBuffer>[];
}

/** Returns a `fetch` for `app` with faults. */
export function faultyNetwork(
  app: App,
  { fate = () => ({ type: "well" }), pieces = (text) => [new TextEncoder().encode(text)] }: NetworkFaults = {},
) {
  const requests: string[] = [];
  return {
    /** The requests, each as `GET /runs/1 after 5`. */
    requests: requests as readonly string[],
    /** Has the signature of the platform's `fetch`. */
    async fetch(url: string, init: RequestInit = {}): Promise<Response> {
      const { method, headers } = new Request(new URL(url, "http://localhost"), init);
      const after = headers.get("last-event-id");
      const { pathname } = new URL(url, "http://localhost");
      const number = requests.push(`${method} ${pathname}${after === null ? "" : ` after ${after}`}`) - 1;
      const isFault = fate(number);
      if (isFault.type === "lost") throw new TypeError("The network is down");
      if (isFault.type === "refused") return refusal(isFault.status, "elsewhere");
      const response = await app.request(url, init);
      if (isFault.type === "unanswered") throw new TypeError("The network is down");
      if (!response.ok || response.status === 204) return response;
      return new Response(flow(pieces(await response.text()), isFault));
    },
  };
}

/** Streams the bytes that arrive before the fault. */
function flow(pieces: readonly Uint8Array<ArrayBuffer>[], fate: Fate): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = "after" in fate ? fate.after : Infinity;
  const queue = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = queue.shift();
      if (piece && left > 0) {
        controller.enqueue(piece.slice(0, left));
        left -= piece.length;
      } else if (fate.type === "cut") controller.error(new TypeError("The connection was reset"));
      else controller.close();
    },
  }, { highWaterMark: 0 });
}

/** Creates a refusal. */
export function refusal(status: number, code: string): Response {
  return Response.json({ error: { code, message: `It is ${code}.` } }, { status });
}
