/**
 * The finish reason of a response decides which of its calls run, and how the run goes on.
 */
import {
  agent,
  cancelled,
  type FinishReason,
  memory,
  type Message,
  type Middleware,
  type ModelEvent,
  type ModelResponse,
  reply,
  text,
  tool,
} from "@jizai/jizai";
import { scripted, type ScriptedAnswer, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

/** Runs a script with a tool whose field is optional. Returns the inputs that it received, and the results of the calls. */
async function play(steps: readonly ScriptedAnswer[], ...use: Middleware[]) {
  const ran: unknown[] = [];
  const deleteRows = tool({
    name: "delete_rows",
    description: "Deletes rows",
    input: z.object({ where: z.string().optional() }),
    execute: (input) => {
      ran.push(input);
      return "ok";
    },
  });
  const model = scripted(...steps);
  const result = await agent({ model, tools: [deleteRows], use }).run("Hi").result;
  return { ran, result, requests: model.requests.length, results: resultsOf(result.messages) };
}

/** Returns the results of calls as lines. */
function resultsOf(messages: readonly Message[]): string[] {
  return lines(messages.filter(({ role }) => role === "tool"));
}

const limited =
  "error Not run: your response reached the output limit within the input of delete_rows. Call it again with a shorter input, or divide the work among several responses.";
const ended = "error Not run: your response ended within the input of delete_rows. Call it again with its whole input.";

/** Returns a response that ends within its call. */
function cut(written: string, finish: FinishReason = "length"): ScriptedStep {
  return { calls: [["delete_rows", written]], finish };
}

/** Returns the events of a call, as far as they go. */
function streamed(finish: FinishReason, ...events: readonly ModelEvent[]): ScriptedStep {
  return {
    reads: [[{ type: "call.start", id: "a", name: "delete_rows" }, ...events, { type: "finish", reason: finish }]],
  };
}

const delta = (written: string): ModelEvent => ({ type: "call.delta", id: "a", text: written });
const end: ModelEvent = { type: "call.end", id: "a" };

Deno.test("a call that the provider did not close runs only if its text is complete JSON", async () => {
  const outcome = async (...events: readonly ModelEvent[]) =>
    (await play([streamed("length", ...events), "Done."])).ran;
  assertEquals(await outcome(), []);
  assertEquals(await outcome(delta(" ")), []);
  assertEquals(await outcome(delta('{"where":')), []);
  assertEquals(await outcome(delta("{}")), [{}]);
  assertEquals(await outcome(delta('{"where":"a"} ')), [{ where: "a" }]);
  assertEquals(await outcome(end), [{}]);
  assertEquals(await outcome(delta('{"where":'), end), []);
});

Deno.test("a number that may go on is no complete input", async () => {
  const seen: unknown[] = [];
  const count = tool({ name: "count", description: "Counts", input: z.number(), execute: (n) => void seen.push(n) });
  const reads = [[
    { type: "call.start", id: "a", name: "count" },
    { type: "call.delta", id: "a", text: "12" },
    { type: "finish", reason: "length" },
  ]] as const;
  await agent({ model: scripted({ reads }, "Done."), tools: [count] }).run("Hi").result;
  assertEquals(seen, []);
});

Deno.test("the second response in a row that ends within a call ends the run at a limit, with the reason", async () => {
  const { ran, result, requests, results } = await play([cut('{"wh'), cut(""), "Never."]);
  assertEquals([ran, requests, result.status, result.reason], [[], 2, "limit", "length"]);
  assertEquals(results, [limited, limited]);
});

Deno.test("a response without a cut, or one that was cut for another reason, begins the count again", async () => {
  const look = { calls: [["delete_rows", { where: "a" }]] } as const;
  const between = await play([cut(""), look, cut(""), "Done."]);
  assertEquals([between.result.status, between.result.text], ["done", "Done."]);
  assertEquals(between.results, [limited, "ok ok", limited]);
  const other = await play([cut(""), cut("", "other"), cut(""), "Done."]);
  assertEquals([other.result.status, other.results], ["done", [limited, ended, limited]]);
  const others = await play([cut("", "other"), cut("", "other"), "Never."]);
  assertEquals([others.result.status, others.result.reason, others.requests], ["limit", "other", 2]);
});

Deno.test("complete calls of both responses run before a run ends at the second cut", async () => {
  const step = { calls: [["delete_rows", { where: "a" }], ["delete_rows", ""]], finish: "length" } as const;
  const { ran, result } = await play([step, step, "Never."]);
  assertEquals([ran, result.status], [[{ where: "a" }, { where: "a" }], "limit"]);
});

Deno.test("no hook makes an incomplete call run, or a call of a response that was stopped", async () => {
  const hooks: Middleware[] = [
    { name: "repair", tool: (_, next) => next({ input: {} }) },
    { name: "allow", approval: () => Promise.resolve({ type: "allow", input: { where: "b" } }) },
    { name: "answer", tool: () => Promise.resolve(text("Answered.")) },
    { name: "rename", tool: (_, next) => next({ name: "delete_rows", input: { where: "c" } }) },
    { name: "finish", model: async (_, next) => ({ ...await next(), finish: "stop" }) },
  ];
  for (const hook of hooks) {
    assertEquals((await play([cut('{"where'), "Done."], hook)).ran, [], hook.name ?? "");
    if (hook.name !== "finish") assertEquals((await play([{ ...cut("{}"), finish: "filter" }], hook)).ran, []);
  }
});

Deno.test("a model hook that stops a response stops its calls", async () => {
  const stop = (finish: FinishReason): Middleware => ({
    model: async (_, next): Promise<ModelResponse> => ({ ...await next(), finish }),
  });
  const response = { text: "Let me see.", calls: [["delete_rows", {}]] } as const;
  for (const finish of ["filter", "refusal"] as const) {
    const { ran, result, results } = await play([response, "Never."], stop(finish));
    assertEquals([ran, result.status, result.text], [[], "done", "Let me see."]);
    assertEquals(results.length, 1);
  }
});

Deno.test("a stop hook may continue a run whose response was stopped", async () => {
  const again: Middleware = {
    stop: ({ continuations }, next) =>
      continuations === 0 ? Promise.resolve({ type: "continue", messages: [] }) : next(),
  };
  const { result, requests } = await play([{ ...cut("{}"), finish: "refusal" }, "Sorry."], again);
  assertEquals([result.text, requests], ["Sorry.", 2]);
});

Deno.test("calls that may not run are announced with their results", async () => {
  const model = scripted({ calls: [["delete_rows", {}]], finish: "filter" });
  const events = eventLines(await eventsOfRun(agent({ model }).run("Hi")));
  assertEquals(events.filter((line) => /^(call|tool|approval|model.finished)/.test(line)), [
    "call.delta 1 call_1 delete_rows {}",
    "call.ready 1",
    "model.finished 1 filter 1",
    "tool.started 1 call_1 delete_rows run:1 0",
    "tool.finished 1 call_1",
  ]);
});

Deno.test("a run that pauses keeps the finish reason, and the count of responses that ended within a call", async () => {
  const ask = tool({ name: "ask", description: "Asks", input: z.object({}), ask: true, execute: () => "yes" });
  const half = { calls: [["ask", {}], ["ask", "{"]], finish: "length" } as const;
  const assistant = agent({ model: scripted(half, half, "Never."), tools: [ask] });
  const options = { session: "s", store: memory() };
  const approve = { type: "approve" } as const;
  const outcomes: unknown[] = [];
  let result = await assistant.run({ ...options, prompt: "Hi" }).result;
  while (result.status === "paused") {
    outcomes.push([result.status, result.finish, result.questions.length]);
    const answers = result.questions.map(({ callId }) => ({ ...approve, callId }));
    result = await assistant.resume({ ...options, answers }).result;
  }
  outcomes.push([result.status, result.finish, result.reason]);
  assertEquals(outcomes, [["paused", "length", 1], ["paused", "length", 1], ["limit", "length", "length"]]);
});

Deno.test("the result of a run has the finish reason of its last response, whatever hooks make of it", async () => {
  const finishOf = async (use: Middleware, ...steps: readonly ScriptedAnswer[]) =>
    (await play(steps, use)).result.finish;
  assertEquals(await finishOf({ prompt: () => Promise.resolve(cancelled("No.")) }, "Never."), undefined);
  assertEquals(await finishOf({ model: () => Promise.resolve(reply("")) }), "empty");
  assertEquals(await finishOf({ turn: () => Promise.resolve({ response: reply("Hi"), results: [] }) }), "stop");
  assertEquals(
    await finishOf({ session: async (_, next) => ({ ...await next(), text: "Mine." }) }, cut("", "filter")),
    "filter",
  );
  assertEquals(await finishOf({}, { text: " \n", finish: "stop" }), "empty");
  assertEquals(await finishOf({}, { reasoning: "Hm." }), "empty");
  assertEquals(await finishOf({}, { calls: [["delete_rows", {}]] }, { error: new Error("down") }), "calls");
});

Deno.test("the model of a parent reads that the answer of its subagent is not whole", async () => {
  const answers = async (step: ScriptedStep) => {
    const child = agent({ name: "child", model: scripted(step) });
    const model = scripted({ calls: [["child", { prompt: "Go" }]] }, "Done.");
    return resultsOf((await agent({ model, tools: [asTool(child)] }).run("Hi").result).messages);
  };
  assertEquals(await answers({ text: "Half of", finish: "length" }), ["error Half ofchild did not finish: length"]);
  assertEquals(await answers({ text: "", finish: "stop" }), ["error child did not finish: empty"]);
  assertEquals(await answers({ text: "No.", finish: "refusal" }), ["error No.child did not finish: refusal"]);
  assertEquals(await answers({ text: "All of it." }), ["ok All of it."]);
});

Deno.test("a structured answer of a response that was stopped is not asked for again", async () => {
  const model = scripted({ text: "{", finish: "filter" }, "Never.");
  const { status, reason, finish } = await agent({ model, output: z.object({}) }).run("Hi").result;
  assertEquals([status, reason, finish, model.requests.length], ["limit", "outputs", "filter", 1]);
});

Deno.test("the model reads that the output limit cut its structured answer", async () => {
  const model = scripted({ text: '{"a', finish: "length" }, "{}");
  const { status, messages } = await agent({ model, output: z.object({}) }).run("Hi").result;
  assertEquals([status, lines(messages)[2]], [
    "done",
    "output Your answer does not match: it reached the output limit, so write less. Answer again, with JSON alone.",
  ]);
});
