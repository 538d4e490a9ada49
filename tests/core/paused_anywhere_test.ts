import { memory, type PersonAnswer, type RunResult } from "@jizai/jizai";
import { assert, assertEquals } from "@std/assert";
import { mend } from "../../src/core/mend.ts";
import { type Done, improvised } from "../support/improvised/agent.ts";
import { seeded, seeds, withSeed } from "../support/seeded.ts";

const session = "s";
const linger = () => Promise.resolve();

/** What a run has come to, and what its tools did. */
interface Came {
  readonly result: RunResult;
  readonly done: readonly Done[];
  /** How often it paused. */
  readonly pauses: number;
}

/** Runs the agent of `seed`, whose person answers at once. */
async function atOnce(seed: number): Promise<Came> {
  const done: Done[] = [];
  const vars = { atOnce: true, linger };
  const result = await improvised(seed).make(done).run({ prompt: "Go", session, vars }).result;
  return { result, done, pauses: 0 };
}

/** Runs the agent of `seed` from pause to pause, each time in another process, which finds nothing but a text. */
async function inParts(seed: number): Promise<Came> {
  const { make, person } = improvised(seed);
  const { below } = seeded(-seed);
  const done: Done[] = [];
  const vars = { atOnce: false, linger };
  let store = memory();
  let result = await make(done).run({ prompt: "Go", session, store, vars }).result;
  let pauses = 0;
  for (; result.status === "paused"; pauses++) {
    assert(pauses < 100, "It pauses for ever");
    const text = JSON.stringify(await store.load(session));
    store = memory();
    await store.save({ ...JSON.parse(text), version: 0 });
    const sure = below(result.questions.length);
    const answered = result.questions.filter((_, index) => index === sure || below(3) > 0);
    const answers = new Map(answered.map((question): [unknown, PersonAnswer] => [question.callId, person(question)]));
    result = await make(done).resume({ session, store, answers: [...answers.values()], vars }).result;
  }
  return { result, done, pauses };
}

/** What has to be the same. What may be done twice may have been, where a hook paused after it. */
function told({ result: { status, text, reason, messages }, done }: Came) {
  const { problems } = mend(messages);
  const deeds = done.map(({ what }) => what).sort();
  const once = deeds.filter((what, index) =>
    what !== deeds[index - 1] || !done.find((each) => each.what === what)?.idempotent
  );
  return { status, text, reason, messages, problems, once };
}

Deno.test("a run that is paused anywhere, and goes on elsewhere, comes to what it comes to when it is answered at once", async () => {
  let pauses = 0;
  for (const seed of seeds(500)) {
    await withSeed(seed, async () => {
      const came = await inParts(seed);
      assertEquals(told(came), told(await atOnce(seed)));
      pauses += came.pauses;
    });
  }
  assert(pauses > 0);
});
