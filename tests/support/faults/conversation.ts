/**
 * A person at their page: who asks, hears, leaves and comes back, answers what they are asked, now and then twice, and says the next thing.
 *
 * @module
 */
import type { Event, PersonAnswer, Question } from "@jizai/jizai";
import { client, ClientError, type ClientRun, noRun, type RunState } from "@jizai/jizai/client";
import type { Person } from "../random_agent/person.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import { type Network, Unreachable } from "./network.ts";
import { aside } from "./laws.ts";
import type { Tell } from "./process.ts";

/** A run, as it was heard. */
export interface Heard {
  readonly state: RunState;
  /** Each event once, in its order. */
  readonly events: readonly Event[];
}

/** The participants. */
export interface ConversationOptions {
  readonly chance: Chance;
  readonly network: Network;
  readonly person: Person;
  /** How many prompts there are. */
  readonly prompts: number;
  readonly tell: Tell;
}

/** Has a conversation, and gives its runs, and what others heard who only listened. */
export async function converse({ chance, network, person, prompts, tell }: ConversationOptions) {
  const { below } = chance;
  const { run: begin, follow } = client("", { fetch: network.fetch, attempts: 40 });
  const heard: Heard[] = [];
  const going: Promise<unknown>[] = [];
  const overheard: Heard[] = [];
  const before: PersonAnswer[] = [];
  const asides: string[] = [];
  let steered = 0;
  let interrupted = false;
  let over = false;

  /** Has something go on, which is waited for in the end. */
  function beside(work: Promise<void>): void {
    work.catch(() => {}); // whoever waits for it hears of that
    going.push(work);
  }

  /** Hears a run to its end, over any number of pages; or to where nobody waits for an answer any more. */
  async function hear(prompt: string, session: string | undefined): Promise<RunState> {
    const events: Event[] = [];
    const start = () => begin({ prompt, ...(session !== undefined && { session }) });
    let run = start();
    for (let refused = 0; refused < 20;) {
      const way = await read(run, events);
      const { state } = run;
      if (way === "end" && state.status === "paused") run = await answer(run);
      else if (way === "end") break;
      else {
        refused = way === "refused" ? refused + 1 : 0;
        await sleep(below(2) * below(60_000));
        run = state.run ? follow(JSON.parse(JSON.stringify(state))) : start();
      }
    }
    heard.push({ state: run.state, events });
    return run.state;
  }

  /** Reads on, until there is no more, or the person leaves; or another page was faster. */
  async function read(run: ClientRun, events: Event[]): Promise<"end" | "left" | "refused"> {
    try {
      for await (const event of run.events) {
        events.push(event);
        tell(`  ${run.state.at} ${JSON.stringify(event)}`);
        if (event.type === "run.started" && !event.resumed && below(3) === 0) beside(overhear(event.run));
        if (below(200) === 0) beside(interrupt(run));
        if (below(100) === 0) beside(steer(run.state));
        if (below(60) === 0) return "left";
      }
      return "end";
    } catch (error) {
      if (error instanceof ClientError && (error.status === 409 || error.code === "lost")) return "refused";
      throw error;
    }
  }

  /** Stops the run, or says the next thing before it has ended. */
  async function interrupt(run: ClientRun): Promise<void> {
    const { session } = run.state;
    if (below(2) === 0 || interrupted) return await run.stop().catch(ifRefused);
    interrupted = true;
    await hear("Meanwhile.", session);
  }

  /** Says something to the run while it runs, through whichever process it reaches. */
  async function steer({ run }: RunState): Promise<void> {
    const text = aside(`${++steered}`);
    const body = JSON.stringify({ text, ...(below(2) === 0 && { after: "calls" }) });
    try {
      const headers = { "content-type": "application/json" };
      const { status } = await network.fetch(`/runs/${run}/messages`, { method: "POST", headers, body });
      if (status === 202) asides.push(text);
    } catch (error) {
      ifRefused(error);
    }
  }

  /** Somebody else, who begins to listen some time. */
  async function overhear(id: string): Promise<void> {
    await sleep(below(2) * below(20_000));
    const events: Event[] = [];
    let run = follow({ ...noRun, run: id });
    while (await read(run, events) !== "end" || (run.state.status === "paused" && !over)) {
      await sleep(1_000 + below(10_000));
      run = follow(run.state);
    }
    overheard.push({ state: run.state, events });
  }

  async function answer(run: ClientRun): Promise<ClientRun> {
    await sleep(below(2) * below(100_000));
    const answers = some(run.state.questions).map(person);
    const late = before.splice(0);
    before.push(...answers);
    if (below(4) === 0) beside(again(run, below(2) === 0 ? answers : late));
    return run.answer(answers);
  }

  /** Some of the questions, each call once. */
  function some(questions: readonly Question[]): readonly Question[] {
    const sure = below(questions.length);
    const chosen = questions.filter((_, index) => index === sure || below(3) > 0);
    return [...new Map(chosen.map((question) => [question.callId, question])).values()];
  }

  /** The same at the same time, or what was answered long ago: from another page. */
  async function again({ state }: ClientRun, answers: readonly PersonAnswer[]): Promise<void> {
    await sleep(below(2) * below(2_000));
    try {
      for await (const _ of follow(state).answer(answers).events) if (below(10) === 0) return;
    } catch (error) {
      ifRefused(error);
    }
  }

  let session: string | undefined;
  for (let n = 1; n <= prompts; n++) session = (await hear(`Prompt ${n}`, session)).session;
  over = true;
  for (let left = going.length; left > 0; left = going.length) await Promise.all(going.splice(0, left));
  return { heard, overheard, asides, interrupted, session: session ?? "" };
}

/** Lets pass that a server has refused something, or could not be reached. */
function ifRefused(error: unknown): void {
  if (!(error instanceof ClientError) && !(error instanceof Unreachable)) throw error;
}
