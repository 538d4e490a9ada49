/**
 * The messages API, as Anthropic and compatible servers stream it.
 *
 * @module
 */
import { anthropic } from "@jizai/jizai/model/anthropic";
import { providerTool } from "@jizai/jizai/provider_tools";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CanonicalResponse, type Failure, inputText, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, NamedFrame, type Rendered } from "./dialect.ts";

const aspects = {
  /** The first event: buffered responses begin with their end. */
  opening: ["message_start", "twice", "with the stop reason", "missing"], // LiteLLM
  /** The start of blocks of text and reasoning. */
  start: ["given", "missing"], // LiteLLM
  /** The end of blocks. */
  stop: ["given", "missing"],
  /** The indexes of blocks. */
  index: ["counted", "all 0", "all -1", "from 1"], // LiteLLM
  /** The form of the input of a call. */
  input: [
    "in pieces",
    "an object at the start",
    "a text at the start",
    "an object at the start, and in pieces",
    "in pieces, without an empty one at the start", // llama.cpp
  ],
  /** The place of the signature of reasoning. */
  thinking: ["a delta", "the start and a delta", "the start", "a delta with null at the start"], // Headroom, llama.cpp
  /** The stop reason of a whole response. */
  reason: ["given", "null", "no message_delta", "of chat completions"],
  /** The end of the stream. */
  end: [
    "message_stop",
    "none", // better-ccflare
    "message_stop twice", // Plano
    "message_stop and [DONE]", // LiteLLM
    "message_delta before the last end of a block",
    "a second message_delta without a reason",
  ],
  /** The place of the usage. */
  usage: ["at the start and at the end", "at the end", "0 at the start", "null and 0 at the end", "iterations"], // mlx-node
  /** The place of the blocks. */
  place: ["events", "message_start"],
  /** A signature of a text. */
  signature: ["none", "on a text delta", "signature_delta"],
  /** Data that is sent back. */
  carried: ["none", "caller", "compaction"],
  /** A tool that the server ran. */
  ran: ["none", "a search", "a failed search", "code", "a tool of MCP", "a search within a pause"],
  /** The form of a failure. */
  failure: ["error", "an event without a type", "error as text", "an event named error"], // LiteLLM
  /** Content that the API does not document. */
  extras: ["none", "unknown members", "unknown events", "an unknown block", "an unknown delta", "nulls"],
  /** A member whose type the adapter cannot read. */
  broken: ["none", "delta", "content_block", "input", "name", "text", "partial_json", "stop_reason", "usage"],
} as const satisfies Aspects;

type MessagesForm = Form<typeof aspects>;

/** The dialect. */
export const messages = dialect({
  name: "anthropic()",
  aspects,
  model({ fetch }) {
    const model = anthropic({ model: "m", fetch: fetch!, cache: false });
    const { definition } = providerTool({ type: "web_search" });
    return {
      ...model,
      stream: (request, options) => model.stream({ ...request, tools: [...request.tools, definition] }, options),
    };
  },
  concerns: {
    input: has("call"),
    thinking: has("reasoning"),
    ran: ({ failure }) => !failure,
    signature: has("text"),
    carried: ({ failure, finish }) => !failure && finish !== "filter",
    usage: ({ usage, failure }) => usage !== undefined && !failure,
    failure: ({ failure }) => failure !== undefined,
    broken: ({ failure }) => !failure,
  },
  settle: (form, { blocks, finish, failure }) => ({
    ...form,
    ...form.start === "missing" && { stop: "given" },
    ...blocks.some((block) => block.type === "call" && block.isCut) && { input: "in pieces", place: "events" },
    ...finish !== "stop" && finish !== "calls" && form.reason !== "of chat completions" && { reason: "given" },
    ...form.reason !== "given" && form.reason !== "of chat completions" && { end: "message_stop" },
    ...finish !== "stop" && finish !== "calls" && finish !== "length" && { reason: "given" },
    ...form.opening !== "message_start" && { place: "events" },
    ...form.opening === "missing" && form.usage !== "iterations" && { usage: "at the end" },
    ...(form.carried === "compaction" || form.ran !== "none") && { place: "events" },
    ...form.extras === "an unknown block" && { place: "events" },
    ...failure && { broken: "none", end: "message_stop" },
  }),
  expected: (response, form) => ({
    ...response,
    finish: response.finish === "filter" ? "other" : response.finish,
    files: [],
    ...response.failure && form.failure !== "error" && form.failure !== "an event without a type" && {
      failure: { ...response.failure, recoverable: true }, // the form does not tell
    },
    sources: response.blocks.some(({ type }) => type === "text") ? response.sources : [],
  }),
  render,
});

function has(type: Block["type"]): (response: CanonicalResponse) => boolean {
  return ({ blocks, failure }) => !failure && blocks.some((block) => block.type === type);
}

const reasons: Readonly<Record<string, string>> = {
  stop: "end_turn",
  calls: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
  other: "x_other",
};

function render(response: CanonicalResponse, form: MessagesForm, chance: Chance): Rendered {
  const { blocks, finish, usage, failure, refusal } = response;
  let calls = 0;
  const ids = blocks.map(({ type }) => type === "call" ? calls++ : 0);
  const early = form.place === "message_start"
    ? blocks.map((block, at) => wholeBlock(block, ids[at]!, response, form))
    : [];
  const streamed = form.place === "message_start"
    ? []
    : blocks.map((block, at) => eventsOf(block, ids[at]!, { response, form, chance }));
  const ran = ranBlocks[form.ran];
  const isPaused = form.ran === "a search within a pause";
  const all = [
    ...form.carried === "compaction" ? [compaction(chance)] : [],
    ...form.extras === "an unknown block" ? [[begin({ type: "hologram", data: "x" }), stop]] : [],
    ...form.extras === "an unknown delta"
      ? [[begin({ type: "text", text: "" }), grow({ type: "hologram_delta", hologram: "x" }), stop]]
      : [],
    ...ran.slice(isPaused ? 1 : 0).map((block) => ranEvents(block, chance)),
    ...streamed,
  ];
  const stopReason = {
    given: reasons[finish],
    null: null,
    "no message_delta": null,
    "of chat completions": { stop: "stop", calls: "tool_calls" }[finish as string] ?? finish,
  }[form.reason];
  const counts = countsAt(usage, form);
  const delta = {
    stop_reason: stopReason,
    stop_sequence: null,
    ...refusal !== undefined && { stop_details: { type: "refusal", explanation: refusal } },
  };
  const last = form.reason === "no message_delta"
    ? [...usage ? [{ type: "message_delta", ...counts.end }] : []]
    : [{ type: "message_delta", delta, ...counts.end }];
  const isKnown = form.opening === "with the stop reason";
  const message = { id: "msg_1", role: "assistant", content: early, stop_reason: isKnown ? stopReason : null };
  const first = { type: "message_start", message: { ...message, ...counts.start } };
  const frames = ended(
    [
      ...form.opening === "missing" ? [] : form.opening === "twice" ? [first, first] : [first],
      ...all.flatMap((events, index) => indexed(events, index, form)),
    ],
    last,
    form,
  );
  const sent = withExtras(failure ? failed(frames, failure, form) : frames, form, chance);
  if (form.broken !== "none" && !failure) {
    return { frames: broken(sent, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  return {
    frames: sent,
    warnings: form.extras === "an unknown block" || form.extras === "an unknown delta" ? 1 : 0,
    ran: ran.map(ranOf),
    ...isPaused && { paused: pausedFrames(ran[0]!, chance) },
    checkNext: (body, continued) => {
      if (isPaused) assertEquals(continued.messages.at(-1), { role: "assistant", content: [ran[0]] });
      checkNext(body, response, form);
    },
  };
}

/** Returns the counts of the first and of the last event. */
function countsAt(
  usage: CanonicalResponse["usage"],
  form: MessagesForm,
): { readonly start: object; readonly end: object } {
  if (!usage) return { start: {}, end: {} };
  const all = countsOf(usage);
  const none = { input_tokens: 0, output_tokens: 0 };
  const output = { output_tokens: usage.output, ...detailsOf(usage) };
  const first = { usage: { ...all, output_tokens: 1 } };
  const counts = {
    "at the start and at the end": { start: first, end: { usage: output } },
    "at the end": { start: {}, end: { usage: all } },
    "0 at the start": { start: { usage: none }, end: { usage: all } },
    "null and 0 at the end": {
      start: first,
      end: { usage: { input_tokens: 0, cache_read_input_tokens: null, cache_creation_input_tokens: null, ...output } },
    },
    "iterations": { start: {}, end: { usage: iterationsOf(usage) } },
  };
  return counts[form.usage];
}

/** Ends a stream: `last` has the stop reason. */
function ended(
  frames: readonly object[],
  last: readonly object[],
  form: MessagesForm,
): readonly (object | string)[] {
  const stopped = { type: "message_stop", "amazon-bedrock-invocationMetrics": { inputTokenCount: 1 } }; // Bedrock
  switch (form.end) {
    case "message_stop":
      return [...frames, ...last, stopped];
    case "none":
      return [...frames, ...last, { type: "ping" }];
    case "message_stop twice":
      return [...frames, ...last, stopped, stopped];
    case "message_stop and [DONE]":
      return [...frames, ...last, stopped, "[DONE]"];
    case "message_delta before the last end of a block":
      return (frames.at(-1) as Body).type === stop.type
        ? [...frames.slice(0, -1), ...last, ...frames.slice(-1), stopped]
        : [...frames, ...last, stopped];
    case "a second message_delta without a reason":
      return [...frames, ...last, { type: "message_delta", delta: { stop_reason: null }, usage: null }, stopped];
  }
}

/** A block of a tool that the server ran. */
type RanBlock = Readonly<Record<string, unknown>>;

const searched = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "京都" } };
const found = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [{ type: "web_search_result", url: "https://example.com", title: "A", encrypted_content: "ZQ==" }],
};
const ranBlocks: { readonly [ran in MessagesForm["ran"]]: readonly RanBlock[] } = {
  "none": [],
  "a search": [searched, found],
  "a search within a pause": [searched, found],
  "a failed search": [
    searched,
    { ...found, content: { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" } },
  ],
  "code": [
    { type: "server_tool_use", id: "srvtoolu_2", name: "bash_code_execution", input: { command: "ls" } },
    {
      type: "bash_code_execution_tool_result",
      tool_use_id: "srvtoolu_2",
      content: { type: "bash_code_execution_result", stdout: "a\n", stderr: "", return_code: 0, content: [] },
    },
  ],
  "a tool of MCP": [
    { type: "mcp_tool_use", id: "mcptoolu_1", name: "echo", server_name: "s", input: { a: [1] } },
    { type: "mcp_tool_result", tool_use_id: "mcptoolu_1", is_error: true, content: [{ type: "text", text: "no" }] },
  ],
};

/** Returns the events of such a block: the input of a call comes in pieces. */
function ranEvents(block: RanBlock, chance: Chance): readonly object[] {
  if (!block.input) return [begin(block), stop];
  const pieces = piecesOf(JSON.stringify(block.input), chance);
  return [
    begin({ ...block, input: {} }),
    ...pieces.map((partial_json) => grow({ type: "input_json_delta", partial_json })),
    stop,
  ];
}

/** Returns a call as the name and its input, and a result as the name, the status and the output. */
function ranOf(
  { name, input, type, content, is_error: isError }: RanBlock,
  _: number,
  all: readonly RanBlock[],
): readonly unknown[] {
  if (name !== undefined) return [name, input];
  const failed = isError === true || String(Object(content).type).endsWith("_error");
  return [all[0]?.name ?? type, failed ? "error" : "ok", content];
}

/** Returns the frames of a response that the server pauses after a call of its own. */
function pausedFrames(call: RanBlock, chance: Chance): readonly object[] {
  return [
    { type: "message_start", message: { id: "msg_0", role: "assistant", content: [], stop_reason: null } },
    ...ranEvents(call, chance).map((event) => ({ index: 0, ...event })),
    { type: "message_delta", delta: { stop_reason: "pause_turn" } },
    { type: "message_stop" },
  ];
}

const begin = (content_block: object) => ({ type: "content_block_start", content_block });
const grow = (delta: object) => ({ type: "content_block_delta", delta });
const stop = { type: "content_block_stop" };

/** Numbers the events of a block, and leaves out its end if the form has none. */
function indexed(events: readonly object[], index: number, form: MessagesForm): readonly object[] {
  const kept = form.stop === "given" ? events : events.filter((event) => event !== stop);
  const number = { counted: index, "from 1": index + 1, "all 0": 0, "all -1": -1 }[form.index];
  return kept.map((event) => ({ index: number, ...event }));
}

/** Returns a block as the API takes it back. */
function wholeBlock(block: Block, id: number, { sources, blocks }: CanonicalResponse, form: MessagesForm): object {
  if (block.type === "text") {
    const isLast = blocks.findLast(({ type }) => type === "text") === block;
    const citations = isLast ? sources.map(citationOf) : [];
    const signed = form.signature !== "none" && { signature: "text sig" };
    return { type: "text", text: block.text, ...signed, ...citations.length > 0 && { citations } };
  }
  if (block.type === "reasoning") {
    return {
      type: "thinking",
      thinking: block.text,
      ...block.signature !== undefined && { signature: block.signature },
    };
  }
  const caller = { caller: { type: "code_execution_20260120", tool_id: `srvtoolu_${id}` } };
  return {
    type: "tool_use",
    id: `toolu_${id}`,
    name: block.name,
    input: block.input,
    ...form.carried === "caller" && caller,
  };
}

function citationOf(source: object): object {
  return { type: "web_search_result_location", encrypted_index: "aWR4", ...source };
}

interface Rendering {
  readonly response: CanonicalResponse;
  readonly form: MessagesForm;
  readonly chance: Chance;
}

/** Returns the events of a block. */
function eventsOf(block: Block, id: number, { response, form, chance }: Rendering): readonly object[] {
  const whole = wholeBlock(block, id, response, form) as Body;
  if (block.type === "call") {
    const text = inputText(block, chance);
    const isPiecemeal = form.input.includes("in pieces");
    const input = {
      "in pieces": {},
      "an object at the start": block.input,
      "a text at the start": text,
      "an object at the start, and in pieces": block.input,
      "in pieces, without an empty one at the start": undefined,
    }[form.input];
    const pieces = isPiecemeal ? ["", ...piecesOf(text, chance)] : [];
    return [
      begin({ ...whole, input }),
      ...pieces.map((partial_json) => grow({ type: "input_json_delta", partial_json })),
      ...block.isCut ? [] : [stop],
    ];
  }
  const signed = block.type === "reasoning" ? block.signature : undefined;
  const early = {
    "a delta": "",
    "a delta with null at the start": null,
    "the start and a delta": signed,
    "the start": signed,
  };
  const signatures = early[form.thinking] ? { signature: early[form.thinking] } : { signature: "" };
  const starts = form.start === "missing" ? [] : [
    begin(block.type === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", ...signatures }),
  ];
  const pieces = piecesOf(block.text, chance);
  if (block.type === "reasoning") {
    return [
      ...starts,
      ...pieces.map((thinking) => grow({ type: "thinking_delta", thinking })),
      ...block.signature === undefined || (form.thinking === "the start" && starts.length > 0)
        ? []
        : [grow({ type: "signature_delta", signature: block.signature })],
      stop,
    ];
  }
  const signature = "text sig";
  return [
    ...starts,
    ...pieces.map((text, at) =>
      grow({ type: "text_delta", text, ...at === 0 && form.signature === "on a text delta" && { signature } })
    ),
    ...form.signature === "signature_delta" ? [grow({ type: "signature_delta", signature })] : [],
    ...(whole.citations ?? []).map((citation: object) => grow({ type: "citations_delta", citation })),
    stop,
  ];
}

const summary = "The person asked for the weather in 京都.";

function compaction(chance: Chance): readonly object[] {
  const pieces = piecesOf(summary, chance).map((content) => grow({ type: "compaction_delta", content }));
  return [begin({ type: "compaction", content: null }), ...pieces, stop];
}

/** Encodes token counts. The API counts the tokens of its cache beside the input. */
function countsOf(usage: NonNullable<CanonicalResponse["usage"]>): object {
  const { input, output, cached = 0, cacheWrite = 0 } = usage;
  return {
    input_tokens: input - cached - cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: output,
    ...detailsOf(usage),
  };
}

function detailsOf({ reasoning = 0 }: NonNullable<CanonicalResponse["usage"]>): object {
  return { output_tokens_details: { thinking_tokens: reasoning } };
}

/** Encodes the counts of a response behind which there are two requests: the first wrote a summary. */
function iterationsOf(usage: NonNullable<CanonicalResponse["usage"]>): object {
  const { input, output, reasoning = 0 } = usage;
  const first = {
    input: Math.floor((input - (usage.cached ?? 0) - (usage.cacheWrite ?? 0)) / 2),
    output: Math.floor((output - reasoning) / 2),
  };
  const rest = { ...usage, input: input - first.input, output: output - first.output };
  return {
    ...countsOf(rest),
    iterations: [{ type: "compaction", ...countsOf(first) }, { type: "message", ...countsOf(rest) }],
  };
}

function withExtras(
  frames: readonly (object | string)[],
  { extras }: MessagesForm,
  { one }: Chance,
): readonly (object | string)[] {
  const withMembers = (members: object) =>
    frames.map((frame) => typeof frame === "string" || frame instanceof NamedFrame ? frame : { ...members, ...frame });
  switch (extras) {
    case "unknown members":
      return withMembers({ x_vendor: { nested: [null] } });
    case "nulls":
      return withMembers({ delta: null, usage: null, content_block: null, message: null, error: null });
    case "unknown events":
      return frames.flatMap((frame) => [
        ...one<object[]>([[], [{ type: "ping" }], [{ type: "x_vendor", data: 1 }], [{}]]),
        frame,
      ]);
    default:
      return frames;
  }
}

/** Puts a failure among the events. */
function failed(
  frames: readonly (object | string)[],
  { at, message, recoverable }: Failure,
  { failure }: MessagesForm,
): readonly (object | string)[] {
  const place = { start: 0, middle: Math.floor(frames.length / 2), end: frames.length - 1 }[at];
  const error = { type: recoverable ? "overloaded_error" : "invalid_request_error", message };
  const forms: { readonly [form in MessagesForm["failure"]]: object } = {
    "error": { type: "error", error },
    "an event without a type": { error },
    "error as text": { type: "error", error: message },
    "an event named error": new NamedFrame("error", { message }),
  };
  return [...frames.slice(0, place), forms[failure]];
}

/** Puts an event with a member of a wrong type before the others. */
function broken(
  frames: readonly (object | string)[],
  member: MessagesForm["broken"],
  { one }: Chance,
): readonly (object | string)[] {
  const value = one<unknown>([7, true, 1.5]);
  const call = { type: "tool_use", id: "b", name: "weather", input: {} };
  const index = 99;
  const events: { readonly [member: string]: object } = {
    delta: { type: "content_block_delta", index, delta: value },
    content_block: { type: "content_block_start", index, content_block: value },
    input: { index, ...begin({ ...call, input: value }) },
    name: { index, ...begin({ ...call, name: value }) },
    text: { index, ...grow({ type: "text_delta", text: value }) },
    partial_json: { index, ...grow({ type: "input_json_delta", partial_json: value }) },
    stop_reason: { type: "message_delta", delta: { stop_reason: value } },
    usage: { type: "message_delta", delta: {}, usage: value },
  };
  const start = member === "partial_json" ? [{ index, ...begin(call) }] : [];
  return [...start, events[member]!, ...frames];
}

/** Fails unless the next request contains the blocks as the server wrote them. */
function checkNext({ messages }: Body, response: CanonicalResponse, form: MessagesForm): void {
  const { blocks } = response;
  let calls = 0;
  const whole: Body[] = blocks
    .map((block) => [block, wholeBlock(block, block.type === "call" ? calls++ : 0, response, form)] as const)
    .filter(([block]) =>
      block.type === "reasoning" ? block.signature !== undefined : block.type !== "text" || block.text.trim() !== ""
    )
    .map(([block, whole]) => block.type === "call" && block.isCut ? { ...whole, input: "cut" } : whole);
  const expected: Body[] = [
    ...form.carried === "compaction" ? [{ type: "compaction", content: summary }] : [],
    ...form.extras === "an unknown block" ? [{ type: "hologram", data: "x" }] : [],
    ...ranBlocks[form.ran],
    ...whole,
  ];
  if (form.ran === "a search within a pause") { // its call came first
    expected.unshift(...expected.splice(expected.indexOf(ranBlocks[form.ran][0]), 1));
  }
  if (expected.every(({ type }) => type === "thinking")) return; // the API takes no message of reasoning alone
  const answer = messages.find(({ role }: Body) => role === "assistant");
  const cut = blocks.findLast((block) => block.type === "call" && block.isCut);
  const sent = answer.content.map((block: Body, at: number) =>
    cut && at === answer.content.length - 1 ? { ...block, input: "cut" } : block
  );
  assertEquals(sent, expected);
  const results = messages.flatMap(({ content }: Body) => content).filter(({ type }: Body) => type === "tool_result");
  assertEquals(results.map((each: Body) => each.tool_use_id), Array.from({ length: calls }, (_, at) => `toolu_${at}`));
}
