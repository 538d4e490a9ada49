import { agent, type ModelRequest, user } from "@jizai/jizai";
import { anthropic, type AnthropicOptions } from "@jizai/jizai/model/anthropic";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { providerTool } from "@jizai/jizai/provider_tools";
import { assertEquals, assertThrows } from "@std/assert";
import { weather } from "../support/aimock.ts";
import { messagesApi } from "../support/providers/anthropic.ts";
import { functionCall, message, responseStream } from "../support/providers/openai_responses.ts";
import { readAll, recordRequests, respond, sse } from "../support/providers/sse.ts";

/** Returns the HTTP request that a model request becomes. */
async function requestFor(request: Partial<ModelRequest>, options: Partial<AnthropicOptions>) {
  const { sent, fetch } = recordRequests(messagesApi.textStream("Done."));
  await readAll(anthropic({ model: "m", fetch, cache: false, ...options }), request);
  return sent[0]!;
}

function begin(index: number, content_block: object) {
  return { type: "content_block_start", index, content_block };
}

function grow(index: number, delta: object) {
  return { type: "content_block_delta", index, delta };
}

function stop(stop_reason: string) {
  return { type: "message_delta", delta: { stop_reason } };
}

const clear = { toolResults: { at: 30_000, keep: 3, atLeast: 5_000, exclude: ["web_search"], inputs: true } } as const;

Deno.test("anthropic() asks the provider to clear results and reasoning, and to compact, in the order that it requires", async () => {
  const asked = async (options: Partial<AnthropicOptions>) => {
    const { headers, body } = await requestFor({}, options);
    return [headers["anthropic-beta"], body.context_management];
  };
  assertEquals(await asked({ clear, compaction: { at: 60_000, instructions: "Keep names." } }), [
    "context-management-2025-06-27, compact-2026-01-12",
    {
      edits: [
        {
          type: "clear_tool_uses_20250919",
          trigger: { type: "input_tokens", value: 30_000 },
          keep: { type: "tool_uses", value: 3 },
          clear_at_least: { type: "input_tokens", value: 5_000 },
          exclude_tools: ["web_search"],
          clear_tool_inputs: true,
        },
        { type: "compact_20260112", trigger: { type: "input_tokens", value: 60_000 }, instructions: "Keep names." },
      ],
    },
  ]);
  assertEquals(await asked({ clear: { toolResults: {}, reasoning: 2 } }), [
    "context-management-2025-06-27",
    {
      edits: [
        { type: "clear_thinking_20251015", keep: { type: "thinking_turns", value: 2 } },
        { type: "clear_tool_uses_20250919" },
      ],
    },
  ]);
  assertEquals(await asked({ clear: { reasoning: "all" }, headers: { "anthropic-beta": "fast-mode-2026-02-01" } }), [
    "fast-mode-2026-02-01, context-management-2025-06-27",
    { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  ]);
  assertEquals(await asked({ compaction: {} }), ["compact-2026-01-12", { edits: [{ type: "compact_20260112" }] }]);
  assertEquals(await asked({ clear: {} }), [undefined, undefined]);
});

Deno.test("anthropic() throws for an unknown name in its edits of the conversation", () => {
  const create = (options: object) => () => anthropic({ model: "m", ...options });
  assertThrows(create({ clear: { toolUses: {} } }), TypeError, "toolUses");
  assertThrows(create({ clear: { toolResults: { after: 1 } } }), TypeError, "after");
  assertThrows(create({ compaction: { threshold: 1 } }), TypeError, "threshold");
});

Deno.test("anthropic() reports what the provider cleared or compacted, with the response that it answered", async () => {
  const applied = [
    { type: "clear_thinking_20251015", cleared_thinking_turns: 3, cleared_input_tokens: 15_000 },
    { type: "clear_tool_uses_20250919", cleared_tool_uses: 8, cleared_input_tokens: 50_000 },
    { type: "clear_images_20270101", cleared_input_tokens: 1 },
  ];
  const cleared = sse([
    begin(0, { type: "compaction", content: null, encrypted_content: null }),
    grow(0, { type: "compaction_delta", content: "They asked for rest.", encrypted_content: null }),
    { type: "content_block_stop", index: 0 },
    begin(1, { type: "compaction", content: null, encrypted_content: null }), // one that failed
    grow(1, { type: "compaction_delta", content: null, encrypted_content: null }),
    { type: "content_block_stop", index: 1 },
    begin(2, { type: "text", text: "Hi" }),
    { type: "content_block_stop", index: 2 },
    { ...stop("end_turn"), context_management: { applied_edits: applied } },
    { type: "message_stop" },
  ]);
  const run = agent({ model: anthropic({ model: "m", fetch: respond(cleared), clear, compaction: {} }) }).run("Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals(events.flatMap((event) => event.type === "model.finished" ? [event.edits] : []), [[
    { type: "compaction" },
    { type: "reasoning", tokens: 15_000, count: 3 },
    { type: "tool_results", tokens: 50_000, count: 8 },
  ]]);
  assertEquals(events.flatMap((event) => event.type === "warning" ? [event.message] : []), [
    'The response of m contains an edit of the context of type "clear_images_20270101".',
  ]);
});

Deno.test("anthropic() reports no edits where the provider made none", async () => {
  for (const context_management of [undefined, null, {}, { applied_edits: [] }]) {
    const fetch = respond(sse([{ ...stop("end_turn"), context_management }, { type: "message_stop" }]));
    assertEquals((await readAll(anthropic({ model: "m", fetch }))).flat(), [
      { type: "finish", reason: "stop", usage: { input: 0, output: 0 } },
    ]);
  }
});

Deno.test("anthropic() reports the edits of all requests of a response that the provider paused", async () => {
  const edit = { type: "clear_tool_uses_20250919", cleared_tool_uses: 1, cleared_input_tokens: 100 };
  const part = (reason: string) =>
    sse([
      begin(0, { type: "text", text: "Hi" }),
      { type: "content_block_stop", index: 0 },
      { ...stop(reason), context_management: { applied_edits: [edit] } },
      { type: "message_stop" },
    ]);
  const { fetch } = recordRequests(part("pause_turn"), part("end_turn"));
  const tools = [providerTool({ type: "web_search" }).definition];
  const events = await readAll(anthropic({ model: "m", fetch, clear }), { messages: [user("Hi")], tools });
  const [finish] = events.flat().filter(({ type }) => type === "finish");
  const cleared = { type: "tool_results", tokens: 100, count: 1 } as const;
  assertEquals(finish, {
    type: "finish",
    reason: "stop",
    usage: { input: 0, output: 0 },
    edits: [cleared, cleared],
  });
});

const summary = { type: "compaction", id: "cmp_1", encrypted_content: "gAAAAABq" };

/** The events of a compaction at a place in the output. */
function compacted(output_index: number) {
  return [
    { type: "response.output_item.added", output_index, item: { ...summary, encrypted_content: "" } },
    { type: "response.compaction.compacting", output_index, item_id: summary.id },
    { type: "response.output_item.done", output_index, item: summary },
  ];
}

/** Runs an agent for two prompts with these responses of OpenAI. Returns the bodies of its requests, and the edits of its turns. */
async function compactedRun(...streams: readonly string[]) {
  const { sent, fetch } = recordRequests(...streams);
  const model = openaiResponses({ model: "gpt-6-astra", fetch, compaction: { at: 200_000 } });
  const assistant = agent({ model, tools: [weather] });
  const run = assistant.run("First");
  const events = await Array.fromAsync(run.events);
  await assistant.run({ messages: [...(await run.result).messages, user("Second")] }).result;
  const edits = events.flatMap((event) => event.type === "model.finished" ? [event.edits] : []);
  return { bodies: sent.map(({ body }) => body), edits };
}

Deno.test("openaiResponses() asks OpenAI to compact, reports it, and sends the compaction in place of what it replaces", async () => {
  const { bodies, edits } = await compactedRun(
    responseStream([
      ...compacted(0),
      ...message(1, "Hello!"),
      ...functionCall(2, "call_a", "weather", '{"city":"Oslo"}'),
    ]),
    responseStream(message(0, "It is sunny.")),
    responseStream(message(0, "Again.")),
  );
  assertEquals(
    bodies.map(({ context_management }) => context_management),
    Array(3).fill([
      { type: "compaction", compact_threshold: 200_000 },
    ]),
  );
  assertEquals(edits, [[{ type: "compaction" }], undefined]);
  const call = { type: "function_call", call_id: "call_a", name: "weather", arguments: '{"city":"Oslo"}' };
  const since = [
    summary,
    { role: "assistant", content: "Hello!" },
    call,
    { type: "function_call_output", call_id: "call_a", output: "Sunny in Oslo" },
  ];
  assertEquals(bodies.map(({ input }) => input), [
    [{ role: "user", content: "First" }],
    since,
    [...since, { role: "assistant", content: "It is sunny." }, { role: "user", content: "Second" }],
  ]);
});

Deno.test("openaiResponses() keeps what a compaction replaces while an answer after it belongs to a call before it", async () => {
  const { bodies } = await compactedRun(
    responseStream([...functionCall(0, "call_a", "weather", '{"city":"Oslo"}'), ...compacted(1)]),
    responseStream(message(0, "It is sunny.")),
  );
  assertEquals(bodies[1].input.map(({ type, role }: Record<string, unknown>) => type ?? role), [
    "user",
    "function_call",
    "compaction",
    "function_call_output",
  ]);
});

Deno.test("openaiResponses() leaves the compaction of another model out, and sends the whole conversation", async () => {
  const { sent, fetch } = recordRequests(responseStream([...compacted(0), ...message(1, "Hello!")]));
  const { messages } = await agent({ model: openaiResponses({ model: "gpt-6-astra", fetch, compaction: {} }) }).run(
    "Hi",
  ).result;
  await readAll(openaiResponses({ model: "gpt-6-sol", fetch }), { messages });
  assertEquals(sent.map(({ body }) => [body.context_management, body.input]), [
    [[{ type: "compaction" }], [{ role: "user", content: "Hi" }]],
    [undefined, [{ role: "user", content: "Hi" }, { role: "assistant", content: "Hello!" }]],
  ]);
  assertThrows(
    () => openaiResponses({ model: "m", compaction: { threshold: 1 } as object }),
    TypeError,
    "threshold",
  );
});
