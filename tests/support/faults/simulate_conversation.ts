/**
 * One conversation in a simulated world with faults, and the invariants that it must keep.
 *
 * @module
 */
import "../simulation.ts"; // first, because it replaces the clocks that other modules read when they are loaded
import { assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/transcript.ts";
import { randomAgent } from "../random_agent/agent.ts";
import { withSeed } from "../seeded.ts";
import { simulate } from "../simulation.ts";
import { cluster } from "./cluster.ts";
import { converse } from "./conversation.ts";
import {
  checkAnswers,
  checkAsides,
  checkDone,
  checkPrompts,
  checkQuestions,
  checkResults,
  checkRun,
  checkViews,
} from "./laws.ts";
import { network } from "./network.ts";
import type { Trace } from "./process.ts";
import { type Adapter, adapters, type Place } from "./storage.ts";

/** The number of times that each event occurred. */
export type Figures = Readonly<Record<string, number>>;

/** The range of seeds of a test. */
export interface Seeds {
  /** The number of conversations. */
  readonly conversations: number;
  /** The first seed. Each adapter has its own seeds, so that more seeds are tested. */
  readonly from: number;
}

/** Simulates conversations with one adapter. Seeds after `--` on the command line replace those of the test. */
export async function survives(adapter: Adapter, { conversations, from }: Seeds): Promise<void> {
  using kv = await Deno.openKv(":memory:");
  const seeds = Deno.args.length > 0
    ? Deno.args.map(Number)
    : Array.from({ length: conversations }, (_, index) => from + index);
  for (const seed of seeds) await withSeed(seed, () => simulateConversation(seed, () => adapters[adapter](kv)));
}

/** Simulates the conversation of `seed`. Throws if it breaks an invariant. `log` receives a line for each event. */
export async function simulateConversation(
  seed: number,
  open: () => Place,
  log: Trace = () => {},
): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const begins = Date.now();
    const trace: Trace = (what) => log(`${Date.now() - begins} ms: ${what}`);
    const place = open();
    const agent = randomAgent(seed, { tame: true });
    const processes = cluster({ chance, agent, place, trace });
    const connections = network(processes, chance, trace);
    const { received, followed, asides, interrupted, session } = await converse({
      chance,
      network: connections,
      person: agent.person,
      trace,
      prompts: 1 + chance.below(2),
    });
    const kept = place.open();
    const stored = await kept.store.load(session);
    const messages = stored?.messages ?? [];
    assertEquals([...processes.errors.map(String), ...connections.disorder], []);
    for (const run of [...received, ...followed]) await checkRun(run, kept.store.journal);
    assertEquals([stored?.run, repairTranscript(messages).problems], [undefined, []]);
    checkPrompts(messages, received);
    checkAsides(messages, asides);
    checkDone(processes.done);
    checkAnswers(connections.taken, messages, processes.done, interrupted);
    for (const run of received) checkQuestions(connections.taken, run);
    for (const { events } of received) checkResults(events, messages);
    if (!interrupted) checkViews(received, messages);
    const events = received.flatMap(({ events }) => events);
    return {
      ...processes.figures,
      ...connections.figures,
      pauses: events.filter(({ type }) => type === "run.paused").length,
      rescues: events.filter((event) => event.type === "run.started" && event.resumed).length,
      asides: asides.length,
      deeds: processes.done.length,
    };
  });
}
