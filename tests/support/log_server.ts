/**
 * A server of one run that was recorded, by the rules of a server that keeps a log: what was begun is kept, whoever hears it.
 *
 * @module
 */
import type { PersonAnswer } from "@jizai/jizai";
import type { Frame } from "@jizai/jizai/client";
import { refusal, type Trouble, troubled } from "./trouble.ts";

/** How a server and the way to it behave. */
export interface LogServerOptions extends Trouble {
  /** Whether it knows keys of answers again. Default: true. */
  readonly keyed?: boolean;
}

/** The content to send. */
interface Body {
  readonly answers?: readonly PersonAnswer[];
}

/** Serves the run that is recorded in `legs`: what it says before each pause, and before its end. */
export function logServer(
  legs: readonly (readonly Frame[])[],
  { keyed = true, ...trouble }: LogServerOptions = {},
) {
  const { event } = legs[0]?.[0] ?? {};
  if (event?.type !== "run.started") throw new Error("Cannot serve a run that does not begin");
  const { run, session } = event;
  const keys: string[] = [];
  const sent: unknown[] = [];

  /** The events after `at`. */
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

  async function request(path: string, init?: RequestInit): Promise<Response> {
    const request = new Request(new URL(path, "http://localhost"), init);
    return answer(request, request.method === "POST" ? await request.json() : {});
  }

  return {
    ...troubled({ request }, trouble),
    /** The bodies of what was begun: each leg once. */
    sent: sent as readonly unknown[],
  };
}

/** Whether a person is asked, at the end of a leg, what `answers` are of. */
function isAsked(leg: readonly Frame[] = [], { answers = [] }: Body): boolean {
  const { event } = leg.at(-1) ?? {};
  return event?.type === "run.paused" &&
    answers.every(({ callId }) => event.questions.some((question) => question.callId === callId));
}
