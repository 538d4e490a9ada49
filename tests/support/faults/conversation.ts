/**
 * A person at their page: who asks, hears, leaves and comes back, answers what they are asked, now and then twice, and says the next thing.
 *
 * @module
 */
import type { Event, PersonAnswer, Question } from "@jizai/jizai";
import { client, ClientError, type ClientRun, noRun, type RunState } from "@jizai/jizai/client";
import type { Person } from "../improvised/person.ts";
import type { Chance } from "../seeded.ts";
import { sleep } from "../simulation.ts";
import type { Tell } from "./cluster.ts";
import type { Network } from "./network.ts";

/** A run, as it was heard. */
export interface Heard {
  readonly state: RunState;
  /** Each event once, in its order. */
  readonly events: readonly Event[];
}

/** Who takes part. */
export interface ConversationOptions {
  readonly chance: Chance;
  readonly network: Network;
  readonly person: Person;
  /** How many prompts there are. */
  readonly prompts: number;
  readonly tell: Tell;
}

/** Has a conversation, and gives its runs; and what others heard who only listened. */
export async function converse({ chance, network, person, prompts, tell }: ConversationOptions) {
  const { below } = chance;
  const { run: begin, follow } = client("", { fetch: network.fetch, attempts: 10_000 });
  const heard: Heard[] = [];
  const overheard: Promise<Heard>[] = [];
  const before: PersonAnswer[] = [];

  /** Hears a run to its end, over any number of pages. */
  async function hear(prompt: { readonly prompt: string; readonly session?: string }): Promise<Heard> {
    const events: Event[] = [];
    let run = begin(prompt);
    for (;;) {
      const over = await read(run, events);
      const { state } = run;
      const page: RunState = JSON.parse(JSON.stringify(state));
      if (over && state.status === "paused") run = await answer(run);
      else if (over) return { state, events };
      else {
        await sleep(below(2) * below(60_000));
        run = state.run ? follow(page) : begin(prompt);
      }
    }
  }

  /** Reads on, until there is no more, or the person leaves; or another page was faster. */
  async function read(run: ClientRun, events: Event[]): Promise<boolean> {
    try {
      for await (const event of run.events) {
        events.push(event);
        tell(`  ${run.state.at} ${JSON.stringify(event)}`);
        if (event.type === "run.started" && !event.resumed && below(3) === 0) overheard.push(overhear(event.run));
        if (below(60) === 0) return false;
      }
      return true;
    } catch (error) {
      if (error instanceof ClientError && error.status === 409) return false;
      throw error;
    }
  }

  /** Somebody else, who begins to listen some time. */
  async function overhear(id: string): Promise<Heard> {
    await sleep(below(2) * below(20_000));
    const events: Event[] = [];
    let run = follow({ ...noRun, run: id });
    while (!await read(run, events) || run.state.status === "paused") {
      await sleep(1_000 + below(10_000));
      run = follow(run.state);
    }
    return { state: run.state, events };
  }

  async function answer(run: ClientRun): Promise<ClientRun> {
    await sleep(below(2) * below(100_000));
    const answers = some(run.state.questions).map(person);
    const late = before.splice(0);
    before.push(...answers);
    if (below(4) === 0) void again(run, below(2) === 0 ? answers : late);
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
      const other = follow(state).answer(answers);
      for await (const _ of other.events) if (below(10) === 0) return;
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
    }
  }

  let session: string | undefined;
  for (let n = 1; n <= prompts; n++) {
    const last = await hear({ prompt: `Prompt ${n}`, ...(session !== undefined && { session }) });
    session = last.state.session;
    heard.push(last);
  }
  return { heard, overheard: await Promise.all(overheard), session: session ?? "" };
}
