/**
 * Runs in legs: from pause to pause, each by an agent that finds nothing but a text.
 *
 * @module
 */
import { memory, type PersonAnswer, type RunResult } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/lib/repair.ts";
import { seeded } from "../seeded.ts";
import { type Done, randomAgent } from "./agent.ts";

const session = "s";
const linger = () => Promise.resolve();

/** Where the run of a seed goes on: with its session as a text, and with what a person answered. */
export interface Leg {
  readonly seed: number;
  /** Default: it begins. */
  readonly from?: { readonly text: string; readonly answers: readonly PersonAnswer[] };
}

/** The outcome of a leg, as JSON. */
export interface Came {
  readonly result: Pick<RunResult, "status" | "text" | "reason" | "messages" | "questions">;
  /** The effects of its tools. */
  readonly done: readonly Done[];
  /** Its session. */
  readonly text: string;
}

/** Walks a leg. */
export async function walk({ seed, from }: Leg): Promise<Came> {
  const done: Done[] = [];
  const vars = { atOnce: false, linger };
  const store = memory();
  const assistant = randomAgent(seed).make(done);
  if (from) await store.save({ ...JSON.parse(from.text), version: 0 });
  const { result } = from
    ? assistant.resume({ session, store, answers: from.answers, vars })
    : assistant.run({ prompt: "Go", session, store, vars });
  const { status, text, reason, messages, questions } = await result;
  return {
    result: { status, text, messages, questions, ...(reason !== undefined && { reason }) },
    done,
    text: JSON.stringify(await store.load(session)),
  };
}

/** Has the run of `seed` walk to its end in legs, and holds it to what it comes to when the person answers at once. Gives how often it paused. */
export async function likeAtOnce(seed: number, walk: (leg: Leg) => Promise<Came>): Promise<number> {
  const { make, person } = randomAgent(seed);
  const { below } = seeded(-seed);
  let { result, done, text } = await walk({ seed });
  let pauses = 0;
  for (; result.status === "paused"; pauses++) {
    assert(pauses < 100, "It pauses for ever");
    const sure = below(result.questions.length);
    const answered = result.questions.filter((_, index) => index === sure || below(3) > 0);
    const answers = new Map(answered.map((question): [unknown, PersonAnswer] => [question.callId, person(question)]));
    const came = await walk({ seed, from: { text, answers: [...answers.values()] } });
    ({ result, text } = came);
    done = [...done, ...came.done];
  }
  const all: Done[] = [];
  const atOnce = await make(all).run({ prompt: "Go", session, vars: { atOnce: true, linger } }).result;
  assertEquals(told(result, done), told(atOnce, all));
  return pauses;
}

/** Returns the values that must be equal. What may be done twice may have been, where a hook paused after it. */
function told({ status, text, reason, messages }: Came["result"], done: readonly Done[]) {
  const { problems } = repairTranscript(messages);
  const deeds = done.map(({ what }) => what).sort();
  const once = deeds.filter((what, index) =>
    what !== deeds[index - 1] || !done.find((each) => each.what === what)?.idempotent
  );
  return { status, text, reason, messages, problems, once };
}
