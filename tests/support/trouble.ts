/**
 * A network on which things befall requests and their answers.
 *
 * @module
 */
import type { App } from "./requests.ts";

/** A fault of a request: it is lost, its response is lost, a proxy refuses it, or its stream is cut or ended early. */
export type Fate =
  | { readonly type: "well" | "lost" | "unheard" }
  | { readonly type: "refused"; readonly status: number }
  | { readonly type: "cut" | "ended"; readonly after: number };

/** The faults of a network. */
export interface Trouble {
  /** Returns the fault of the request with this number, from 0. Default: nothing. */
  readonly fate?: (request: number) => Fate;
  /** The bytes of an answer, as they arrive. Default: all at once. */
  readonly pieces?: (text: string) => readonly Uint8Array<ArrayBuffer>[];
}

/** The way to `app` through trouble. */
export function troubled(
  app: App,
  { fate = () => ({ type: "well" }), pieces = (text) => [new TextEncoder().encode(text)] }: Trouble = {},
) {
  const requests: string[] = [];
  return {
    /** The requests, each as `GET /runs/1 after 5`. */
    requests: requests as readonly string[],
    /** As the platform's. */
    async fetch(url: string, init: RequestInit = {}): Promise<Response> {
      const { method, headers } = new Request(new URL(url, "http://localhost"), init);
      const after = headers.get("last-event-id");
      const { pathname } = new URL(url, "http://localhost");
      const number = requests.push(`${method} ${pathname}${after === null ? "" : ` after ${after}`}`) - 1;
      const befalls = fate(number);
      if (befalls.type === "lost") throw new TypeError("The network is down");
      if (befalls.type === "refused") return refusal(befalls.status, "elsewhere");
      const response = await app.request(url, init);
      if (befalls.type === "unheard") throw new TypeError("The network is down");
      if (!response.ok || response.status === 204) return response;
      return new Response(flow(pieces(await response.text()), befalls));
    },
  };
}

/** Bytes as they arrive, and no more than arrives. */
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

/** An answer that something is not served. */
export function refusal(status: number, code: string): Response {
  return Response.json({ error: { code, message: `It is ${code}.` } }, { status });
}
