/**
 * The network between clients and processes: requests and responses are lost, streams are cut, and streams end when their process dies.
 *
 * @module
 */
import type { PersonAnswer } from "@jizai/jizai";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import { refusal } from "../faulty_network.ts";
import type { Cluster } from "./cluster.ts";
import type { Process, Trace } from "./process.ts";

/** A network. */
export interface Network {
  /** Has the signature of the platform's `fetch`. */
  fetch(url: string, init?: RequestInit): Promise<Response>;
  /** The requests whose frames arrived out of order. */
  readonly disorder: readonly string[];
  /** The answers of a person that are known to be accepted, each with the number of the event that asked. */
  readonly taken: readonly (PersonAnswer & { readonly at: number })[];
  readonly figures: Readonly<Record<"requests" | "cuts", number>>;
}

/** A request that did not arrive, or whose response was incomplete. */
export class Unreachable extends TypeError {}

/** The faults of a request: it is lost, its response is lost, a proxy refuses it, or its stream breaks or ends early. */
const fates = ["lost", "unanswered", "refused", "cut", "cut", "cut", "ended"] as const;

/** Creates a network in front of a cluster. */
export function network(cluster: Cluster, { below, one }: Chance, trace: Trace): Network {
  const disorder: string[] = [];
  const taken: (PersonAnswer & { readonly at: number })[] = [];
  const figures = { requests: 0, cuts: 0 };
  const rough = one([0, 2, 5]); // faults in ten requests

  async function send({ app, died }: Process, url: string, init: RequestInit): Promise<Response> {
    const dead = Promise.withResolvers<never>();
    died.addEventListener("abort", () => dead.reject(new Unreachable()), { once: true });
    dead.promise.catch(() => {}); // the caller receives the error
    const response = await Promise.race([app.request(url, init), dead.promise]);
    if (url.endsWith("/answers") && response.ok) {
      const { answers, at }: { answers: PersonAnswer[]; at: number } = JSON.parse(String(init.body));
      taken.push(...answers.map((answer) => ({ ...answer, at })));
    }
    return response;
  }

  return {
    disorder,
    taken,
    figures,
    async fetch(url, init = {}) {
      figures.requests++;
      const { method = "GET", body = "", headers } = init;
      const after = Number(new Headers(headers).get("last-event-id") ?? 0);
      const what = `${method} ${url} ${after || body}`;
      const fate = below(10) < rough ? one(fates) : "well";
      trace(`${what} (${fate})`);
      await sleep(below(20));
      const process = cluster.any();
      if (fate === "lost" || !process) throw new Unreachable();
      if (fate === "refused") return refusal(one([429, 502, 503]), "elsewhere");
      const response = await send(process, url, init);
      trace(`${response.status} to ${what}${response.ok ? "" : ` ${await response.clone().text()}`}`);
      if (fate === "unanswered") await response.body?.cancel();
      if (fate === "unanswered" || process.died.aborted) throw new Unreachable();
      if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      const frames = response.body.pipeThrough(inOrder(after || undefined, () => disorder.push(what)));
      const bytes = fate === "cut" || fate === "ended" ? below(one([200, 3_000, 20_000])) : Infinity;
      if (bytes < Infinity) figures.cuts++;
      return new Response(cut(frames, { died: process.died, bytes, ends: fate === "ended" }));
    },
  };
}

/** Passes frames on, and calls `tell` if one is out of order. */
function inOrder(after: number | undefined, trace: () => void): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let at = after;
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (!line.startsWith("id: ")) continue;
        const id = Number(line.slice(4));
        if (at !== undefined && id !== at + 1) trace();
        at = id;
      }
      controller.enqueue(chunk);
    },
  });
}

/** Returns the beginning of `body`: it ends or breaks after a number of bytes, and breaks when its process dies. */
function cut(
  body: ReadableStream<Uint8Array>,
  { died, bytes, ends }: { readonly died: AbortSignal; readonly bytes: number; readonly ends: boolean },
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let left = bytes;
  return new ReadableStream({
    start(controller) {
      died.addEventListener("abort", () => controller.error(new Unreachable()), { once: true });
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (died.aborted) return;
      if (done) return controller.close();
      controller.enqueue(value.slice(0, left));
      left -= value.length;
      if (left > 0) return;
      reader.cancel(); // the other side notices it
      if (ends) controller.close();
      else controller.error(new Unreachable());
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
