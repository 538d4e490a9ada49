import { agent, type Middleware, ModelError, tool } from "@jizai/jizai";
import { fallback, type FallbackOptions } from "@jizai/jizai/middleware/fallback";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { eventLines, eventsOfRun, startedOver } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

const busy = new ModelError("busy", { recoverable: true });
const refused = new ModelError("refused");

/** A scripted model of this name, which notes that it was asked. */
function named(id: string, asked: string[], ...steps: readonly ScriptedAnswer[]) {
  const model = scripted(...steps);
  return {
    id,
    stream(...given: Parameters<typeof model.stream>) {
      asked.push(id);
      return model.stream(...given);
    },
  };
}

Deno.test("fallback() obeys the laws of middleware", async () => {
  await testMiddleware(() => fallback([scripted("One", "Two", "Three")]));
});

Deno.test("fallback() sends a failed request to the next model, in order", async () => {
  const asked: string[] = [];
  const answered: string[] = [];
  const errors: unknown[] = [];
  const note: Middleware = {
    name: "note",
    async model(_, next) {
      const response = await next();
      answered.push(`${response.model} ${response.attempts}`);
      return response;
    },
  };
  const model = named("a", asked, { error: busy });
  const others = [named("b", asked, { error: refused }), named("c", asked, "Hello!"), named("d", asked)];
  const onError = (error: unknown) => errors.push(error);
  const { text } = await agent({ model, use: [note, fallback(others)] }).run({ prompt: "Hi", onError }).result;
  assertEquals([text, asked, answered, errors], ["Hello!", ["a", "b", "c"], ["c 3"], [busy, refused]]);
});

Deno.test("fallback() uses no other model if the first one answers", async () => {
  const asked: string[] = [];
  const use = [fallback([named("b", asked)])];
  const { text } = await agent({ model: named("a", asked, "Hello!"), use }).run("Hi").result;
  assertEquals([text, asked], ["Hello!", ["a"]]);
});

Deno.test("fallback() fails with the last failure if no model answers", async () => {
  const last = new Error("last");
  const use = [fallback([scripted({ error: refused }), scripted({ error: last })])];
  const { status, error } = await agent({ model: scripted({ error: busy }), use }).run("Hi").result;
  assertEquals([status, error], ["failed", last]);
});

Deno.test("fallback() changes only the model of the request", async () => {
  const first = scripted({ error: busy });
  const other = scripted("Hello!");
  await agent({ model: first, instructions: "Be brief.", use: [fallback([other])] }).run("Hi").result;
  const sent = [first, other].map(({ requests }) => requests.map(({ model: _, ...rest }) => rest));
  assertEquals(sent[0], sent[1]);
});

Deno.test("fallback() starts with the first model in every turn", async () => {
  const asked: string[] = [];
  const look = tool({ name: "look", description: "", input: z.object({}), execute: () => "Seen." });
  const model = named("a", asked, { error: busy }, "Done.");
  const other = named("b", asked, { calls: [["look", {}]] });
  const { messages } = await agent({ model, tools: [look], use: [fallback([other])] }).run("Go").result;
  assertEquals(lines(messages), ["user Go", "call look", "ok Seen.", "assistant Done."]);
  assertEquals(asked, ["a", "b", "a"]);
});

Deno.test("fallback() calls `when` with the model that failed", async () => {
  const seen: string[] = [];
  const when: FallbackOptions["when"] = (error, { id }) => {
    seen.push(id);
    return error === busy;
  };
  const model = named("a", [], { error: busy });
  const use = [fallback([named("b", [], { error: refused }), named("c", [], "Hello!")], { when })];
  const { status, error } = await agent({ model, use }).run("Hi").result;
  assertEquals([status, error, seen], ["failed", refused, ["a", "b"]]);
});

Deno.test("fallback() uses no other model after text was emitted", async () => {
  const asked: string[] = [];
  const model = named("a", asked, { text: "Hel", error: busy });
  const { status, text } = await agent({ model, use: [fallback([named("b", asked, "Hello!")])] }).run("Hi").result;
  assertEquals([status, text, asked], ["failed", "Hel", ["a"]]);
});

Deno.test("fallback({ afterText: true }) uses another model after text was emitted, and emits model.reset", async () => {
  const use = [fallback([scripted("Hello!")], { afterText: true })];
  const events = await eventsOfRun(agent({ model: scripted({ text: "Hel", error: busy }), use }).run("Hi"));
  assertEquals(eventLines(events), startedOver("text.delta 1 0 Hel"));
});

Deno.test("fallback() uses no other model after the run is stopped", async () => {
  const reached = Promise.withResolvers<void>();
  const other = scripted("Hello!");
  const model = scripted({
    before: (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(busy), { once: true });
        reached.resolve();
      }),
  });
  const run = agent({ model, use: [fallback([other])] }).run("Hi");
  await reached.promise;
  run.stop();
  assertEquals([(await run.result).status, other.requests], ["aborted", []]);
});

Deno.test("fallback() passes on an interrupt of an inner hook", async () => {
  const other = scripted("Hello!");
  const ending: Middleware = { name: "ending", model: (ctx) => Promise.reject(ctx.run.end("enough")) };
  const pausing: Middleware = { name: "pausing", model: (ctx) => Promise.reject(ctx.run.pause("Really?")) };
  const results = [ending, pausing].map((middleware) =>
    agent({ model: scripted(), use: [fallback([other]), middleware] }).run("Hi").result
  );
  assertEquals((await Promise.all(results)).map(({ status }) => status), ["cancelled", "paused"]);
  assertEquals(other.requests, []);
});

Deno.test("fallback() repeats each model with retry after it, and all models with retry before it", async () => {
  const outcome = async (order: (...use: readonly Middleware[]) => readonly Middleware[]) => {
    const asked: string[] = [];
    const model = named("a", asked, { error: busy }, { error: busy });
    const other = named("b", asked, { error: busy }, "Hello!");
    const use = order(fallback([other]), retry({ attempts: 2, delay: 0 }));
    const { text } = await agent({ model, use }).run("Hi").result;
    return [text, ...asked];
  };
  assertEquals(await outcome((first, second) => [first, second]), ["Hello!", "a", "a", "b", "b"]);
  assertEquals(await outcome((first, second) => [second, first]), ["Hello!", "a", "b", "a", "b"]);
});

Deno.test("fallback() throws without models", () => {
  assertThrows(() => fallback([]), RangeError, "Cannot create fallback(): there are no models; expected at least one");
});
