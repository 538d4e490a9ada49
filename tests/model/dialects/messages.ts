/**
 * The messages API, as Anthropic and compatible servers stream it.
 *
 * @module
 */
import { anthropic } from "@jizai/jizai/model/anthropic";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CanonicalResponse, type Failure, inputText, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, type Rendered } from "./dialect.ts";

const aspects = {
  /** The start of blocks of text and reasoning. */
  start: ["given", "missing"],
  /** The end of blocks. */
  stop: ["given", "missing"],
  /** The indexes of blocks. */
  index: ["counted", "all 0"],
  /** The form of the input of a call. */
  input: ["in pieces", "an object at the start", "a text at the start"],
  /** The stop reason of a whole response. */
  reason: ["given", "null", "no message_delta"],
  /** The place of the usage. */
  usage: ["at the start and at the end", "at the end", "iterations"],
  /** The place of the blocks. */
  place: ["events", "message_start"],
  /** A signature of a text. */
  signature: ["none", "on a text delta", "signature_delta"],
  /** Data that is sent back. */
  carried: ["none", "caller", "compaction"],
  /** The form of a failure. */
  failure: ["error", "an event without a type"],
  /** Content that the API does not document. */
  extras: ["none", "unknown members", "unknown events", "an unknown block", "an unknown delta"],
  /** A member whose type the adapter cannot read. */
  broken: ["none", "delta", "content_block", "input", "name", "text", "partial_json", "stop_reason", "usage"],
} as const satisfies Aspects;

type MessagesForm = Form<typeof aspects>;

/** The dialect. */
export const messages = dialect({
  name: "anthropic()",
  aspects,
  model: ({ fetch }) => anthropic({ model: "m", fetch: fetch!, cache: false }),
  concerns: {
    input: has("call"),
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
    ...finish !== "stop" && finish !== "calls" && { reason: "given" },
    ...form.carried === "compaction" && { place: "events" },
    ...form.extras === "an unknown block" && { place: "events" },
    ...failure && { broken: "none" },
  }),
  expected: (response) => ({
    ...response,
    finish: response.finish === "filter" ? "other" : response.finish,
    files: [],
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
  const all = [
    ...form.carried === "compaction" ? [compaction(chance)] : [],
    ...form.extras === "an unknown block" ? [[begin({ type: "hologram", data: "x" }), stop]] : [],
    ...form.extras === "an unknown delta"
      ? [[begin({ type: "text", text: "" }), grow({ type: "hologram_delta", hologram: "x" }), stop]]
      : [],
    ...streamed,
  ];
  const first = form.usage === "at the start and at the end" && usage
    ? { usage: { ...countsOf(usage), output_tokens: 1 } }
    : {};
  const last = usage
    ? {
      usage: form.usage === "iterations"
        ? iterationsOf(usage)
        : first.usage
        ? { output_tokens: usage.output, ...detailsOf(usage) }
        : countsOf(usage),
    }
    : {};
  const delta = {
    stop_reason: form.reason === "given" ? reasons[finish] : null,
    stop_sequence: null,
    ...refusal !== undefined && { stop_details: { type: "refusal", explanation: refusal } },
  };
  const end = form.reason === "no message_delta"
    ? [...usage ? [{ type: "message_delta", ...last }] : []]
    : [{ type: "message_delta", delta, ...last }];
  const frames = [
    { type: "message_start", message: { id: "msg_1", role: "assistant", content: early, stop_reason: null, ...first } },
    ...all.flatMap((events, index) => indexed(events, index, form)),
    ...end,
    { type: "message_stop" },
  ];
  const sent = withExtras(failure ? failed(frames, failure, form) : frames, form, chance);
  if (form.broken !== "none" && !failure) {
    return { frames: broken(sent, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  return {
    frames: sent,
    warnings: form.extras === "an unknown block" || form.extras === "an unknown delta" ? 1 : 0,
    checkNext: (body) => checkNext(body, response, form),
  };
}

const begin = (content_block: object) => ({ type: "content_block_start", content_block });
const grow = (delta: object) => ({ type: "content_block_delta", delta });
const stop = { type: "content_block_stop" };

/** Numbers the events of a block, and leaves out its end if the form has none. */
function indexed(events: readonly object[], index: number, form: MessagesForm): readonly object[] {
  const kept = form.stop === "given" ? events : events.filter((event) => event !== stop);
  return kept.map((event) => ({ index: form.index === "counted" ? index : 0, ...event }));
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
    const isPiecemeal = form.input === "in pieces";
    const input = { "in pieces": {}, "an object at the start": block.input, "a text at the start": text }[form.input];
    const pieces = isPiecemeal ? ["", ...piecesOf(text, chance)] : [];
    return [
      begin({ ...whole, input }),
      ...pieces.map((partial_json) => grow({ type: "input_json_delta", partial_json })),
      ...block.isCut ? [] : [stop],
    ];
  }
  const starts = form.start === "missing" ? [] : [
    begin(block.type === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" }),
  ];
  const pieces = piecesOf(block.text, chance);
  if (block.type === "reasoning") {
    return [
      ...starts,
      ...pieces.map((thinking) => grow({ type: "thinking_delta", thinking })),
      ...block.signature === undefined ? [] : [grow({ type: "signature_delta", signature: block.signature })],
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

function withExtras(frames: readonly object[], { extras }: MessagesForm, { one }: Chance): readonly object[] {
  switch (extras) {
    case "unknown members":
      return frames.map((frame) => ({ x_vendor: { nested: [null] }, ...frame }));
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
  frames: readonly object[],
  { at, message, recoverable }: Failure,
  { failure }: MessagesForm,
): readonly object[] {
  const place = { start: 0, middle: Math.floor(frames.length / 2), end: frames.length - 1 }[at];
  const error = { type: recoverable ? "overloaded_error" : "invalid_request_error", message };
  return [...frames.slice(0, place), failure === "error" ? { type: "error", error } : { error }];
}

/** Puts an event with a member of a wrong type before the others. */
function broken(frames: readonly object[], member: MessagesForm["broken"], { one }: Chance): readonly object[] {
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
    ...whole,
  ];
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
