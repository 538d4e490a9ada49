import { compacted, type Middleware } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a middleware that leaves a call without a result", async () => {
  const report = await reportOf((): Middleware => ({
    name: "orphan",
    async model({ request }, next) {
      return await next({ request: { messages: request.messages.filter(({ role }) => role !== "tool").slice(0, 2) } });
    },
  }), {});
  assertEquals(report.map((line) => line.replace(/(no result for call call_1).* \(/, "$1 (")), [
    '"orphan" breaks the law that a middleware leaves the transcript valid:',
    "- at model, The messages were not valid: no result for call call_1 (in a plain run)",
    "- at model, The messages were not valid: no result for call call_1 (when a person agrees)",
  ]);
});

Deno.test("testMiddleware() finds a compaction that separates calls from their results", async () => {
  const report = await reportOf((): Middleware => ({
    name: "cutting",
    compact: ({ transcript }) => Promise.resolve(compacted(transcript.slice(0, 2))),
  }));
  assertEquals(report.map((line) => line.replace(/no result for call call_1.* \(/, "... (")), [
    '"cutting" breaks the law that a middleware leaves the transcript valid:',
    "- at compact, The messages were not valid: ... (when the transcript is compacted)",
  ]);
});

Deno.test("testMiddleware() finds a response that makes the same call twice", async () => {
  const report = await reportOf((): Middleware => ({
    name: "doubling",
    async model(_, next) {
      const response = await next();
      return { ...response, parts: [...response.parts, ...response.parts] };
    },
  }));
  assertEquals(report, [
    '"doubling" breaks the law that a middleware leaves the transcript valid:',
    "- at model, The response was not valid: its calls had ids of other calls (in a plain run)",
  ]);
});
