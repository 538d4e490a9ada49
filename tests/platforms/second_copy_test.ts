import { assert, assertEquals } from "@std/assert";
import {
  agent,
  CapacityError,
  End,
  isInterrupt,
  type Middleware,
  ModelError,
  Pause,
  Paused,
  serve,
  SessionError,
  tool,
  ToolError,
} from "@jizai/jizai";
import { ClientError } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { StoreDeadlineError } from "../../src/core/store.ts";
import { SlowStoreError } from "../../src/session/durable/bounded.ts";
import { RecordError } from "../../src/session/record/records.ts";
import { ResumeTokenError } from "@jizai/jizai/session/resume_token";
import { testMiddleware } from "@jizai/jizai/testing";
import { ShapeError } from "@jizai/jizai/wire";
import { retry } from "@jizai/jizai/middleware/retry";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const copy = await secondCopy();

/** Bundles a second copy of the package, and loads it beside the first. */
async function secondCopy(): Promise<typeof import("./second_copy.ts")> {
  const output = "dist/second_copy.js";
  const args = ["bundle", "--quiet", "--output", output, "tests/platforms/second_copy.ts"];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return await import(new URL(`../../${output}`, import.meta.url).href);
}

/** Runs an agent of this copy that calls the tool `look` once. */
function looking(use: readonly Middleware[], execute: () => string = () => "Seen", idempotent = false) {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), idempotent, execute });
  return agent({ model: scripted({ calls: [["look", {}]] }, "Done."), tools: [look], use });
}

Deno.test("the second copy has classes of its own", () => {
  assert(copy.core.ToolError !== ToolError && copy.core.End !== End);
});

Deno.test("instanceof recognizes errors and interrupts of another copy, in both directions", () => {
  const { core, tokenModule, wireModule } = copy;
  const pairs = [
    [ToolError, core.ToolError, ["m"]],
    [ModelError, core.ModelError, ["m"]],
    [SessionError, core.SessionError, ["m", "busy"]],
    [CapacityError, core.CapacityError, ["m"]],
    [End, core.End, ["m"]],
    [Pause, core.Pause, [[]]],
    [Paused, core.Paused, ["c"]],
    [RecordError, copy.RecordError, ["m", "unknown"]],
    [ResumeTokenError, tokenModule.ResumeTokenError, ["m", "forged"]],
    [ShapeError, wireModule.ShapeError, ["m", "field"]],
    [StoreDeadlineError, copy.StoreDeadlineError, ["m", Promise.resolve()]],
    [SlowStoreError, copy.SlowStoreError, [{ type: "store.slow", operation: "head", milliseconds: 1_000 }]],
    [ClientError, copy.clientModule.ClientError, ["m"]],
  ] as const;
  for (const [ours, theirs, args] of pairs) {
    assert(Reflect.construct(theirs, args) instanceof ours);
    assert(Reflect.construct(ours, args) instanceof theirs);
    for (const [other] of pairs) if (other !== ours) assert(!(Reflect.construct(theirs, args) instanceof other));
  }
  class Own extends ToolError {}
  assert(new Own("m") instanceof copy.core.ToolError);
  assert(!(new copy.core.ToolError("m") instanceof Own));
  assert(isInterrupt(new copy.core.End("m")) && copy.core.isInterrupt(new Pause([])));
  for (const value of [undefined, null, 1, "ToolError", {}, new Error("m")]) assert(!(value instanceof ToolError));
});

Deno.test("the model reads the ToolError of another copy, and retry() does not repeat its tool", async () => {
  let attempts = 0;
  const fail = () => {
    attempts++;
    throw new copy.core.ToolError("No such city");
  };
  const { messages } = await looking([retry({ delay: 1 }), copy.retryModule.retry({ delay: 1 })], fail, true)
    .run("Go").result;
  assertEquals([lines(messages)[2], attempts], ["error No such city", 1]);
  const ours = copy.core.tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
  const theirs = copy.core.agent({
    model: copy.scriptedModule.scripted({ calls: [["look", {}]] }, "Done."),
    tools: [ours],
    use: [{ name: "fails", execute: () => Promise.reject(new ToolError("No such town")) }],
  });
  assertEquals(lines((await theirs.run("Go").result).messages)[2], "error No such town");
});

Deno.test("middleware of another copy end and pause a run", async () => {
  const ended = looking([{
    name: "ends",
    tool: () => Promise.reject(new copy.core.End("enough", { as: "cancelled" })),
  }]);
  const { status, reason } = await ended.run("Go").result;
  assertEquals([status, reason], ["cancelled", "enough"]);
  let asked = false;
  const paused = looking([{
    name: "asks",
    approval(_ctx, next) {
      if (asked) return next();
      asked = true;
      return Promise.reject(new copy.core.Pause([{ questions: ["Go on?"] }]));
    },
  }]);
  const first = await paused.run({ prompt: "Go", session: "s" }).result;
  assertEquals([first.status, first.questions.map(({ questions }) => questions)], ["paused", [["Go on?"]]]);
});

Deno.test("middleware of another copy record what ends a run of this copy", async () => {
  const outcomes: string[] = [];
  const logger = copy.loggerModule.logger(({ point, outcome }) => outcomes.push(`${point} ${outcome}`));
  const ends: Middleware = { name: "ends", tool: (ctx) => Promise.reject(ctx.run.end("enough")) };
  const { status } = await looking([logger, ends]).run("Go").result;
  assertEquals(status, "cancelled");
  assertEquals(outcomes.filter((line) => line.startsWith("tool")), ["tool ended"]);
});

Deno.test("refusals of another copy refuse the prompt, the call and the run", async () => {
  const { cancelled, denied, refused } = copy.core;
  const prompt = await looking([{ prompt: () => Promise.resolve(cancelled("no prompts")) }]).run("Go").result;
  assertEquals([prompt.status, prompt.reason], ["cancelled", "no prompts"]);
  const input = await looking([{ input: () => Promise.resolve(refused("no input")) }]).run("Go").result;
  assertEquals([input.status, input.reason], ["cancelled", "no input"]);
  const { messages } = await looking([{ tool: () => Promise.resolve(denied("no calls")) }]).run("Go").result;
  assertEquals(lines(messages)[2], "denied no calls");
});

Deno.test("a recoverable ModelError of another copy is retried, and its code reaches the client", async () => {
  const { ModelError } = copy.core;
  const cut = new ModelError("slow down", { recoverable: true, status: 429, retryAfter: 1 });
  const retried = await agent({ model: scripted({ error: cut }, "Hello!"), use: [retry({ delay: 1 })] }).run("Hi")
    .result;
  assertEquals(retried.text, "Hello!");
  const app = serve(agent({ model: scripted({ error: cut }) }), { onError: () => {} });
  const body = JSON.stringify({ prompt: "Hi" });
  const response = await app.request("/runs", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  assertEquals((await response.text()).includes('"code":"rate_limited"'), true);
});

Deno.test("serve() maps errors of a store of another copy to their status", async () => {
  const { core } = copy;
  const body = JSON.stringify({ prompt: "Hi" });
  const options = { method: "POST", body, headers: { "content-type": "application/json" } };
  const full = serve(agent({ model: scripted("Hi") }), { store: core.memory({ maxBytes: 10 }), onError: () => {} });
  assertEquals((await full.request("/runs", options)).status, 503);
  const recorded = serve(agent({ model: scripted("Hi") }), { store: core.memory(), onError: () => {} });
  assertEquals((await recorded.request("/runs/unknown")).status, 404);
});

Deno.test("an agent of another copy is a subagent, and ends the whole tree", async () => {
  const { asTool } = copy.subagentsModule;
  const ends: Middleware = { name: "ends", prompt: (ctx) => Promise.reject(ctx.run.end("all", { tree: true })) };
  const child = copy.core.agent({ name: "child", model: copy.scriptedModule.scripted("Hi"), use: [ends] });
  const parent = agent({
    model: scripted({ calls: [["child", { prompt: "Go" }]] }, "Done."),
    tools: [asTool(child)],
  });
  const { status, reason, text } = await parent.run("Go").result;
  assertEquals([status, reason, text], ["cancelled", "all", ""]);
});

Deno.test("middleware of another copy pass testMiddleware() of this one", async () => {
  await testMiddleware(() => copy.retryModule.retry({ delay: 1 }));
  await testMiddleware(() => copy.redactModule.redact());
});
