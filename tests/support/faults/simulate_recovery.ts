/**
 * A background run in a simulated environment with faults, and the invariants that it must keep. Its client sends the prompt and the answers, and nothing
 * else: only the processes' calls of `recover()` continue it.
 *
 * @module
 */
import "../simulation.ts"; // first, because it replaces the clocks that other modules read when they are loaded
import type { Event, PersonAnswer, Session } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/transcript.ts";
import { randomAgent } from "../random_agent/agent.ts";
import { framesOf } from "../requests.ts";
import { withSeed } from "../seeded.ts";
import { simulate, sleep } from "../simulation.ts";
import { cluster } from "./cluster.ts";
import { checkDone, checkResults } from "./laws.ts";
import { type Network, network, Unreachable } from "./network.ts";
import type { Trace } from "./process.ts";
import type { Figures, Seeds } from "./simulate_conversation.ts";
import { type Adapter, adapters, type Kept, type Place } from "./storage.ts";

/** Simulates background runs with an adapter; the seeds after `--` on the command line instead, if there are any. */
export async function recovers(adapter: Adapter, { conversations, from }: Seeds): Promise<void> {
  using kv = await Deno.openKv(":memory:");
  const seeds = Deno.args.length > 0
    ? Deno.args.map(Number)
    : Array.from({ length: conversations }, (_, index) => from + index);
  for (const seed of seeds) await withSeed(seed, () => simulateRecovery(seed, () => adapters[adapter](kv)));
}

/** Simulates the background run of `seed`, and throws if it breaks an invariant. `log` receives a line for each step. */
export async function simulateRecovery(
  seed: number,
  open: () => Place,
  log: Trace = () => {},
): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const begins = Date.now();
    const trace: Trace = (what) => log(`${Date.now() - begins} ms: ${what}`);
    const place = open();
    const agent = randomAgent(seed, { tame: true });
    const processes = cluster({ chance, agent, place, trace, wakeEvery: 1_000 });
    const { fetch } = network(processes, chance, trace);
    const kept = place.open();
    const { run, session } = await (await send(fetch, "/runs", { prompt: "Go" })).json();
    let pauses = 0;
    let stored = await settled(kept, session);
    for (; stored.run; stored = await settled(kept, session)) {
      pauses++;
      const { id, events: at, exit } = stored.run;
      const questions = exit?.questions ?? [];
      const answers = [...new Map(questions.map((question) => [question.callId, agent.person(question)])).values()];
      await answer(fetch, session, { answers, run: id, at });
    }
    const seconds = Math.round((Date.now() - begins) / 1_000);
    const { messages } = stored;
    assertEquals([processes.errors.map(String), repairTranscript(messages).problems], [[], []]);
    checkDone(processes.done);
    const events = await recordOf(fetch, run);
    checkEvents(events);
    checkResults(events, messages);
    const begun = events.filter((event) => event.type === "run.started" && event.resumed).length;
    return { ...processes.figures, pauses, recoveries: begun - pauses, deeds: processes.done.length, seconds };
  });
}

/** Sends a request that begins work in the background, again and again until it is accepted. */
async function send(fetch: Network["fetch"], path: string, body: unknown): Promise<Response> {
  const headers = {
    "content-type": "application/json",
    "prefer": "respond-async",
    "idempotency-key": crypto.randomUUID(),
  };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  for (let tries = 0; tries < 200; tries++) {
    try {
      const response = await fetch(path, init);
      if (response.ok || response.status === 409) return response;
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
    await sleep(1_000);
  }
  throw new Error(`Cannot send ${path}: 200 attempts failed`);
}

/** Answers a pause, until it has been answered. */
async function answer(
  fetch: Network["fetch"],
  session: string,
  body: { readonly answers: readonly PersonAnswer[]; readonly run: string; readonly at: number },
): Promise<void> {
  await send(fetch, `/sessions/${session}/answers`, body);
  await sleep(1_000);
}

/** Waits until the run of a session has ended or paused. Throws if that takes longer than an hour. */
async function settled({ store }: Kept, id: string): Promise<Session> {
  for (let seconds = 0; seconds < 3_600; seconds++) {
    const session = await store.load(id);
    if (session && (!session.run || session.run.exit)) return session;
    await sleep(1_000);
  }
  throw new Error(`Cannot see the end of the run of session "${id}": no process has continued it for an hour`);
}

/** Returns the events of a run that has ended. */
async function recordOf(fetch: Network["fetch"], run: string): Promise<readonly (Event & { readonly id: number })[]> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      const response = await fetch(`/runs/${run}?after=0`, {});
      const text = response.ok ? (await response.text()).replaceAll(":\n\n", "") : "";
      const events = framesOf(text.slice(0, text.lastIndexOf("\n\n") + 2));
      if (isEnd(events.at(-1))) return events;
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
    await sleep(1_000);
  }
  throw new Error(`Cannot read the events of run "${run}": 200 attempts failed`);
}

function isEnd(event: Event | undefined): boolean {
  return event !== undefined && event.type.startsWith("run.") && event.type !== "run.started" &&
    event.type !== "run.paused";
}

/** Checks that each event exists once, in order, and that one of them is the end. */
function checkEvents(events: readonly (Event & { readonly id: number })[]): void {
  assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
  assertEquals(events.filter(isEnd).length, 1);
  assert(events.filter(({ type }) => type === "prompt.accepted").length <= 1, "A prompt was accepted twice");
}
