/**
 * Changes and answers that types forbid: the error names the hook, and nothing of them is stored or sent to the model.
 */
import { type Point, user } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { settled } from "../support/batch.ts";
import { at, reach } from "../support/reach.ts";

const changes: readonly (readonly [Point, change: object, problem: string])[] = [
  ["session", { context: "more" }, "`context` is String; expected Array"],
  ["input", { context: [5] }, "`text` is Number; expected String"],
  ["prompt", { context: "more" }, "`context` is String; expected Array"],
  ["prompt", { context: [5] }, "`text` is Number; expected String"],
  [
    "prompt",
    { prompt: { role: "user", parts: [{ type: "text" }] } },
    'expected messages with `role` and `parts`, such as user("Hi")',
  ],
  ["turn", { context: "more" }, "`context` is String; expected Array"],
  ["turn", { context: [undefined] }, "`text` is Null; expected String"],
  ["turn", { context: [null] }, "`text` is Null; expected String"],
  [
    "model",
    { request: { messages: [user(5 as never)] } },
    'expected messages with `role` and `parts`, such as user("Hi")',
  ],
  ["stop", { emit: "more" }, "`emit` is String; expected Function"],
  ["turn", { signal: "abort" }, "`signal` is String; expected AbortSignal"],
  ["model", { signal: null }, "`signal` is Null; expected AbortSignal"],
  ["prompt", { signal: {} }, "`signal` is Object; expected AbortSignal"],
];

for (const [point, change, problem] of changes) {
  Deno.test(`${point}: the change ${Deno.inspect(change)} fails the run with the name of the hook`, async () => {
    const { result } = await reach(point, [at(point, "wrong", (_, next) => next({ ...change }))]);
    await settled();
    const complaint = `TypeError: Cannot use the change of "wrong" at ${point}: ${problem}`;
    assertEquals([result.status, String(result.error)], ["failed", complaint]);
    assertEquals(JSON.stringify(result.messages).includes("more"), false);
  });
}

for (const point of ["tool", "execute", "approval"] as const) {
  for (const [change, problem] of [[{ signal: "abort" }, "AbortSignal"], [{ emit: "more" }, "Function"]] as const) {
    Deno.test(`${point}: the change ${JSON.stringify(change)} is an error with the name of the hook`, async () => {
      const { errors } = await reach(point, [at(point, "wrong", (_, next) => next({ ...change }))]);
      await settled();
      const [name] = Object.keys(change);
      const complaint = `Cannot use the change of "wrong" at ${point}: \`${name}\` is String; expected ${problem}`;
      assertEquals(errors.map(String), [`TypeError: ${complaint}`]);
    });
  }
}

for (const point of ["session", "input", "prompt", "turn", "model", "stop", "tool", "execute", "approval"] as const) {
  Deno.test(`${point}: next(null) changes nothing`, async () => {
    const untouched = await reach(point, []);
    const { outcome } = await reach(point, [at(point, "none", (_, next) => next(null as never))]);
    assertEquals(outcome, untouched.outcome);
  });
}

const answers = [
  ["input", "failed", 'Cannot leave input: "wrong" returned neither the result of next() nor refused()'],
  ["approval", "done", 'Cannot leave approval: "wrong" returned no allow(), ask() or deny()'],
] as const;

for (const [point, status, complaint] of answers) {
  Deno.test(`${point}: a hook that returns null is named in the error of the operator`, async () => {
    const { result, errors } = await reach(point, [at(point, "wrong", () => Promise.resolve(null))]);
    assertEquals([result.status, errors.map(String)], [status, [`TypeError: ${complaint}`]]);
  });
}
