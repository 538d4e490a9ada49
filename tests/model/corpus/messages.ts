/**
 * Streams of Anthropic's messages API.
 *
 * @module
 */
import { type CorpusCase, namedFrames } from "./case.ts";

const streaming = "https://docs.anthropic.com/en/docs/build-with-claude/streaming";

const start = {
  type: "message_start",
  message: {
    id: "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY",
    type: "message",
    role: "assistant",
    content: [],
    model: "claude-opus-4-6",
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 25, output_tokens: 1 },
  },
};

/** The events of a block with these deltas. */
function block(index: number, content_block: object, ...deltas: readonly object[]) {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

function text(index: number, ...texts: readonly string[]) {
  return block(index, { type: "text", text: "" }, ...texts.map((text) => ({ type: "text_delta", text })));
}

function toolUse(index: number, id: string, name: string, ...deltas: readonly string[]) {
  return block(
    index,
    { type: "tool_use", id, name, input: {} },
    ...["", ...deltas].map((partial_json) => ({ type: "input_json_delta", partial_json })),
  );
}

/** Encodes a message of these events, before which the provider edited the context. */
function editedMessage(...events: readonly (readonly { readonly type: string }[])[]): string {
  const applied_edits = [
    { type: "clear_thinking_20251015", cleared_thinking_turns: 3, cleared_input_tokens: 15_000 },
    { type: "clear_tool_uses_20250919", cleared_tool_uses: 8, cleared_input_tokens: 50_000 },
  ];
  const delta = { stop_reason: "end_turn", stop_sequence: null };
  const last = {
    type: "message_delta",
    delta,
    usage: { output_tokens: 1_024 },
    context_management: { applied_edits },
  };
  return namedFrames([start, ...events.flat(), last, { type: "message_stop" }]);
}

/** Encodes a message of these events. */
function message(stop_reason: string, ...events: readonly (readonly { readonly type: string }[])[]): string {
  const delta = { stop_reason, stop_sequence: null };
  const last = { type: "message_delta", delta, usage: { output_tokens: 15 } };
  return namedFrames([start, ...events.flat(), last, { type: "message_stop" }]);
}

/** The cases. */
export const messagesCorpus: readonly CorpusCase[] = [
  {
    name: "a text, with a ping",
    source: streaming,
    stream: message("end_turn", text(0).slice(0, 1), [{ type: "ping" }], text(0, "Hello", "!").slice(1)),
    expected: { text: "Hello!", calls: [], finish: "stop" },
  },
  {
    name: "a text and a call",
    source: `${streaming}#streaming-request-with-tool-use`,
    stream: message(
      "tool_use",
      text(0, "Okay", ", let's check the weather."),
      toolUse(1, "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", '{"location":', ' "San', " Francisc", 'o, CA"', "}"),
    ),
    expected: {
      text: "Okay, let's check the weather.",
      calls: [["get_weather", { location: "San Francisco, CA" }]],
      finish: "calls",
    },
  },
  {
    name: "a compaction, cleared results and cleared reasoning",
    source: "https://platform.claude.com/docs/en/build-with-claude/context-editing#context-editing-response",
    stream: editedMessage(
      block(0, { type: "compaction", content: null, encrypted_content: null }, {
        type: "compaction_delta",
        content: "They asked for a scraper.",
        encrypted_content: null,
      }),
      text(1, "Hello", "!"),
    ),
    expected: { text: "Hello!", calls: [], finish: "stop" },
  },
  {
    name: "two parallel calls, one without input",
    source: "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use#parallel-tool-use",
    stream: message(
      "tool_use",
      toolUse(0, "toolu_a", "get_time"),
      toolUse(1, "toolu_b", "get_weather", '{"city":"Oslo"}'),
    ),
    expected: { text: "", calls: [["get_time", {}], ["get_weather", { city: "Oslo" }]], finish: "calls" },
  },
  {
    name: "thinking with its signature",
    source: `${streaming}#streaming-request-with-extended-thinking`,
    stream: message(
      "end_turn",
      block(
        0,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "27 * 453 = " },
        { type: "thinking_delta", thinking: "12,231" },
        { type: "signature_delta", signature: "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk" },
      ),
      text(1, "27 * 453 = 12,231"),
    ),
    expected: { text: "27 * 453 = 12,231", calls: [], finish: "stop", reasoning: "27 * 453 = 12,231" },
  },
  {
    name: "thinking that is withheld, and thinking that is redacted",
    source: "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking",
    stream: message(
      "end_turn",
      block(0, { type: "thinking", thinking: "", signature: "" }, { type: "signature_delta", signature: "EqQB" }),
      block(1, { type: "redacted_thinking", data: "EmwKAhgBEgy3va3pzix" }),
      text(2, "Done."),
    ),
    expected: { text: "Done.", calls: [], finish: "stop" },
  },
  {
    name: "a web search with a citation",
    source: `${streaming}#streaming-request-with-web-search-tool-use`,
    stream: message(
      "end_turn",
      text(0, "I'll check."),
      block(
        1,
        { type: "server_tool_use", id: "srvtoolu_014hJH82Qum7Td6UV8gDXThB", name: "web_search", input: {} },
        { type: "input_json_delta", partial_json: "" },
        { type: "input_json_delta", partial_json: '{"query":' },
        { type: "input_json_delta", partial_json: ' "weather NYC today"}' },
      ),
      block(2, {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_014hJH82Qum7Td6UV8gDXThB",
        content: [{ type: "web_search_result", title: "NYC", url: "https://example.com", encrypted_content: "Ev0D" }],
      }),
      block(3, { type: "text", text: "", citations: [] }, { type: "text_delta", text: " It is sunny" }, {
        type: "citations_delta",
        citation: {
          type: "web_search_result_location",
          cited_text: "Sunny",
          url: "https://example.com",
          title: "NYC",
          encrypted_index: "Eo8B",
        },
      }),
      text(4, "."),
    ),
    expected: {
      text: "I'll check. It is sunny.",
      calls: [],
      finish: "stop",
      ran: [["web_search", [{
        type: "web_search_result",
        title: "NYC",
        url: "https://example.com",
        encrypted_content: "Ev0D",
      }]]],
    },
  },
  {
    name: "a refusal during the stream",
    source: "https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals",
    stream: message("refusal", text(0, "Hello", "..")),
    expected: { text: "Hello..", calls: [], finish: "refusal" },
  },
  {
    name: "a response that reaches its token limit",
    source: "https://docs.anthropic.com/en/api/handling-stop-reasons",
    stream: message("max_tokens", text(0, "Once upon")),
    expected: { text: "Once upon", calls: [], finish: "length" },
  },
  {
    name: "a stop sequence",
    source: "https://docs.anthropic.com/en/api/handling-stop-reasons",
    stream: message("stop_sequence", text(0, "1, 2, 3")),
    expected: { text: "1, 2, 3", calls: [], finish: "stop" },
  },
  {
    name: "thinking between two calls",
    source: "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#interleaved-thinking",
    stream: message(
      "tool_use",
      block(
        0,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "First." },
        { type: "signature_delta", signature: "EqQBA" },
      ),
      toolUse(1, "toolu_a", "calculator", '{"expression":"150 * 50"}'),
      block(
        2,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "Then." },
        { type: "signature_delta", signature: "EqQBB" },
      ),
      toolUse(3, "toolu_b", "database_query", '{"query":"SELECT 1"}'),
    ),
    expected: {
      text: "",
      calls: [["calculator", { expression: "150 * 50" }], ["database_query", { query: "SELECT 1" }]],
      finish: "calls",
      reasoning: "First.Then.",
    },
  },
  {
    name: "a citation of a document",
    source: "https://docs.anthropic.com/en/docs/build-with-claude/citations#streaming-support",
    stream: message(
      "end_turn",
      block(0, { type: "text", text: "", citations: [] }, { type: "text_delta", text: "the grass is green" }, {
        type: "citations_delta",
        citation: {
          type: "char_location",
          cited_text: "The grass is green.",
          document_index: 0,
          document_title: "My Document",
          start_char_index: 0,
          end_char_index: 20,
        },
      }),
      text(1, " and"),
    ),
    expected: { text: "the grass is green and", calls: [], finish: "stop" },
  },
  {
    name: "code that the provider runs",
    source: "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/code-execution-tool#streaming",
    stream: message(
      "end_turn",
      text(0, "I'll compute it."),
      block(
        1,
        { type: "server_tool_use", id: "srvtoolu_xyz789", name: "bash_code_execution", input: {} },
        { type: "input_json_delta", partial_json: '{"command":"python3 -c ' },
        { type: "input_json_delta", partial_json: "'print(6 * 7)'\"}" },
      ),
      block(2, {
        type: "bash_code_execution_tool_result",
        tool_use_id: "srvtoolu_xyz789",
        content: { type: "bash_code_execution_result", stdout: "42\n", stderr: "", return_code: 0, content: [] },
      }),
      text(3, " It is 42."),
    ),
    expected: {
      text: "I'll compute it. It is 42.",
      calls: [],
      finish: "stop",
      ran: [["bash_code_execution", {
        type: "bash_code_execution_result",
        stdout: "42\n",
        stderr: "",
        return_code: 0,
        content: [],
      }]],
    },
  },
  {
    name: "a call of a remote MCP server",
    source: "https://docs.anthropic.com/en/docs/agents-and-tools/mcp-connector#response-content-types",
    stream: message(
      "end_turn",
      block(
        0,
        {
          type: "mcp_tool_use",
          id: "mcptoolu_014Q35RayjACSWkSj4X2yov1",
          name: "echo",
          server_name: "example",
          input: {},
        },
        { type: "input_json_delta", partial_json: '{"param1":"value1"}' },
      ),
      block(1, {
        type: "mcp_tool_result",
        tool_use_id: "mcptoolu_014Q35RayjACSWkSj4X2yov1",
        is_error: false,
        content: [{ type: "text", text: "Hello" }],
      }),
      text(2, "It said hello."),
    ),
    expected: {
      text: "It said hello.",
      calls: [],
      finish: "stop",
      ran: [["echo", [{ type: "text", text: "Hello" }]]],
    },
  },
  {
    name: "an event of a type that is not known",
    source: `${streaming}#other-events`,
    stream: message("end_turn", text(0, "Hello"), [{ type: "something_new" }]),
    expected: { text: "Hello", calls: [], finish: "stop" },
  },
];
