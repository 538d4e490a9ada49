/**
 * One conversation in a world where things go wrong, and what has to hold of it whatever went wrong.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/mend.ts";
import { improvised } from "../improvised/agent.ts";
import { simulate } from "../simulation.ts";
import { cluster } from "./cluster.ts";
import { converse } from "./conversation.ts";
import { checkAnswers, checkAsides, checkDone, checkPrompts, checkQuestions, checkRun, checkViews } from "./laws.ts";
import { network } from "./network.ts";
import type { Tell } from "./process.ts";
import type { Place } from "./storage.ts";

/** What came to pass. */
export type Figures = Readonly<Record<string, number>>;

/** Lives through the conversation of `seed`, and holds it to what has to hold. */
export async function live(seed: number, open: () => Place, told: Tell = () => {}): Promise<Figures> {
  return await simulate(seed, async (chance) => {
    const begins = Date.now();
    const tell: Tell = (what) => told(`${Date.now() - begins} ms: ${what}`);
    const place = open();
    const agent = improvised(seed, { tame: true });
    const processes = cluster({ chance, agent, place, tell });
    const way = network(processes, chance, tell);
    const { heard, overheard, asides, interrupted, session } = await converse({
      chance,
      network: way,
      person: agent.person,
      tell,
      prompts: 1 + chance.below(2),
    });
    const { store, log } = place.open();
    const kept = await store.load(session);
    const messages = kept?.messages ?? [];
    assertEquals([...processes.errors.map(String), ...way.disorder], []);
    for (const run of [...heard, ...overheard]) await checkRun(run, log);
    assertEquals([kept?.run, repairTranscript(messages).problems], [undefined, []]);
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
