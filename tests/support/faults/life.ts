/**
 * One conversation in a world where things go wrong, and what has to hold of it whatever went wrong.
 *
 * @module
 */
import { type Message, textOf } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { mend } from "../../../src/core/mend.ts";
import { type Done, improvised } from "../improvised/agent.ts";
import { simulate } from "../simulation.ts";
import { cluster, type Tell } from "./cluster.ts";
import { converse, type Heard } from "./conversation.ts";
import { type Network, network } from "./network.ts";
import type { Log } from "@jizai/jizai/session/log";
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
    const { heard, overheard, interrupted, session } = await converse({
      chance,
      network: way,
      person: agent.person,
      tell,
      prompts: 1 + chance.below(2),
    });
    const { store, log } = place.open();
    const kept = await store.load(session);
    const messages = kept?.messages ?? [];
    assertEquals(processes.errors.map(String), []);
    assertEquals(way.disorder, []);
    for (const run of [...heard, ...overheard]) await checkRun(run, log);
    assertEquals([kept?.run, mend(messages).problems], [undefined, []]);
    checkPrompts(messages, heard);
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
      deeds: processes.done.length,
    };
  });
}

/** Whoever heard a run has heard each of its events once, and all of them, in their order; or to where they left it, since it waited. */
async function checkRun({ state: { run = "", at, status }, events }: Heard, log: Log): Promise<void> {
  const lines: string[] = [];
  for (;;) {
    const page = await log.read(run, lines.length);
    lines.push(...page?.lines ?? []);
    if (!page || lines.length >= page.last) break;
  }
  const all = lines.map((line) => JSON.parse(line));
  assertEquals(events, status === "paused" ? all.slice(0, at) : all);
  assertEquals(events.length, at);
  const repaired = events.filter((event) => event.type === "warning" && event.code === "transcript.repaired");
  assertEquals(repaired, []);
}

/** What was accepted is kept, and so is what was answered. */
function checkPrompts(messages: readonly Message[], heard: readonly Heard[]): void {
  const said = messages.flatMap((message) =>
    message.role === "user" && message.from === undefined ? [textOf(message)] : []
  );

  const accepted = heard.flatMap(({ events }) =>
    events.flatMap((event) => event.type === "prompt.accepted" ? [textOf(event.prompt)] : [])
  );
  assertEquals(accepted.filter((prompt) => !said.includes(prompt)), []);
  const over = heard.filter(({ state: { status } }) => status !== "aborted" && status !== "paused");
  assert(said.length >= over.length, "A prompt was lost");
  assert(said.length <= heard.length, "A prompt was taken twice");
}

/** What was answered is not asked again. */
function checkQuestions(answers: Network["taken"], { events }: Heard): void {
  const asked = events.flatMap((event, index) =>
    event.type === "run.paused" ? event.questions.map((question) => ({ ...question, at: index + 1 })) : []
  );
  for (const { callId, tool, input, at } of asked) {
    if (tool === undefined || !answers.some((answer) => answer.at === at && answer.callId === callId)) continue;
    const again = asked.filter((other) =>
      other.at > at && other.callId === callId && JSON.stringify(other.input) === JSON.stringify(input)
    );
    assertEquals(again, []);
  }
}

/** What the client shows of runs that are done is what the transcript says. */
function checkViews(heard: readonly Heard[], messages: readonly Message[]): void {
  if (heard.some(({ state }) => state.status !== "done")) return;
  const shown = heard.flatMap(({ state }) => state.messages).flatMap(({ role, parts }) =>
    role === "assistant" ? [parts.map((part) => part.type === "text" ? part.text : "").join("")] : []
  );
  const said = messages.flatMap((message) => message.role === "assistant" ? [textOf(message)] : []);
  assertEquals(shown.filter(Boolean), said.filter(Boolean));
}

/** What may not be done twice was done once, whichever process did it. */
function checkDone(done: readonly Done[]): void {
  const once = done.filter(({ idempotent }) => !idempotent).map(({ key }) => key);
  assertEquals(once, [...new Set(once)]);
}

/** What a person answered is what came to pass. */
function checkAnswers(
  answers: Network["taken"],
  messages: readonly Message[],
  done: readonly Done[],
  interrupted: boolean,
): void {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === "tool" ? message.results.map((result) => [result.callId, result]) : []
    ),
  );
  for (const { callId, type } of new Map(answers.map((answer) => [answer.callId, answer])).values()) {
    const result = callId === undefined ? undefined : results.get(callId);
    if (!result) continue;
    const ran = done.some(({ key }) => key.split(":")[1] === callId);
    if (type === "deny") assertEquals([callId, result.status === "ok", ran], [callId, false, false]);
    if (type === "reply") assertEquals([callId, ran], [callId, false]);
    const left = textOf(result).startsWith("The conversation went on");
    if (type === "approve" && !interrupted) assertEquals([callId, left], [callId, false]);
  }
}
