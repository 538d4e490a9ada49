/**
 * Random runs that end as undisturbed ones: with a process that dies after any save, and with a pause at any point.
 */
import type { Message, PersonAnswer, Question, RunResult, Session } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { repairTranscript } from "../../src/core/transcript.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { type Done, randomAgent } from "../support/random_agent/agent.ts";
import { likeAtOnce, walk, withoutTimes } from "../support/random_agent/legs.ts";
import { storeWith } from "../support/recording_store.ts";
import { type Chance, hashOf, seeded, seeds, withSeed } from "../support/seeded.ts";
import { saving } from "../support/saving.ts";

const session = "s";

/** The state that a dead process leaves: the stored data, and the effects of its tools. */
interface Death {
  readonly kept: Session;
  readonly done: readonly Done[];
}

/** A run to its end, from its beginning or from the state of a dead process. */
interface Life {
  readonly result: RunResult;
  readonly done: readonly Done[];
  /** The open questions. */
  readonly asked: readonly Question[];
  /** The states in which the process could have died: after each save, before the next one. */
  readonly deaths: readonly Death[];
}

/** Runs the agent of `seed` to its end, and answers its pauses. Continues from `death`, if given. */
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
      journal: saving(store, (_, save) => {
        marks.push(done.length);
        return save();
      }, async (renew) => {
        const mark = done.length;
        const renewed = await renew();
        if (renewed?.stored) marks.push(mark);
        return renewed;
      }),
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
    kept.run ? [{ kept, done: done.slice(0, marks[index + 1] ?? done.length) }] : [] // without a run, it has ended
  );
  return { result: await result, done, asked, deaths };
}

/** Waits for a moment, sometimes. */
function linger({ below }: Chance): Promise<void> {
  return below(4) > 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, below(5)));
}

/** Asserts that `life`, which continued after `deaths`, has the outcome of the undisturbed run `whole`. */
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

  const stepped = started.flatMap(({ call, steps = [] }) => steps.flat().map(({ name }) => `${call.id} ${name}`));
  const repeatedSteps = life.done.slice(deaths.at(-1)?.done.length).filter(({ place, step }) =>
    stepped.includes(`${place.split(":").at(-1)} ${step}`)
  );
  assertEquals(repeatedSteps, [], "A step that was stored ran again.");

  const answered = deaths.flatMap(({ kept }) => kept.run?.answers ?? []).map(({ question }) => aboutCall(question));
  const repeated = life.asked.map(aboutCall).filter((question) => question && answered.includes(question));
  assertEquals(repeated, [], "What was answered is asked again.");
}

/** Returns `messages` without the results of interrupted calls, whose outcome is unknown. */
function without(cut: ReadonlySet<string>, messages: readonly Message[]): unknown {
  const known = messages.map((message) =>
    message.role === "tool"
      ? { ...message, results: message.results.filter(({ callId }) => !cut.has(callId)) }
      : message
  );
  return withoutTimes(known);
}

/** Removes `what` from the list. Returns whether it was there. */
function take(from: string[], what: string): boolean {
  const at = from.indexOf(what);
  if (at >= 0) from.splice(at, 1);
  return at >= 0;
}

/** Returns the question if it is about a call; a question about the run may be asked again. */
function aboutCall({ callId, tool, input }: Question): string | undefined {
  return tool && JSON.stringify([callId, tool, input]);
}

/** Kills the run of a seed after each save, and a second time after one of the later saves. */
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

Deno.test("a run whose process dies after any two saves has the outcome of an undisturbed run", async () => {
  using time = new FakeTime();
  await advanceUntilSettled(time, Promise.all(seeds(20).map((seed) => withSeed(seed, dieAnywhere))));
});

Deno.test("a run that pauses at any point, and resumes elsewhere, has the outcome of a run that is answered immediately", async () => {
  let pauses = 0;
  for (const seed of seeds(250)) pauses += await withSeed(seed, () => likeAtOnce(seed, walk));
  assert(pauses > 0);
});
