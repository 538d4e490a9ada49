import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import { agent, callsOf, compacted, declined, type Message, type Middleware, tool, user } from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { estimate } from "../../src/core/compact.ts";
import { happened, told } from "../support/happened.ts";
import { lines } from "../support/told.ts";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Seen ${at} ${"x".repeat(200)}`,
});

function looking(...at: string[]): ScriptedStep {
  return { calls: at.map((at) => ["look", { at }] as const) };
}

const short = (messages: readonly Message[]) => lines(messages).map((line) => line.replace(/ ?x+$/, ""));

Deno.test("what opened the conversation stays, also before there is an answer", async () => {
  const model = scripted("Done.");
  const context: Middleware = {
    session: (_, next) => next({ context: ["Be kind."] }),
    prompt: (_, next) => next({ context: ["Be quick."] }),
  };
  const { messages } = await agent({ model, use: [context], limits: { context: 10 } }).run("Look").result;
  assertEquals(short(messages), ["session Be kind.", "user Look", "prompt Be quick.", "assistant Done."]);
});

Deno.test("a transcript that grew too long is trimmed before the model reads it", async () => {
  const model = scripted(looking("a", "b"), looking("c"), looking("d", "e"), "Done.");
  const context: Middleware = { session: (_, next) => next({ context: ["Be kind."] }) };
  const run = agent({ model, tools: [look], use: [context], limits: { context: 300 } }).run("Look");
  const head = ["session Be kind.", "user Look"];
  assertEquals(model.requests.length, 0);
  const { messages } = await run.result;
  assertEquals(model.requests.map(({ messages }) => short(messages)), [
    head,
    [...head, "call look look", "ok Seen a", "ok Seen b"],
    [...head, "call look look", "ok Seen a", "ok Seen b", "call look", "ok Seen c"],
    [...head, "call look", "ok Seen c", "call look look", "ok Seen d", "ok Seen e"],
  ]);
  assertEquals(short(messages), [
    ...head,
    "call look",
    "ok Seen c",
    "call look look",
    "ok Seen d",
    "ok Seen e",
    "assistant Done.",
  ]);
  const events = await happened(run);
  assertEquals(told(events).filter((line) => /^(compact|turn|model\.s)/.test(line)), [
    "turn.started 1",
    "model.started 1 scripted",
    "turn.finished 1",
    "turn.started 2",
    "model.started 2 scripted",
    "turn.finished 2",
    "turn.started 3",
    "model.started 3 scripted",
    "turn.finished 3",
    "compact.started auto",
    "compact.finished auto 391 241",
    "turn.started 4",
    "model.started 4 scripted",
    "turn.finished 4",
  ]);
});

Deno.test("the person's last word stays, and so does what came last", async () => {
  const said = "x".repeat(400);
  const history: Message[] = [
    user(`First ${said}`),
    { role: "assistant", parts: [{ type: "text", text: `One ${said}` }] },
    user(`Second ${said}`),
    { role: "assistant", parts: [{ type: "text", text: `Two ${said}` }] },
    user(`Third ${said}`),
    user(`Keep going ${said}`, "stop"),
    { role: "assistant", parts: [{ type: "text", text: `Three ${said}` }] },
    user(`Now ${said}`, "stop"),
  ];
  const model = scripted(({ messages }) => short(messages).join());
  const prompts: Middleware = { prompt: (_, next) => next({ prompt: user(`Now ${said}`, "stop") }) };
  await agent({ model, use: [prompts], limits: { context: 1 } })
    .run({ messages: [...history.slice(0, -1), user("replaced")] }).result;
  assertEquals(model.requests.map(({ messages }) => short(messages)), [["user First", "user Third", "stop Now"]]);
});

Deno.test("trimming leaves no call without its result, and fits where it can", async () => {
  for (let budget = 1; budget < 700; budget += 40) {
    const model = scripted(looking("a"), looking("b", "c"), looking("d"), looking("e", "f", "g"), "Done.");
    const run = agent({ model, tools: [look], limits: { context: budget } }).run("Look");
    const events = await happened(run);
    assertEquals(events.filter(({ type }) => type === "warning"), []);
    for (const [index, { messages }] of model.requests.entries()) {
      const fits = estimate(messages) <= budget;
      const least = messages.length <= 3;
      assert(fits || least, `${budget}: request ${index} has ${messages.length} messages`);
      for (const [at, message] of messages.entries()) {
        if (message.role !== "assistant") continue;
        const after = messages[at + 1];
        const ids = after?.role === "tool" ? after.results.map(({ callId }) => callId) : [];
        assertEquals(ids, callsOf(message).map(({ id }) => id));
      }
    }
  }
});

Deno.test("a hook may compact otherwise, decline, or say what to mind", async () => {
  const seen: unknown[] = [];
  const play = async (...use: Middleware[]) => {
    const model = scripted("Hello!");
    const run = agent({ model, use, limits: { context: 10 } })
      .run({ messages: [user("x".repeat(80)), { role: "assistant", parts: [] }, user("Hi")] });
    const events = await happened(run);
    return [
      ...told(events).filter((line) => line.startsWith("compact")),
      ...model.requests.flatMap(({ messages }) => short(messages)),
    ];
  };
  const outer: Middleware = { name: "outer", compact: (_, next) => next({ instructions: "Mind the names." }) };
  const inner = (compact: Middleware["compact"] & object): Middleware => ({
    compact: (ctx, next) => {
      const { trigger, transcript, instructions, budget } = ctx;
      seen.push([trigger, transcript.length, instructions, budget]);
      return compact(ctx, next);
    },
  });
  const summary = [user("They said x.", "compact"), user("Hi")];
  assertEquals(await play(outer, inner(() => Promise.resolve(compacted(summary)))), [
    "compact.started auto",
    "compact.finished auto 35 17",
    "compact They said x.",
    "user Hi",
  ]);
  assertEquals(await play(outer, inner(() => Promise.resolve(declined("Not now.")))), [
    "compact.started auto",
    "compact.finished auto 35 35",
    "user",
    "user Hi",
  ]);
  assertEquals(
    await play(outer, inner((_, next) => next())),
    [
      "compact.started auto",
      "compact.finished auto 35 34",
      "user",
      "user Hi",
    ].map((line) => line),
  );
  assertEquals(seen, Array.from({ length: 3 }, () => ["auto", 3, "Mind the names.", 10]));
});

Deno.test("without a limit nothing is compacted", async () => {
  const never: Middleware = { compact: () => Promise.reject(new Error("never")) };
  const model = scripted("Hello!");
  const { status } = await agent({ model, use: [never] }).run("x".repeat(1_000_000)).result;
  assertEquals(status, "done");
});

Deno.test("a run that ends while it compacts does not ask the model", async () => {
  const use: Middleware[] = [{
    compact: (ctx, next) => {
      ctx.run.end("enough");
      return next();
    },
  }];
  const model = scripted("Hello!");
  const { status, reason } = await agent({ model, use, limits: { context: 1 } }).run("Hello there").result;
  assertEquals([status, reason, model.requests], ["done", "enough", []]);
});
