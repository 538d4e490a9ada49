/**
 * A server with a log that serves one recorded run: a run that has begun is logged, with or without a client.
 *
 * @module
 */
import type { PersonAnswer } from "@jizai/jizai";
import type { Frame } from "@jizai/jizai/client";
import { faultyNetwork, type NetworkFaults, refusal } from "./faulty_network.ts";

/** The behavior of the server and the network. */
export interface LogServerOptions extends NetworkFaults {
  /** Whether the server supports idempotency keys for answers. Default: true. */
  readonly keyed?: boolean;
}

/** The body of a request. */
interface Body {
  readonly answers?: readonly PersonAnswer[];
}

/** Serves the recorded run in `legs`: the events before each pause, and before the end. */
export function logServer(
  legs: readonly (readonly Frame[])[],
  { keyed = true, ...trouble }: LogServerOptions = {},
) {
  const { event } = legs[0]?.[0] ?? {};
  if (event?.type !== "run.started") throw new Error("Cannot serve a run that does not begin");
  const { run, session } = event;
  const keys: string[] = [];
  const sent: unknown[] = [];

  /** Returns the events after `at`. */
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
    ...faultyNetwork({ request }, trouble),
    /** The bodies of the requests that began a leg. */
    sent: sent as readonly unknown[],
  };
}

/** Whether the leg ended with the questions that `answers` answer. */
function isAsked(leg: readonly Frame[] = [], { answers = [] }: Body): boolean {
  const { event } = leg.at(-1) ?? {};
  return event?.type === "run.paused" &&
    answers.every(({ callId }) => event.questions.some((question) => question.callId === callId));
}
