/**
 * Conditions and keys among the options may be promises.
 */
import { agent, deny, type Middleware, ModelError, only, tool, when } from "@jizai/jizai";
import { cache } from "@jizai/jizai/middleware/cache";
import { callRate } from "@jizai/jizai/middleware/call_rate";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { notes } from "@jizai/jizai/middleware/notes";
import { rateLimit } from "@jizai/jizai/middleware/rate_limit";
import { retry } from "@jizai/jizai/middleware/retry";
import { serial } from "@jizai/jizai/middleware/serial";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as z from "zod";

import { gauge, settled } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";

/** Resolves later, as a condition that asks a database does. */
async function later<T>(value: T): Promise<T> {
  await Promise.resolve();
  return value;
}

const noCalls: Middleware = { name: "no_calls", approval: () => Promise.resolve(deny("No calls.")) };

/** Runs two calls of a tool. Returns the results, and the number of calls that ran at the same time. */
async function twoCalls(use: readonly Middleware[], options: object = {}) {
  const running = gauge();
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({}),
    ...options,
    async execute() {
      await running.during(settled);
      return "seen";
    },
  });
  const model = scripted({ calls: [["look", {}], ["look", {}]] }, "Done.");
  const errors: string[] = [];
  const run = agent({ model, tools: [look], use }).run({
    prompt: "Hi",
    onError: (error) => errors.push(String(error)),
  });
  const { messages } = await run.result;
  return { results: lines(messages).slice(2, 4), peak: running.peak, errors };
}

Deno.test("when() awaits its predicate", async () => {
  assertEquals((await twoCalls([when(() => later(false), noCalls)])).results, ["ok seen", "ok seen"]);
  assertEquals((await twoCalls([when(() => later(true), noCalls)])).results, ["denied No calls.", "denied No calls."]);
});

Deno.test("when() around a guard denies the call if its predicate rejects", async () => {
  const { results, errors } = await twoCalls([when(() => Promise.reject(new Error("No database")), noCalls)]);
  assertEquals(results, ["denied A guard failed.", "denied A guard failed."]);
  assertEquals(errors, ["Error: No database", "Error: No database"]);
});

Deno.test("when() and only() await their predicates about groups", async () => {
  const alone: Middleware = { name: "alone", groups: () => later("alone") };
  assertEquals((await twoCalls([when(() => later(true), alone)])).peak, 1);
  assertEquals((await twoCalls([when(() => later(false), alone)])).peak, 2);
  assertEquals((await twoCalls([only("look", alone)])).peak, 1);
});

Deno.test("a middleware's groups and a tool's parallel may be promises, and a call runs alone if they reject", async () => {
  const fails = () => Promise.reject(new Error("No database"));
  assertEquals((await twoCalls([{ name: "groups", groups: () => later("alone") }])).peak, 1);
  assertEquals((await twoCalls([{ name: "groups", groups: fails }])).peak, 1);
  assertEquals((await twoCalls([], { parallel: () => later(false) })).peak, 1);
  assertEquals((await twoCalls([], { parallel: () => later(true) })).peak, 2);
  const { peak, errors } = await twoCalls([], { parallel: fails });
  assertEquals([peak, errors], [1, ["Error: No database", "Error: No database"]]);
});

Deno.test("retry() and fallback() await their conditions", async () => {
  const failure = new ModelError("Busy", { recoverable: true });
  const asked = async (use: Middleware) => {
    const model = scripted({ error: failure }, "Again.");
    const { status } = await agent({ model, use: [use] }).run({ prompt: "Hi", onError: () => {} }).result;
    return status;
  };
  assertEquals(await asked(retry({ delay: 0, when: () => later(false) })), "failed");
  assertEquals(await asked(retry({ delay: 0, when: () => later(true) })), "done");
  assertEquals(await asked(fallback([scripted("Other.")], { when: () => later(false) })), "failed");
  assertEquals(await asked(fallback([scripted("Other.")], { when: () => later(true) })), "done");
});

Deno.test("cache() awaits its key, so that two users never share an entry", async () => {
  const model = scripted("For Ada.", "For Bob.");
  const per = ({ run }: { readonly run: { readonly owner: string | undefined } }) => later(run.owner);
  const assistant = agent({ model, use: [cache({ keyValue: memoryKeyValue(), per })] });
  const texts = [];
  for (const owner of ["ada", "bob", "ada"]) texts.push((await assistant.run({ prompt: "Hi", owner }).result).text);
  assertEquals(texts, ["For Ada.", "For Bob.", "For Ada."]);
});

Deno.test("cache() awaits its conditions", async () => {
  const model = scripted("One.", "Two.");
  const assistant = agent({ model, use: [cache({ keyValue: memoryKeyValue(), model: () => later(false) })] });
  assertEquals([(await assistant.run("Hi").result).text, (await assistant.run("Hi").result).text], ["One.", "Two."]);
});

Deno.test("notes() awaits its owner, so that two users never share notes", async () => {
  const model = scripted({ calls: [["write_note", { text: "Prefers tea" }]] }, "Noted.", "Hello.", "Hello.");
  const keyValue = memoryKeyValue();
  const owner = ({ run }: { readonly run: { readonly owner: string | undefined } }) => later(run.owner);
  const assistant = agent({ model, use: [notes({ keyValue, owner })] });
  for (const owner of ["ada", "bob", "ada"]) await assistant.run({ prompt: "Hi", owner }).result;
  const [, , bob, ada] = model.requests.map(({ messages }) => JSON.stringify(messages));
  assertEquals(bob?.includes("Prefers tea"), false);
  assertStringIncludes(ada ?? "", "Prefers tea");
});

Deno.test("rateLimit(), callRate() and serial() await their keys", async () => {
  const per = ({ run }: { readonly run: { readonly owner: string | undefined } }) => later(run.owner ?? "");
  const assistant = agent({ model: scripted("One.", "Two."), use: [rateLimit({ per, limit: 1, window: 60_000 })] });
  const statuses = [];
  for (const owner of ["ada", "bob", "ada"]) {
    statuses.push((await assistant.run({ prompt: "Hi", owner }).result).status);
  }
  assertEquals(statuses, ["done", "done", "cancelled"]);
  const rate = callRate({ per: ({ callId }) => later(callId), limit: 1, window: 60_000 });
  assertEquals((await twoCalls([rate])).results, ["ok seen", "ok seen"]);
  assertEquals((await twoCalls([serial(() => later("one key"))])).peak, 1);
  assertEquals((await twoCalls([serial(({ callId }) => later(callId))])).peak, 2);
});
