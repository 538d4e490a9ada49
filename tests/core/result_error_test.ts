import { assertEquals, assertStrictEquals } from "@std/assert";
import * as z from "zod";
import { agent, failed, memory, type Message, type Middleware, tool, ToolError, type ToolResult } from "../../mod.ts";
import { scripted } from "../../src/model/scripted.ts";

const thrown = Object.assign(new Error("the password is hunter2"), { retry: () => "not JSON" });

const charge = tool({
  name: "charge",
  description: "Charges a card",
  input: z.object({}),
  execute() {
    throw thrown;
  },
});

function resultsOf(messages: readonly Message[]) {
  return messages.flatMap((message) => message.role === "tool" ? message.results : []);
}

/** Runs one call of `charge`. Returns the result that the `tool` hook saw, and the run. */
async function chargeOnce(use: readonly Middleware[] = []) {
  const seen: ToolResult[] = [];
  const observer: Middleware = {
    name: "observer",
    async tool(_, next) {
      const result = await next();
      seen.push(result);
      return { ...result, context: ["It failed."] };
    },
  };
  const store = memory();
  const handle = agent({
    model: scripted({ calls: [["charge", {}]] }, "Sorry."),
    tools: [charge],
    use: [observer, ...use],
  }).run({ prompt: "Charge me", session: "s", store });
  const events = await Array.fromAsync(handle.events);
  return { seen, events, result: await handle.result, stored: await store.load("s") };
}

Deno.test("a tool hook finds the thrown value on the result", async () => {
  const { seen } = await chargeOnce();
  assertEquals(seen.length, 1);
  assertStrictEquals(seen[0]?.error, thrown);
  assertEquals(seen[0]?.parts, [{ type: "text", text: "charge failed." }]);
});

Deno.test("the transcript, the store and the events do not contain the thrown value", async () => {
  const { result, stored, events } = await chargeOnce();
  assertEquals(result.status, "done");
  assertEquals(resultsOf(result.messages).map((each) => Object.keys(each)), [["callId", "name", "status", "parts"]]);
  for (const data of [result.messages, stored, events]) assertEquals(JSON.stringify(data).includes("hunter2"), false);
  const finished = events.find((event) => event.type === "tool.finished");
  assertEquals(finished && Object.keys(finished.result), ["callId", "name", "status", "parts"]);
});

Deno.test("a call that a hook paused after next() keeps its failure and loses the thrown value", async () => {
  const errors: unknown[] = [];
  const pausing: Middleware = {
    name: "pausing",
    async tool(ctx, next) {
      const result = await next();
      errors.push(result.error);
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Go on?");
      return result;
    },
  };
  const store = memory();
  const cashier = agent({ model: scripted({ calls: [["charge", {}]] }, "Sorry."), tools: [charge], use: [pausing] });
  const { status } = await cashier.run({ prompt: "Charge me", session: "s", store }).result;
  assertEquals(status, "paused");
  assertEquals(JSON.stringify(await store.load("s")).includes("hunter2"), false);
  const resumed = await cashier.resume({ session: "s", store, answers: [{ type: "reply", text: "yes" }] }).result;
  assertEquals(resumed.status, "done");
  assertEquals(resultsOf(resumed.messages).map(({ status }) => status), ["error"]);
  assertEquals(errors, [thrown, undefined]);
});

Deno.test("a failed result that a tool returned, or an execute hook made, has no thrown value", async () => {
  const recover: Middleware = {
    name: "recover",
    async execute(_, next) {
      try {
        return await next();
      } catch {
        return failed("The card was declined.");
      }
    },
  };
  const { seen } = await chargeOnce([recover]);
  assertEquals(seen.map(({ status, error }) => [status, error]), [["error", undefined]]);
});

Deno.test("an error that an execute hook throws replaces the tool's error on the result", async () => {
  const translated = new ToolError("The card was declined.");
  const translate: Middleware = {
    name: "translate",
    async execute(_, next) {
      try {
        return await next();
      } catch {
        throw translated;
      }
    },
  };
  const { seen } = await chargeOnce([translate]);
  assertStrictEquals(seen[0]?.error, translated);
  assertEquals(seen[0]?.parts, [{ type: "text", text: "The card was declined." }]);
});
