/**
 * A server of one run that was recorded, by the rules of a server that keeps a log: what was begun is kept, whoever hears it. What befalls a request
 * and its answer on their way is up to the test.
 *
 * @module
 */
import type { PersonAnswer } from "@jizai/jizai";
import type { Frame } from "@jizai/jizai/client";

/** What befalls a request: it never arrives; nobody hears of the answer; a server in between refuses it; or its stream is cut, or ended, early. */
export type Fate =
  | { readonly type: "well" | "lost" | "unheard" }
  | { readonly type: "refused"; readonly status: number }
  | { readonly type: "cut" | "ended"; readonly after: number };

/** How a server behaves. */
export interface LogServerOptions {
  /** What befalls the request of this number, from 0. Default: nothing. */
  readonly fate?: (request: number) => Fate;
  /** The bytes of an answer, as they arrive. Default: all at once. */
  readonly pieces?: (text: string) => readonly Uint8Array<ArrayBuffer>[];
  /** Whether it knows keys of answers again. Default: true. */
  readonly keyed?: boolean;
}

/** What is sent. */
interface Body {
  readonly answers?: readonly PersonAnswer[];
}

/** Serves the run that is recorded in `legs`: what it says before each pause, and before its end. */
export function logServer(
  legs: readonly (readonly Frame[])[],
  { fate = () => ({ type: "well" }), pieces = (text) => [new TextEncoder().encode(text)], keyed = true }:
    LogServerOptions = {},
) {
  const { event } = legs[0]?.[0] ?? {};
  if (event?.type !== "run.started") throw new Error("Cannot serve a run that does not begin");
  const { run, session } = event;
  const keys: string[] = [];
  const requests: string[] = [];
  const sent: unknown[] = [];

  /** What was said after `at`. */
  function rest(at: number): Response {
    const frames = legs.slice(0, keys.length).flat().filter(({ id }) => id > at);
    if (frames.length === 0) return new Response(null, { status: 204 });
    return new Response(frames.map(({ id, event }) => `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
  }

  /** Begins the leg of this number, once. */
  function begin(leg: number, key: string | null, body: Body): Response {
    const before = legs.slice(0, leg).flat().length;
    if (leg < keys.length && keys[leg] === key && (keyed || leg === 0)) return rest(before);
    if (leg !== keys.length || leg === legs.length) return refusal(409, "not-paused");
    if (leg > 0 && !isAsked(legs[leg - 1], body)) return refusal(409, "unasked");
    keys.push(key ?? "");
    sent.push(body);
    return rest(before);
  }

  function answer({ method, url, headers }: Request, body: Body): Response {
    const { pathname } = new URL(url);
    const key = headers.get("idempotency-key");
    if (method === "POST" && pathname === "/runs") return begin(0, key, body);
    if (method === "POST" && pathname === `/sessions/${encodeURIComponent(session)}/answers`) {
      const known = keys.indexOf(key ?? "");
      return begin(known > 0 ? known : Math.max(1, keys.length), key, body);
    }
    if (method === "GET" && pathname === `/runs/${run}` && keys.length > 0) {
      return rest(Number(headers.get("last-event-id") ?? 0));
    }
    return refusal(404, "unknown");
  }

  return {
    /** What was asked, each as `GET /runs/1 after 5`. */
    requests: requests as readonly string[],
    /** The bodies of what was begun: each leg once. */
    sent: sent as readonly unknown[],
    /** As the platform's. */
    async fetch(url: string, init?: RequestInit): Promise<Response> {
      const request = new Request(new URL(url, "http://localhost"), init);
      const after = request.headers.get("last-event-id");
      const number = requests.push(
        `${request.method} ${new URL(request.url).pathname}${after === null ? "" : ` after ${after}`}`,
      ) - 1;
      const befalls = fate(number);
      if (befalls.type === "lost") throw new TypeError("The network is down");
      if (befalls.type === "refused") return refusal(befalls.status, "elsewhere");
      const response = answer(request, request.method === "POST" ? await request.json() : {});
      if (befalls.type === "unheard") throw new TypeError("The network is down");
      if (!response.ok || response.status === 204) return response;
      return new Response(flow(pieces(await response.text()), befalls));
    },
  };
}

/** Whether a person is asked, at the end of a leg, what `answers` are of. */
function isAsked(leg: readonly Frame[] = [], { answers = [] }: Body): boolean {
  const { event } = leg.at(-1) ?? {};
  return event?.type === "run.paused" &&
    answers.every(({ callId }) => event.questions.some((question) => question.callId === callId));
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

function refusal(status: number, code: string): Response {
  return Response.json({ error: { code, message: `It is ${code}.` } }, { status });
}
