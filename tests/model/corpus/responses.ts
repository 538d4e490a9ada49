/**
 * Streams of OpenAI's Responses API.
 *
 * @module
 */
import { functionCall, message, reasoning, usage } from "../../support/providers/openai_responses.ts";
import { type CorpusCase, namedFrames } from "./case.ts";

const reference = "https://platform.openai.com/docs/api-reference/responses-streaming";

type Fields = Readonly<Record<string, unknown>>;

const response = {
  id: "resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654",
  object: "response",
  created_at: 1_741_290_958,
  model: "gpt-5",
  error: null,
  incomplete_details: null,
  parallel_tool_calls: true,
  tools: [],
};

/** Encodes a response of these items; `last` replaces fields of its last event. */
function stream(events: readonly Fields[], last: Fields = {}, type = "response.completed"): string {
  const output = events.filter((event) => event.type === "response.output_item.done").map(({ item }) => item);
  const all = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { type: "response.in_progress", response: { ...response, status: "in_progress", output: [] } },
    ...events,
    { type, response: { ...response, status: "completed", output, usage: usage(36, 87), ...last } },
  ];
  return namedFrames(all.map((event, index) => ({ ...event, type: String(event.type), sequence_number: index })));
}

/** The added and done events of an item that a built-in tool produces, with progress events between them. */
function builtIn(output_index: number, item: Fields, ...progress: readonly string[]): readonly Fields[] {
  return [
    { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } },
    ...progress.map((type) => ({ type, output_index, item_id: item.id })),
    { type: "response.output_item.done", output_index, item: { ...item, status: "completed" } },
  ];
}

const annotation = {
  type: "url_citation",
  start_index: 0,
  end_index: 5,
  url: "https://example.com",
  title: "Weather",
};

/** The cases. */
export const responsesCorpus: readonly CorpusCase[] = [
  {
    name: "a background response that waits, and compacts first",
    source: "https://developers.openai.com/api/docs/guides/background",
    stream: stream([
      { type: "response.queued", response: { ...response, status: "queued", background: true, output: [] } },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "compaction", id: "cmp_1", encrypted_content: "" },
      },
      { type: "response.compaction.compacting", output_index: 0, item_id: "cmp_1" },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { type: "compaction", id: "cmp_1", encrypted_content: "gAAAAABq" },
      },
      ...message(1, "Hi", " there!"),
    ]),
    expected: { text: "Hi there!", calls: [], finish: "stop" },
  },
  {
    name: "a text",
    source: reference,
    stream: stream(message(0, "Hi", " there! How can I assist you today?")),
    expected: { text: "Hi there! How can I assist you today?", calls: [], finish: "stop" },
  },
  {
    name: "one call",
    source: "https://platform.openai.com/docs/guides/function-calling",
    stream: stream(functionCall(0, "call_rqy", "get_weather", '{"', "location", '":"', "Paris", ", France", '"}')),
    expected: { text: "", calls: [["get_weather", { location: "Paris, France" }]], finish: "calls" },
  },
  {
    name: "reasoning with a summary, and two parallel calls",
    source: "https://platform.openai.com/docs/guides/reasoning",
    stream: stream([
      ...reasoning,
      ...functionCall(1, "call_a", "get_weather", '{"location":"Paris"}'),
      ...functionCall(2, "call_b", "get_weather", '{"location":', '"Bogotá"}'),
    ]),
    expected: {
      text: "",
      calls: [["get_weather", { location: "Paris" }], ["get_weather", { location: "Bogotá" }]],
      finish: "calls",
      reasoning: "The 鉤 hangs.",
    },
  },
  {
    name: "reasoning without a summary, encrypted",
    source: "https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items",
    stream: stream([
      ...builtIn(0, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "Z0FBQUFB" }),
      ...message(1, "42"),
    ]),
    expected: { text: "42", calls: [], finish: "stop" },
  },
  {
    name: "a web search with a citation",
    source: "https://platform.openai.com/docs/guides/tools-web-search",
    stream: stream([
      ...builtIn(
        0,
        { type: "web_search_call", id: "ws_1", action: { type: "search", query: "weather" } },
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
      ),
      ...message(1, "Sunny", ".").flatMap((event) =>
        event.type === "response.output_text.done"
          ? [{
            type: "response.output_text.annotation.added",
            output_index: 1,
            item_id: "msg_1",
            content_index: 0,
            annotation_index: 0,
            annotation,
          }, event]
          : [event]
      ),
    ]),
    expected: { text: "Sunny.", calls: [], finish: "stop", ran: [["web_search", null]] },
  },
  {
    name: "code that the provider runs",
    source: "https://platform.openai.com/docs/guides/tools-code-interpreter",
    stream: stream([
      ...builtIn(
        0,
        {
          type: "code_interpreter_call",
          id: "ci_1",
          code: "print(1)",
          container_id: "cntr_1",
          outputs: [{ type: "logs", logs: "1" }],
        },
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call.completed",
      ),
      ...message(1, "It prints 1."),
    ]),
    expected: {
      text: "It prints 1.",
      calls: [],
      finish: "stop",
      ran: [["code_execution", [{ type: "logs", logs: "1" }]]],
    },
  },
  {
    name: "a refusal",
    source: reference,
    stream: stream([
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] },
      },
      {
        type: "response.content_part.added",
        output_index: 0,
        item_id: "msg_1",
        content_index: 0,
        part: { type: "refusal", refusal: "" },
      },
      ...["I cannot", " help."].map((delta) => ({
        type: "response.refusal.delta",
        output_index: 0,
        item_id: "msg_1",
        content_index: 0,
        delta,
      })),
      {
        type: "response.refusal.done",
        output_index: 0,
        item_id: "msg_1",
        content_index: 0,
        refusal: "I cannot help.",
      },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "refusal", refusal: "I cannot help." }],
        },
      },
    ]),
    expected: { text: "I cannot help.", calls: [], finish: "refusal" },
  },
  {
    name: "a response that reaches its token limit",
    source: reference,
    stream: stream(
      message(0, "Once upon"),
      { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
      "response.incomplete",
    ),
    expected: { text: "Once upon", calls: [], finish: "length" },
  },
  {
    name: "a file search with a citation of a file",
    source: "https://platform.openai.com/docs/guides/tools-file-search",
    stream: stream([
      ...builtIn(
        0,
        {
          type: "file_search_call",
          id: "fs_1",
          queries: ["deep research"],
          results: [{ file_id: "file-2dtbBZdjtDKS8eqWxqbgDi", filename: "a.pdf", score: 0.9, text: "OpenAI" }],
        },
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
      ),
      ...message(1, "By OpenAI", ".").flatMap((event) =>
        event.type === "response.output_text.done"
          ? [{
            type: "response.output_text.annotation.added",
            output_index: 1,
            item_id: "msg_1",
            content_index: 0,
            annotation_index: 0,
            annotation: { type: "file_citation", index: 9, file_id: "file-2dtbBZdjtDKS8eqWxqbgDi", filename: "a.pdf" },
          }, event]
          : [event]
      ),
    ]),
    expected: {
      text: "By OpenAI.",
      calls: [],
      finish: "stop",
      ran: [["file_search", [{
        file_id: "file-2dtbBZdjtDKS8eqWxqbgDi",
        filename: "a.pdf",
        score: 0.9,
        text: "OpenAI",
      }]]],
    },
  },
  {
    name: "a generated image, with a partial one",
    source: "https://platform.openai.com/docs/guides/tools-image-generation#streaming",
    stream: stream([
      ...builtIn(
        0,
        { type: "image_generation_call", id: "ig_1", result: "iVBORw0KGgo=", output_format: "png" },
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
      ).flatMap((event) =>
        event.type === "response.image_generation_call.generating"
          ? [event, {
            type: "response.image_generation_call.partial_image",
            output_index: 0,
            item_id: "ig_1",
            partial_image_index: 0,
            partial_image_b64: "iVBORw0K",
          }]
          : [event]
      ),
      ...message(1, "A river."),
    ]),
    expected: { text: "A river.", calls: [], finish: "stop" },
  },
  {
    name: "a call of a remote MCP server",
    source: "https://platform.openai.com/docs/guides/tools-connectors-mcp",
    stream: stream([
      ...builtIn(
        0,
        { type: "mcp_list_tools", id: "mcpl_1", server_label: "dmcp", tools: [] },
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
      ),
      ...builtIn(
        1,
        {
          type: "mcp_call",
          id: "mcp_1",
          server_label: "dmcp",
          name: "roll",
          arguments: '{"diceRollExpression":"2d4 + 1"}',
          output: "4",
          error: null,
        },
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
      ),
      ...message(2, "You rolled 4."),
    ]),
    expected: { text: "You rolled 4.", calls: [], finish: "stop", ran: [["roll", "4"]] },
  },
  {
    name: "a response that a content filter ends",
    source: reference,
    stream: stream(
      message(0, "I"),
      { status: "incomplete", incomplete_details: { reason: "content_filter" } },
      "response.incomplete",
    ),
    expected: { text: "I", calls: [], finish: "filter" },
  },
  {
    name: "two messages, one before a call",
    source: "https://platform.openai.com/docs/guides/function-calling",
    stream: stream([
      ...message(0, "Let me", " look."),
      ...functionCall(1, "call_a", "list_files", "{}"),
    ]),
    expected: { text: "Let me look.", calls: [["list_files", {}]], finish: "calls" },
  },
];
