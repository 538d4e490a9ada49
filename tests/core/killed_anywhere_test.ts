import type { Message, PersonAnswer, Question, RunResult, Session } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { repairTranscript } from "../../src/core/lib/repair.ts";
import { type Done, randomAgent } from "../support/random_agent/agent.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { storeWith } from "../support/recording_store.ts";
import { type Chance, hashOf, seeded, seeds, withSeed } from "../support/seeded.ts";

const session = "s";

/** The state that a dead process leaves: the stored data, and the effects of its tools. */
interface Death {
  readonly kept: Session;
  readonly done: readonly Done[];
}

/** A run to its end, from its beginning or from a death. */
interface Life {
  readonly result: RunResult;
  readonly done: readonly Done[];
  /** The questions to the person. */
  readonly asked: readonly Question[];
  /** How it might have died: after each save, shortly before the next. */
  readonly deaths: readonly Death[];
}

/** Lives as the agent of `seed`, from pause to pause. */
async function live(seed: number, chance: Chance, death?: Death): Promise<Life> {
  const { make, person } = randomAgent(seed);
  const done = [...death?.done ?? []];
  const asked: Question[] = [];
  const { store, saved } = await storeWith(death?.kept);
  const marks = saved.map(() => done.length);
  const options = {
    session,
    store: {
      ...store,
      save(session: Session) {
        marks.push(done.length);
        return store.save(session);
      },
    },
    lease: chance.one([9, 60_000]),
    lost: () => true,
    vars: { atOnce: false, linger: () => linger(chance) },
  };

  function answersTo(questions: readonly Question[] = []): readonly PersonAnswer[] {
    asked.push(...questions);
    return [...new Map(questions.map((question) => [question.callId, person(question)])).values()];
  }

  const { run } = death?.kept ?? {};
  let { result } = death
    ? make(done).resume({ ...options, answers: run?.exit ? answersTo(run.exit.questions) : [] })
    : make(done).run({ ...options, prompt: "Go" });
  while ((await result).status === "paused") {
    assert(asked.length < 1_000, "It pauses for ever");
    result = make(done).resume({ ...options, answers: answersTo((await result).questions) }).result;
  }
  const deaths = saved.flatMap((kept, index) =>
    kept.run ? [{ kept, done: done.slice(0, marks[index + 1] ?? done.length) }] : [] // it has ended
  );
  return { result: await result, done, asked, deaths };
}

/** Takes a while, now and then. */
function linger({ below }: Chance): Promise<void> {
  return below(4) > 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, below(5)));
}

/** Whether `life`, which went on after `deaths`, came to what it would have come to. */
function check(whole: Life, life: Life, deaths: readonly Death[]): void {
  const records = deaths.flatMap(({ kept: { run } }) => run?.position.at === "tools" ? run.position.calls : []);
  const started = records.filter(({ state }) => state === "running" || state === "ran");
  const known = started.flatMap((record) =>
    record.state === "ran" && record.raw.status !== "aborted" ? [record.call.id] : []
  );
  const cut = new Set(started.map(({ call }) => call.id).filter((callId) => !known.includes(callId)));
  const { status, messages } = life.result;
  assertEquals([status, repairTranscript(messages).problems], [whole.result.status, []]);
  assertEquals(without(cut, messages), without(cut, whole.result.messages));

  const deeds = whole.done.map(({ what }) => what);
  const more = life.done.filter(({ what, idempotent }) => !idempotent && !take(deeds, what));
  assertEquals(more, [], "What may not be done twice was.");

  const answered = deaths.flatMap(({ kept }) => kept.run?.answers ?? []).map(({ question }) => aboutCall(question));
  const again = life.asked.map(aboutCall).filter((question) => question && answered.includes(question));
  assertEquals(again, [], "What was answered is asked again.");
}

/** `messages` without what became of calls that were interrupted, since nobody knows whether they were done. */
function without(cut: ReadonlySet<string>, messages: readonly Message[]): unknown[] {
  return messages.map((message) =>
    message.role === "tool"
      ? message.results.map((result) => cut.has(result.callId) ? `${result.callId} was interrupted` : result)
      : message
  );
}

/** Takes `what` out, where it is there. */
function take(from: string[], what: string): boolean {
  const at = from.indexOf(what);
  if (at >= 0) from.splice(at, 1);
  return at >= 0;
}

/** A question about a call; one that is about none may be asked again. */
function aboutCall({ callId, tool, input }: Question): string | undefined {
  return tool && JSON.stringify([callId, tool, input]);
}

/** Has the run of a seed die after each save, and once more after one of those that follow. */
async function dieAnywhere(seed: number): Promise<void> {
  const whole = await live(seed, seeded(seed));
  await Promise.all(whole.deaths.map(async (first, index) => {
    const chance = seeded(hashOf(`${seed} ${index}`));
    const next = await live(seed, chance, first);
    check(whole, next, [first]);
    const second = next.deaths[chance.below(next.deaths.length)];
    if (second) check(whole, await live(seed, chance, second), [first, second]);
  }));
}

Deno.test("a run whose process dies after any save, and once more, comes to what it would have come to", async () => {
  using time = new FakeTime();
  await advanceUntilSettled(time, Promise.all(seeds(40).map((seed) => withSeed(seed, dieAnywhere))));
});
