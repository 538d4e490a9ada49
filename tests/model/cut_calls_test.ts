/**
 * Responses that end within a call, as each API streams them: no call runs with an input that the model has not completed.
 */
import { agent, callsOf, type Model, tool } from "@jizai/jizai";
import { aiSdk } from "@jizai/jizai/model/ai_sdk";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { respond, sse } from "../support/providers/sse.ts";
import { lines } from "../support/transcript_lines.ts";

/** A call of a response, as far as it was streamed. `written` is its JSON text. */
interface WrittenCall {
  readonly name: string;
  readonly written: string;
  /** Whether the API says that the call is complete. Default: false. */
  readonly closed?: boolean;
}

/** The way in which a response ends: by itself, at the limit, by a filter or as a refusal. */
type Ending = "calls" | "length" | "filter" | "refusal";

/** Creates a model of an API that streams these calls and ends so; then it answers "Done.". */
type Api = (calls: readonly WrittenCall[], ending: Ending) => Model;

/** Streams the first response, and "Done." afterwards. */
function fetchOf(first: string, second: string): () => Response {
  const bodies = [first, second];
  return () => respond(bodies.shift() ?? second)();
}

const text = (content: string) =>
  sse([{ choices: [{ delta: { content }, finish_reason: "stop" }] }], "data: [DONE]\n\n");

const apis: Readonly<Record<string, Api>> = {
  "openai()": (calls, ending) => {
    const reason = { calls: "tool_calls", length: "length", filter: "content_filter", refusal: "stop" }[ending];
    const deltas = calls.flatMap(({ name, written }, index) => [
      { tool_calls: [{ index, id: `c${index}`, function: { name, arguments: "" } }] },
      ...[...written].map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]);
    const refused = ending === "refusal" ? [{ refusal: "No." }] : [];
    const frames = [...deltas, ...refused].map((delta) => ({ choices: [{ delta }] }));
    const stream = sse([...frames, { choices: [{ delta: {}, finish_reason: reason }] }], "data: [DONE]\n\n");
    return openai({ model: "m", apiKey: "key", fetch: fetchOf(stream, text("Done.")) });
  },
  "openaiResponses()": (calls, ending) => {
    const frames = calls.flatMap(({ name, written, closed }, output_index) => {
      const item = { type: "function_call", id: `f${output_index}`, call_id: `c${output_index}`, name };
      const isLast = output_index === calls.length - 1;
      const status = closed || !isLast || ending === "calls" ? "completed" : "incomplete";
      return [
        { type: "response.output_item.added", output_index, item: { ...item, arguments: "", status: "in_progress" } },
        ...[...written].map((delta) => ({ type: "response.function_call_arguments.delta", output_index, delta })),
        { type: "response.output_item.done", output_index, item: { ...item, arguments: written, status } },
      ];
    });
    const reason = { length: "max_output_tokens", filter: "content_filter", calls: "", refusal: "" }[ending];
    const refused = ending === "refusal"
      ? [{ type: "response.refusal.delta", output_index: calls.length, delta: "No." }]
      : [];
    const last = reason === ""
      ? { type: "response.completed", response: { status: "completed" } }
      : { type: "response.incomplete", response: { status: "incomplete", incomplete_details: { reason } } };
    const done = sse([
      { type: "response.output_text.delta", output_index: 0, delta: "Done." },
      { type: "response.completed", response: { status: "completed" } },
    ]);
    return openaiResponses({ model: "m", apiKey: "key", fetch: fetchOf(sse([...frames, ...refused, last]), done) });
  },
  "anthropic()": (calls, ending) => {
    const reason = { calls: "tool_use", length: "max_tokens", filter: "refusal", refusal: "refusal" }[ending];
    const frames = calls.flatMap(({ name, written }, index) => [
      { type: "content_block_start", index, content_block: { type: "tool_use", id: `c${index}`, name, input: {} } },
      { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: "" } },
      ...[...written].map((piece) => ({
        type: "content_block_delta",
        index,
        delta: { type: "input_json_delta", partial_json: piece },
      })),
      { type: "content_block_stop", index }, // the API ends also a block that the limit has cut
    ]);
    const end = (stop_reason: string) => [{ type: "message_delta", delta: { stop_reason } }, { type: "message_stop" }];
    const done = [
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "Done." } },
      { type: "content_block_stop", index: 0 },
      ...end("end_turn"),
    ];
    return anthropic({ model: "m", apiKey: "key", fetch: fetchOf(sse([...frames, ...end(reason)]), sse(done)) });
  },
  "gemini()": (calls, ending) => {
    const finishReason = { calls: "STOP", length: "MAX_TOKENS", filter: "SAFETY", refusal: "SAFETY" }[ending];
    const parts = calls.flatMap(({ name, written }) => {
      if (written === "") return [{ functionCall: { name } }];
      return isJson(written) ? [{ functionCall: { name, args: JSON.parse(written) } }] : []; // the API sends whole values
    });
    const done = sse([{ candidates: [{ content: { parts: [{ text: "Done." }] }, finishReason: "STOP" }] }]);
    return gemini({
      model: "m",
      apiKey: "key",
      fetch: fetchOf(sse([{ candidates: [{ content: { parts }, finishReason }] }]), done),
    });
  },
  "aiSdk()": (calls, ending) => {
    const unified =
      { calls: "tool-calls", length: "length", filter: "content-filter", refusal: "content-filter" }[ending];
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const parts = calls.flatMap(({ name, written }, index) => [
      { type: "tool-input-start", id: `c${index}`, toolName: name },
      ...[...written].map((delta) => ({ type: "tool-input-delta", id: `c${index}`, delta })),
      { type: "tool-input-end", id: `c${index}` },
      { type: "tool-call", toolCallId: `c${index}`, toolName: name, input: written || "{}" },
    ]);
    const responses = [
      [...parts, { type: "finish", finishReason: { unified, raw: ending }, usage }],
      [{ type: "text-delta", id: "t", delta: "Done." }, { type: "finish", finishReason: { unified: "stop" }, usage }],
    ];
    return aiSdk({
      specificationVersion: "v3",
      modelId: "m",
      doStream: () => Promise.resolve({ stream: ReadableStream.from<unknown>(responses.shift() ?? []) }),
    });
  },
  "scripted()": (calls, ending) => {
    const step: ScriptedStep = { calls: calls.map(({ name, written }) => [name, written]), finish: ending };
    return scripted(step, "Done.");
  },
};

function isJson(written: string): boolean {
  try {
    JSON.parse(written);
    return true;
  } catch {
    return false;
  }
}

/** Runs the model. Returns the calls that ran, each with its input, and the transcript. */
async function play(model: Model) {
  const ran: unknown[] = [];
  const made = (name: string) =>
    tool({
      name,
      description: name,
      input: z.object({ where: z.string().optional() }),
      execute: (input) => {
        ran.push([name, input]);
        return "ok";
      },
    });
  const result = await agent({ model, tools: [made("delete_rows"), made("look")] }).run("Hi").result;
  return { ran, result };
}

/** The text of a call, and of a smaller one before it. */
const whole = '{"where":"id = 7"}';
const before: WrittenCall = { name: "look", written: '{"where":"a"}', closed: true };

for (const [name, api] of Object.entries(apis)) {
  Deno.test(`${name}: a call that the limit cuts at any place does not run, and the complete call before it does`, async () => {
    for (let length = 0; length < whole.length; length++) {
      const written = whole.slice(0, length);
      const { ran, result } = await play(api([before, { name: "delete_rows", written }], "length"));
      assertEquals(ran, [["look", { where: "a" }]], written);
      assertEquals([result.status, result.text], ["done", "Done."], written);
    }
  });

  Deno.test(`${name}: the model reads that the limit cut its call, and the call stays in the transcript`, async () => {
    const { result: { messages } } = await play(api([{ name: "delete_rows", written: "" }], "length"));
    assertEquals(lines(messages), [
      "user Hi",
      "call delete_rows",
      "error Not run: your response reached the output limit within the input of delete_rows. Call it again with a shorter input, or divide the work among several responses.",
      "assistant Done.",
    ]);
    const [call] = messages[1]?.role === "assistant" ? callsOf(messages[1]) : [];
    assertEquals([call?.input, call?.incomplete], ["", true]);
  });

  Deno.test(`${name}: a call runs if the limit cuts the response after its whole input`, async () => {
    const { ran } = await play(api([before, { name: "delete_rows", written: whole, closed: true }], "length"));
    assertEquals(ran, [["look", { where: "a" }], ["delete_rows", { where: "id = 7" }]]);
  });

  Deno.test(`${name}: a call without input runs in a response that ends by itself`, async () => {
    const { ran } = await play(api([{ name: "look", written: "" }, { name: "delete_rows", written: "" }], "calls"));
    assertEquals(ran, [["look", {}], ["delete_rows", {}]]);
  });

  for (const ending of ["filter", "refusal"] as const) {
    Deno.test(`${name}: no call of a response that ends as ${ending} runs, and the run ends`, async () => {
      for (const written of [whole, whole.slice(0, 5), ""]) {
        const { ran, result } = await play(api([before, { name: "delete_rows", written }], ending));
        assertEquals([ran, result.status, result.text === "Done."], [[], "done", false], written);
        const results = result.messages.flatMap((message) => message.role === "tool" ? message.results : []);
        assertEquals(new Set(results.map(({ status }) => status)), new Set(["skipped"]));
      }
    });
  }
}

const empty = { functionCall: { name: "delete_rows", args: {} } };

Deno.test("gemini(): a part without content after a call does not close it", async () => {
  for (const trailing of [{ text: "" }, { text: "", thoughtSignature: "c2ln" }]) {
    const frames = [
      { candidates: [{ content: { parts: [empty] } }] },
      { candidates: [{ content: { parts: [trailing] }, finishReason: "MAX_TOKENS" }] },
    ];
    const done = sse([{ candidates: [{ content: { parts: [{ text: "Done." }] }, finishReason: "STOP" }] }]);
    const { ran } = await play(gemini({ model: "m", apiKey: "key", fetch: fetchOf(sse(frames), done) }));
    assertEquals(ran, []);
  }
});

Deno.test("aiSdk(): a part without content after a call does not close it", async () => {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const finish = (unified: string) => ({ type: "finish", finishReason: { unified, raw: unified }, usage });
  const call = { type: "tool-call", toolCallId: "c", toolName: "delete_rows", input: "{}" };
  const after = [
    { type: "text-start", id: "t", providerMetadata: { google: { a: 1 } } },
    { type: "text-delta", id: "t", delta: "" },
    { type: "text-end", id: "t" },
  ];
  const outcome = async (parts: readonly unknown[], unified: string) => {
    const responses = [[call, ...parts, finish(unified)], [
      { type: "text-delta", id: "t", delta: "Done." },
      finish("stop"),
    ]];
    const { ran, result } = await play(aiSdk({
      specificationVersion: "v3",
      modelId: "m",
      doStream: () => Promise.resolve({ stream: ReadableStream.from<unknown>(responses.shift() ?? []) }),
    }));
    return [ran.length, result.messages[1]];
  };
  assertEquals((await outcome(after, "length"))[0], 0);
  const text = { type: "text-delta", id: "t", delta: "More." };
  const note = { type: "reasoning", text: "", meta: { model: "m", next: { google: { a: 1 } } } };
  const made = { type: "call", id: "c", name: "delete_rows", input: {} };
  assertEquals<unknown>(await outcome([...after, text], "tool-calls"), [1, {
    role: "assistant",
    parts: [made, note, { type: "text", text: "More." }],
  }]);
});

Deno.test("openaiResponses(): an item without a status is closed by the next one, and one that is incomplete is not", async () => {
  const outcome = async (fields: object, type: string) => {
    const item = { type: "function_call", call_id: "c0", name: "look", arguments: "" };
    const frames = [
      { type: "response.output_item.done", output_index: 0, item: { ...item, ...fields } },
      { type: "response.output_text.delta", output_index: 1, delta: "Half" },
      { type: `response.${type}`, response: { incomplete_details: { reason: "max_output_tokens" } } },
    ];
    const next = { type: "response.output_item.added", output_index: 1, item: { type: "message" } };
    const done = sse([
      { type: "response.output_text.delta", output_index: 0, delta: "Done." },
      { type: "response.completed", response: { status: "completed" } },
    ]);
    const stream = sse([...frames.slice(0, 1), next, ...frames.slice(1)]);
    return (await play(openaiResponses({ model: "m", apiKey: "key", fetch: fetchOf(stream, done) }))).ran;
  };
  assertEquals(await outcome({}, "incomplete"), [["look", {}]]);
  assertEquals(await outcome({ status: "completed" }, "incomplete"), [["look", {}]]);
  assertEquals(await outcome({ status: "incomplete" }, "incomplete"), []);
  assertEquals(await outcome({ status: "incomplete" }, "completed"), []);
});

Deno.test("anthropic(): a stop sequence within a call ends it incomplete", async () => {
  const block = (stop_reason: string) =>
    sse([
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "c", name: "delete_rows", input: {} },
      },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason } },
      { type: "message_stop" },
    ]);
  const done = sse([
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Done." } },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
  ]);
  const outcome = async (reason: string) =>
    (await play(anthropic({ model: "m", apiKey: "key", fetch: fetchOf(block(reason), done) }))).ran;
  assertEquals(await outcome("stop_sequence"), []);
  assertEquals(await outcome("model_context_window_exceeded"), []);
  assertEquals(await outcome("end_turn"), [["delete_rows", {}]]);
});
