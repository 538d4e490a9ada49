import { End, type Middleware, Pause, Paused, type Question, text } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a middleware that catches the end or the pause of a run", async () => {
  const report = await reportOf((): Middleware => ({
    name: "greedy",
    async tool(_, next) {
      try {
        return await next();
      } catch {
        return text("never mind");
      }
    },
  }));
  assertEquals(report, [
    '"greedy" breaks the law that a middleware passes on what ends or pauses a run:',
    "- at tool, Paused was thrown by the inner layers, and it answered (when a person agrees)",
    "- at tool, End was thrown by the inner layers, and it answered (when an inner hook ends the run at tool)",
    "- at tool, Pause was thrown by the inner layers, and it answered (when an inner hook pauses the run at tool)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that replaces the end of a run", async () => {
  const report = await reportOf((): Middleware => ({
    name: "turning",
    async model(ctx, next) {
      try {
        return await next();
      } catch (error) {
        throw error instanceof End ? ctx.run.pause("Really?") : error;
      }
    },
  }));
  assertEquals(report, [
    '"turning" breaks the law that a middleware passes on what ends or pauses a run:',
    "- at model, End was thrown by the inner layers, and it threw Pause: The run pauses: Really? (when an inner hook ends the run at model)",
  ]);
});

/** Replaces a pause or an end of the inner layers. */
function replacing<E>(type: new (...args: never[]) => E, replace: (interrupt: E) => unknown): () => Middleware {
  return () => ({
    name: "replacing",
    async tool(_, next) {
      try {
        return await next();
      } catch (error) {
        throw error instanceof type ? replace(error) : error;
      }
    },
  });
}

Deno.test("testMiddleware() accepts a middleware that rewords the questions of a pause or the reason of an end", async () => {
  const reworded = (each: Question) => ({ ...each, questions: each.questions.map(() => "[redacted]") });
  await testMiddleware(replacing(Pause, ({ questions, saved }) => new Pause(questions.map(reworded), saved)));
  await testMiddleware(replacing(End, (end) => new End("[redacted]", end)));
});

Deno.test("testMiddleware() finds a pause that is replaced by one with other questions, or about another call", async () => {
  const replacements: readonly ((pause: Pause) => unknown)[] = [
    ({ questions }) => new Pause([...questions, ...questions]),
    () => new Pause([]),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, callId: "other" }))),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, questions: [...each.questions, "And?"] }))),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, questions: [] }))),
    () => new End("over"),
    () => new Paused("call"),
    (pause) => new Error("It pauses", { cause: pause }),
  ];
  for (const [index, replace] of replacements.entries()) {
    const [law, ...findings] = await reportOf(replacing(Pause, replace));
    assertEquals(law, '"replacing" breaks the law that a middleware passes on what ends or pauses a run:', `${index}`);
    const start = "- at tool, Pause was thrown by the inner layers, and it threw ";
    assertEquals(findings[0]?.slice(0, start.length), start, `${index}`);
  }
});

Deno.test("testMiddleware() finds an end that is replaced by one of another kind", async () => {
  const replacements: readonly ((end: End) => unknown)[] = [
    (end) => new End(end.reason, { ...end, as: end.as === "failed" ? "ended" : "failed" }),
    (end) => new End(end.reason, { ...end, rollback: !end.rollback }),
    (end) => new End(end.reason, { ...end, withhold: !end.withhold }),
    (end) => new End(end.reason, { ...end, tree: !end.tree }),
    () => new Pause([]),
  ];
  for (const [index, replace] of replacements.entries()) {
    const [law, ...findings] = await reportOf(replacing(End, replace));
    assertEquals(law, '"replacing" breaks the law that a middleware passes on what ends or pauses a run:', `${index}`);
    const start = "- at tool, End was thrown by the inner layers, and it threw ";
    assertEquals(findings[0]?.slice(0, start.length), start, `${index}`);
  }
});
