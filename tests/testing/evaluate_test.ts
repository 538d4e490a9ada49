import { agent } from "@jizai/jizai";
import { evaluate, type EvaluationCase, scripted } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";

const exact = {
  name: "exact",
  score: ({ case: { expected }, result }: { case: EvaluationCase; result: { text: string } }) =>
    result.text === expected,
};

function caseOf(name: string, text: string, expected: string): EvaluationCase {
  return { name, agent: agent({ model: scripted(text) }), prompt: name, expected };
}

Deno.test("evaluate() rates every case with every scorer", async () => {
  const length = {
    name: "length",
    score: ({ result }: { result: { text: string } }) => Promise.resolve(result.text.length / 10),
  };
  const events = {
    name: "events",
    score: ({ events }: { events: readonly { type: string }[] }) => events.at(-1)?.type === "run.finished",
  };
  const { cases, means, table } = await evaluate([caseOf("a", "Yes", "Yes"), caseOf("long name", "Never", "No")], [
    exact,
    length,
    events,
  ]);
  assertEquals(cases, [
    { name: "a", status: "done", scores: { exact: 1, length: 0.3, events: 1 }, errors: {} },
    { name: "long name", status: "done", scores: { exact: 0, length: 0.5, events: 1 }, errors: {} },
  ]);
  assertEquals(means, { exact: 0.5, length: 0.4, events: 1 });
  assertEquals(table.split("\n"), [
    "case       status  exact  length  events",
    "a          done     1.00    0.30    1.00",
    "long name  done     0.00    0.50    1.00",
    "mean                0.50    0.40    1.00",
  ]);
});

Deno.test("evaluate() runs at most `parallel` cases at the same time, and keeps their order", async () => {
  let running = 0;
  let peak = 0;
  const slow = (name: string): EvaluationCase => ({
    name,
    prompt: name,
    agent: agent({
      model: scripted({
        text: name,
        async before() {
          peak = Math.max(peak, ++running);
          for (let tick = 0; tick < 20; tick++) await Promise.resolve();
          running--;
        },
      }),
    }),
  });
  const { cases } = await evaluate(["a", "b", "c", "d", "e"].map(slow), [exact], { parallel: 2 });
  assertEquals([peak, cases.map(({ name }) => name)], [2, ["a", "b", "c", "d", "e"]]);
});

Deno.test("evaluate() counts a scorer that throws as 0, and keeps its error", async () => {
  const trouble = new RangeError("trouble");
  const failing = {
    name: "failing",
    score() {
      throw trouble;
    },
  };
  const { cases, table } = await evaluate([caseOf("a", "Yes", "Yes")], [failing, exact]);
  assertEquals(cases[0], { name: "a", status: "done", scores: { failing: 0, exact: 1 }, errors: { failing: trouble } });
  assertEquals(table, "case  status  failing  exact\na     done      error   1.00\nmean             0.00   1.00");
});

Deno.test("evaluate() rejects a score that is not from 0 to 1, and no parallel case", async () => {
  const high = { name: "high", score: () => 7 };
  await assertRejects(
    () => evaluate([caseOf("a", "Yes", "Yes")], [high]),
    RangeError,
    'Cannot use the score 7 of "high": expected a number from 0 to 1',
  );
  await assertRejects(() => evaluate([], [], { parallel: 0 }), RangeError, "expected at least 1 parallel case, got 0");
  assertEquals((await evaluate([], [exact])).table, "case  status  exact\nmean           0.00");
});
