/**
 * A simulated person on a page, who prompts, reads, disconnects, returns, answers questions, sometimes twice, and sends further prompts.
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
import type { Trace } from "./process.ts";

/** The events of a run that a client received. */
export interface Received {
  readonly state: RunState;
  /** Each event once, in order. */
  readonly events: readonly Event[];
}

/** Options of `converse()`. */
export interface ConversationOptions {
  readonly chance: Chance;
  readonly network: Network;
  readonly person: Person;
  /** The number of prompts. */
  readonly prompts: number;
  readonly trace: Trace;
}

/** Has a conversation. Returns its runs, and the events that other listeners received. */
export async function converse({ chance, network, person, prompts, trace }: ConversationOptions) {
  const { below } = chance;
  const { run: begin, follow } = client("", { fetch: network.fetch, attempts: 40 });
  const received: Received[] = [];
  const going: Promise<unknown>[] = [];
  const followed: Received[] = [];
  const before: PersonAnswer[] = [];
  const asides: string[] = [];
  let steered = 0;
  let interrupted = false;
  let over = false;

  /** Runs work in the background, which is awaited at the end. */
  function beside(work: Promise<void>): void {
    work.catch(() => {}); // the caller that awaits it receives the error
    going.push(work);
  }

  /** Reads a run to its end, over several pages, or to a pause that is not answered. */
  async function receive(prompt: string, session: string | undefined): Promise<RunState> {
    const events: Event[] = [];
    const start = () => begin({ prompt, ...(session !== undefined && { session }) });
    let run = start();
    for (let refused = 0; refused < 20;) {
      const outcome = await read(run, events);
      const { state } = run;
      if (outcome === "end" && state.status === "paused") run = await answer(run);
      else if (outcome === "end") break;
      else {
        refused = outcome === "refused" ? refused + 1 : 0;
        await sleep(below(2) * below(60_000));
        run = state.run ? follow(JSON.parse(JSON.stringify(state))) : start();
      }
    }
    received.push({ state: run.state, events });
    return run.state;
  }

  /** Reads until the end, until the person leaves, or until another page has answered. */
  async function read(run: ClientRun, events: Event[]): Promise<"end" | "left" | "refused"> {
    try {
      for await (const event of run.events) {
        events.push(event);
        trace(`  ${run.state.at} ${JSON.stringify(event)}`);
        if (event.type === "run.started" && !event.resumed && below(3) === 0) beside(followRun(event.run));
        if (below(200) === 0) beside(interrupt(run));
        if (below(100) === 0) beside(steer(run.state));
        if (below(60) === 0) return "left";
      }
      return "end";
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      if (error.status === 409 || error.message.endsWith("attempts failed")) return "refused";
      throw error;
    }
  }

  /** Stops the run, or sends the next prompt before it has ended. */
  async function interrupt(run: ClientRun): Promise<void> {
    const { session } = run.state;
    if (below(2) === 0 || interrupted) return await run.stop().catch(ifRefused);
    interrupted = true;
    await receive("Meanwhile.", session);
  }

  /** Sends a message to the active run, through any process. */
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

  /** Another listener, who begins to read at some time. */
  async function followRun(id: string): Promise<void> {
    await sleep(below(2) * below(20_000));
    const events: Event[] = [];
    let run = follow({ ...noRun, run: id });
    while (await read(run, events) !== "end" || (run.state.status === "paused" && !over)) {
      await sleep(1_000 + below(10_000));
      run = follow(run.state);
    }
    followed.push({ state: run.state, events });
  }

  async function answer(run: ClientRun): Promise<ClientRun> {
    await sleep(below(2) * below(100_000));
    const answers = some(run.state.questions).map(person);
    const late = before.splice(0);
    before.push(...answers);
    if (below(4) === 0) beside(repeatAnswers(run, below(2) === 0 ? answers : late));
    return run.answer(answers);
  }

  /** Returns some of the questions, each call once. */
  function some(questions: readonly Question[]): readonly Question[] {
    const sure = below(questions.length);
    const chosen = questions.filter((_, index) => index === sure || below(3) > 0);
    return [...new Map(chosen.map((question) => [question.callId, question])).values()];
  }

  /** Sends the same answers again, now or much later, from another page. */
  async function repeatAnswers({ state }: ClientRun, answers: readonly PersonAnswer[]): Promise<void> {
    await sleep(below(2) * below(2_000));
    try {
      for await (const _ of follow(state).answer(answers).events) if (below(10) === 0) return;
    } catch (error) {
      ifRefused(error);
    }
  }

  let session: string | undefined;
  for (let n = 1; n <= prompts; n++) session = (await receive(`Prompt ${n}`, session)).session;
  over = true;
  for (let left = going.length; left > 0; left = going.length) await Promise.all(going.splice(0, left));
  return { received, followed, asides, interrupted, session: session ?? "" };
}

/** Ignores a refusal, and a server that cannot be reached. */
function ifRefused(error: unknown): void {
  if (!(error instanceof ClientError) && !(error instanceof Unreachable)) throw error;
}
