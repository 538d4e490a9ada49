/**
 * One conversation in a simulated world with faults, and the laws that it must keep.
 *
 * @module
 */
import "../simulation.ts"; // first, because it replaces the clocks that other modules read when they are loaded
import { assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/lib/repair.ts";
import { randomAgent } from "../random_agent/agent.ts";
import { withSeed } from "../seeded.ts";
import { simulate } from "../simulation.ts";
import { cluster } from "./cluster.ts";
import { converse } from "./conversation.ts";
import { checkAnswers, checkAsides, checkDone, checkPrompts, checkQuestions, checkRun, checkViews } from "./laws.ts";
import { network } from "./network.ts";
import type { Tell } from "./process.ts";
import { type Adapter, adapters, type Place } from "./storage.ts";

/** How often each kind of thing happened. */
export type Figures = Readonly<Record<string, number>>;

/** The conversations of a test. */
export interface Seeds {
  /** How many. */
  readonly conversations: number;
  /** The first seed. Each adapter has seeds of its own, so that more of them are tried. */
  readonly from: number;
}

/** Simulates conversations that are stored by one adapter; the seeds after `--` on the command line instead, if there are any. */
export async function survives(adapter: Adapter, { conversations, from }: Seeds): Promise<void> {
  using kv = await Deno.openKv(":memory:");
  const seeds = Deno.args.length > 0
    ? Deno.args.map(Number)
    : Array.from({ length: conversations }, (_, index) => from + index);
  for (const seed of seeds) await withSeed(seed, () => simulateConversation(seed, () => adapters[adapter](kv)));
}

/** Simulates the conversation of `seed`, and throws if it breaks a law. `log` receives a line for each thing that happens. */
export async function simulateConversation(
  seed: number,
  open: () => Place,
  log: Tell = () => {},
): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const begins = Date.now();
    const tell: Tell = (what) => log(`${Date.now() - begins} ms: ${what}`);
    const place = open();
    const agent = randomAgent(seed, { tame: true });
    const processes = cluster({ chance, agent, place, tell });
    const way = network(processes, chance, tell);
    const { heard, overheard, asides, interrupted, session } = await converse({
      chance,
      network: way,
      person: agent.person,
      tell,
      prompts: 1 + chance.below(2),
    });
    const kept = place.open();
    const stored = await kept.store.load(session);
    const messages = stored?.messages ?? [];
    assertEquals([...processes.errors.map(String), ...way.disorder], []);
    for (const run of [...heard, ...overheard]) await checkRun(run, kept.log);
    assertEquals([stored?.run, repairTranscript(messages).problems], [undefined, []]);
    checkPrompts(messages, heard);
    checkAsides(messages, asides);
    checkDone(processes.done);
    checkAnswers(way.taken, messages, processes.done, interrupted);
    for (const run of heard) checkQuestions(way.taken, run);
    if (!interrupted) checkViews(heard, messages);
    const events = heard.flatMap(({ events }) => events);
    return {
      ...processes.figures,
      ...way.figures,
      pauses: events.filter(({ type }) => type === "run.paused").length,
      rescues: events.filter((event) => event.type === "run.started" && event.resumed).length,
      asides: asides.length,
      deeds: processes.done.length,
    };
  });
}
