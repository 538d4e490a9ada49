/**
 * Legs of runs: each leg runs from pause to pause, with an agent that restores its state from a text.
 *
 * @module
 */
import { memory, type Message, type PersonAnswer, type RunResult } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { repairTranscript } from "../../../src/core/transcript.ts";
import { seeded } from "../seeded.ts";
import { type Done, randomAgent } from "./agent.ts";

const session = "s";
const linger = () => Promise.resolve();

/** The start of a leg: the session as a text, and the answers of the person. */
export interface Leg {
  readonly seed: number;
  /** Default: the run begins. */
  readonly from?: { readonly text: string; readonly answers: readonly PersonAnswer[] };
}

/** The outcome of a leg, as JSON. */
export interface Outcome {
  readonly result: Pick<RunResult, "status" | "text" | "reason" | "messages" | "questions">;
  /** The effects of its tools. */
  readonly done: readonly Done[];
  /** The session as a text. */
  readonly text: string;
}

/** Runs a leg. */
export async function walk({ seed, from }: Leg): Promise<Outcome> {
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

/** Runs `seed` in legs to its end, and asserts the outcome of a run that is answered immediately. Returns the number of pauses. */
export async function likeAtOnce(seed: number, walk: (leg: Leg) => Promise<Outcome>): Promise<number> {
  const { make, person } = randomAgent(seed);
  const { below } = seeded(-seed);
  let { result, done, text } = await walk({ seed });
  let pauses = 0;
  for (; result.status === "paused"; pauses++) {
    assert(pauses < 100, "It pauses for ever");
    const sure = below(result.questions.length);
    const answered = result.questions.filter((_, index) => index === sure || below(3) > 0);
    const answers = new Map(answered.map((question): [unknown, PersonAnswer] => [question.callId, person(question)]));
    const outcome = await walk({ seed, from: { text, answers: [...answers.values()] } });
    ({ result, text } = outcome);
    done = [...done, ...outcome.done];
  }
  const all: Done[] = [];
  const atOnce = await make(all).run({ prompt: "Go", session, vars: { atOnce: true, linger } }).result;
  assertEquals(comparable(result, done), comparable(atOnce, all));
  return pauses;
}

/** Returns messages with the ids and results of the calls inside subagents: when they ran, and what a person was asked about them, depends on the pauses. */
export function withoutTimes(messages: readonly Message[]): readonly object[] {
  return messages.map((message) => {
    if (message.role !== "tool") return message;
    const results = message.results.map(({ inner, ...result }) => {
      const calls = inner?.calls.map(({ id, status, parts }) => ({ id, status, parts }));
      return { ...result, ...(calls && { inner: { ...inner, calls } }) };
    });
    return { ...message, results };
  });
}

/** Returns the values that must be equal. An effect that a pause repeats may occur twice. */
function comparable({ status, text, reason, messages }: Outcome["result"], done: readonly Done[]) {
  const { problems } = repairTranscript(messages);
  const deeds = done.map(({ what }) => what).sort();
  const once = deeds.filter((what, index) =>
    what !== deeds[index - 1] || !done.find((each) => each.what === what)?.idempotent
  );
  return { status, text, reason, messages: withoutTimes(messages), problems, once };
}
