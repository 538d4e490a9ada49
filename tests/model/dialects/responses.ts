/**
 * The Responses API, as OpenAI and compatible servers stream it.
 *
 * @module
 */
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CallBlock, type CanonicalResponse, type Failure, inputText, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, type Rendered } from "./dialect.ts";

const aspects = {
  /** The place of texts. */
  text: ["deltas", "output_text.done", "the item", "the response"],
  /** The place of reasoning. */
  reasoning: ["summary", "content", "only in the item"],
  /** The place and the form of the input of a call. */
  arguments: ["deltas", "the end", "an object at the end", "the added item", "the item", "an object in the item"],
  /** Whether an item is announced. */
  added: ["announced", "only done"],
  /** The ids of items: some gateways change them between the events of an item. */
  ids: ["given", "missing", "changed"], // GitHub Copilot
  /** The numbers of items. */
  index: ["counted", "missing", "zero"],
  /** The items of the response that ends the stream. */
  output: ["none", "all", "only there"],
  /** Members of a call that are sent back. */
  carried: ["none", "namespace", "caller"],
  /** An item of a call that the client must run. */
  client: [
    "none",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "custom_tool_call",
    "tool_search_call",
    "computer_call",
  ],
  /** The type of annotations. */
  sources: ["url_citation", "file_path"],
  /** A search that the provider ran. */
  search: ["none", "completed", "unfinished"],
  /** The form of a failure. */
  failure: ["error", "response.failed", "status"],
  /** Content that the API does not document. */
  extras: ["none", "unknown members", "unknown events", "an unknown item", "unknown content", "nulls"],
  /** A member whose type the adapter cannot read. */
  broken: ["none", "delta", "item", "arguments", "text", "output", "usage", "content"],
} as const satisfies Aspects;

type ResponsesForm = Form<typeof aspects>;

/** An output item. */
type Item = Readonly<Record<string, unknown>>;

/** The dialect. */
export const responses = dialect({
  name: "openaiResponses()",
  aspects,
  model: ({ fetch }) => openaiResponses({ model: "m", fetch: fetch! }),
  concerns: {
    text: has("text"),
    reasoning: has("reasoning"),
    arguments: has("call"),
    carried: has("call"),
    client: ({ failure }) => !failure,
    sources: ({ sources, failure }) => sources.length > 0 && !failure,
    failure: ({ failure }) => failure !== undefined,
    broken: ({ failure }) => !failure,
  },
  settle: (form, { blocks, failure }) => ({
    ...form,
    ...blocks.some((block) => block.type === "call" && block.isCut) &&
      { output: "none", arguments: "deltas", added: "announced" },
    ...failure && { client: "none", broken: "none" },
    ...form.client !== "none" && { broken: "none" },
  }),
  expected,
  render,
});

function has(type: Block["type"]): (response: CanonicalResponse) => boolean {
  return ({ blocks, failure, finish }) =>
    !failure && finish !== "filter" && blocks.some((block) => block.type === type);
}

/** A refusal is also the text of the answer. Texts that come in the last event follow the other content. */
function expected(response: CanonicalResponse, form: ResponsesForm): CanonicalResponse {
  const { refusal, sources } = response;
  const blocks: readonly Block[] = refusal === undefined
    ? response.blocks
    : [...response.blocks, { type: "text", text: refusal }];
  const isLate = (block: Block) => block.type === "text" || (block.type === "call" && block.isCut === true);
  const isReordered = form.text === "the response" && form.output !== "only there";
  return {
    ...response,
    blocks: isReordered ? [...blocks.filter((block) => !isLate(block)), ...blocks.filter(isLate)] : blocks,
    sources: form.sources === "url_citation" ? sources : sources.map((_, at) => ({
      url: undefined as unknown as string, // a file has no address
      title: `file_${at}`,
    })),
  };
}

function render(response: CanonicalResponse, form: ResponsesForm, chance: Chance): Rendered {
  const { finish, usage, failure, refusal } = response;
  const items = itemsOf(response, form, chance);
  const frames = items.flatMap(({ item, block }, at) => eventsOf(item, block, at, form, chance));
  const isWhole = finish === "stop" || finish === "calls" || refusal !== undefined;
  const reasons: Readonly<Record<string, string>> = { length: "max_output_tokens", filter: "content_filter" };
  const end = {
    status: isWhole ? "completed" : "incomplete",
    error: null,
    incomplete_details: isWhole ? null : { reason: reasons[finish] ?? "other" },
    output: form.output !== "none" || form.text === "the response"
      ? items.map(({ item }, at) => wholeItem(item, at, form))
      : [],
    ...usage && {
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cached ?? 0, cache_write_tokens: usage.cacheWrite ?? 0 },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
      },
    },
  };
  const last = { type: `response.${end.status}`, response: end };
  const created = { type: "response.created", response: { status: "in_progress", output: [] } };
  if (failure) {
    return { frames: withExtras(failed([created, ...frames, last], failure, form), form, chance) };
  }
  const all = withExtras([created, ...frames, last], form, chance);
  if (form.broken !== "none") {
    return { frames: broken(all, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  return {
    frames: all,
    ...form.client !== "none" && { lost: new RegExp(form.client) },
    warnings: form.extras === "an unknown item" ||
        (form.extras === "unknown content" && items.some(({ item }) => item.type === "message"))
      ? 1
      : 0,
    checkNext: (body) => checkNext(body, response, form),
  };
}

/** Returns the items of a response. */
function itemsOf(
  { blocks, sources, files, refusal }: CanonicalResponse,
  form: ResponsesForm,
  chance: Chance,
): readonly { readonly item: Item; readonly block?: Block }[] {
  const annotations = sources.map((source, at) =>
    form.sources === "url_citation"
      ? { type: "url_citation", start_index: 0, end_index: 1, ...source }
      : { type: "file_path", file_id: `file_${at}`, index: 0 }
  );
  const lastText = blocks.findLastIndex(({ type }) => type === "text");
  const unknown = form.extras === "unknown content" ? [{ type: "hologram", data: "x" }] : [];
  const message = (part: object) => ({ type: "message", role: "assistant", content: [part, ...unknown] });
  let calls = 0;
  const written = blocks.map((block, at) => {
    if (block.type === "reasoning") return { item: reasoningItem(block, form), block };
    if (block.type === "call") return { item: callItem(block, calls++, form, chance), block };
    const text = { type: "output_text", text: block.text, annotations: at === lastText ? annotations : [] };
    const isRefusal = refusal !== undefined && at === lastText;
    return {
      item: message(isRefusal ? { type: "refusal", refusal, annotations: text.annotations } : text),
      block,
    };
  });
  const { client, search, extras } = form;
  return [
    ...search === "none" ? [] : [{ item: searchItem(form) }],
    ...extras === "an unknown item" ? [{ item: { type: "hologram", data: "x" } }] : [],
    ...lastText < 0 && annotations.length > 0
      ? [{ item: message({ type: "output_text", text: "", annotations }) }]
      : [],
    ...files.map((file) => ({ item: imageItem(file.data) })),
    ...client === "none" ? [] : [{ item: { type: client, call_id: "client_1", status: "completed", action: {} } }],
    ...written,
  ];
}

function searchItem({ search }: ResponsesForm): Item {
  return {
    type: "web_search_call",
    id: "ws_1",
    status: search === "completed" ? search : "in_progress",
    action: { type: "search", query: "京都" },
  };
}

function imageItem(result: string): Item {
  return { type: "image_generation_call", status: "completed", output_format: "png", result };
}

function reasoningItem({ text, signature }: Block & { readonly type: "reasoning" }, form: ResponsesForm): Item {
  const encrypted = signature !== undefined && { encrypted_content: signature };
  return form.reasoning === "content"
    ? { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text }], ...encrypted }
    : { type: "reasoning", summary: [{ type: "summary_text", text }], ...encrypted };
}

function callItem(call: CallBlock, at: number, form: ResponsesForm, chance: Chance): Item {
  return {
    type: "function_call",
    call_id: `call_${at}`,
    name: call.name,
    arguments: form.arguments === "an object in the item" ? call.input : inputText(call, chance),
    status: call.isCut ? "incomplete" : "completed",
    ...carriedBy(at, form),
  };
}

function carriedBy(at: number, { carried }: ResponsesForm): object {
  const members = {
    none: {},
    namespace: { namespace: `ns ${at}` },
    caller: { caller: { type: "program", caller_id: `${at}` } },
  };
  return members[carried];
}

/** Returns an item with an id, as the last event of the item and the response contain it. */
function wholeItem(item: Item, at: number, form: ResponsesForm): Item {
  const id = { given: { id: `item_${at}` }, missing: {}, changed: { id: `item_${at}_end` } }[form.ids];
  return { ...id, ...item };
}

/** Returns an item without its content. */
function emptied(item: Item): Item {
  const empty = { message: { content: [] }, function_call: { arguments: "" }, reasoning: { summary: [] } };
  return { ...item, ...empty[item.type as "message"], ...item.type !== "web_search_call" && { status: "in_progress" } };
}

/** Returns the events of an item. */
function eventsOf(
  item: Item,
  block: Block | undefined,
  at: number,
  form: ResponsesForm,
  chance: Chance,
): readonly object[] {
  if (form.output === "only there") return [];
  const number = { counted: { output_index: at }, missing: {}, zero: { output_index: 0 } }[form.index];
  const id = { given: { item_id: `item_${at}` }, missing: {}, changed: { item_id: `item_${at}_delta` } }[form.ids];
  const isCut = block?.type === "call" && block.isCut === true;
  const isEarly = block?.type === "call" && form.arguments === "the added item";
  const begun = isEarly ? item : emptied(item);
  const isLate = block?.type === "text" && form.text === "the response";
  const isEmpty = isLate || (block?.type === "call" && !/item$/.test(form.arguments) && chance.below(2) === 0);
  const done = isLate ? emptied(item) : isEmpty ? { ...item, arguments: "" } : item;
  const isUnfinished = item.type === "web_search_call" && form.search === "unfinished";
  const isAnnounced = form.added === "announced" || isUnfinished || isEarly;
  return [
    ...isAnnounced ? [{ type: "response.output_item.added", ...number, item: wholeItem(begun, at, form) }] : [],
    ...block ? contentEvents(item, block, form, chance).map((event) => ({ ...number, ...id, ...event })) : [],
    ...isUnfinished || isCut ? [] : [{ type: "response.output_item.done", ...number, item: wholeItem(done, at, form) }],
  ];
}

/** Returns the events of the content of an item. */
function contentEvents(item: Item, block: Block, form: ResponsesForm, chance: Chance): readonly object[] {
  if (block.type === "call") return inputEvents(item, block, form, chance);
  const { text } = block;
  if (block.type === "reasoning") {
    if (form.reasoning === "only in the item") return [];
    const type = form.reasoning === "content" ? "response.reasoning_text" : "response.reasoning_summary_text";
    const place = form.reasoning === "content" ? { content_index: 0 } : { summary_index: 0 };
    return [
      ...piecesOf(text, chance).map((delta) => ({ type: `${type}.delta`, ...place, delta })),
      { type: `${type}.done`, ...place, text },
    ];
  }
  const [part] = item.content as readonly Item[];
  const isRefusal = part?.type === "refusal";
  const type = isRefusal ? "response.refusal" : "response.output_text";
  const end = { type: `${type}.done`, content_index: 0, [isRefusal ? "refusal" : "text"]: text };
  const deltas = piecesOf(text, chance).map((delta) => ({ type: `${type}.delta`, content_index: 0, delta }));
  const events = { "deltas": [...deltas, end], "output_text.done": [end], "the item": [], "the response": [] };
  return events[form.text];
}

function inputEvents(item: Item, call: CallBlock, form: ResponsesForm, chance: Chance): readonly object[] {
  const type = "response.function_call_arguments";
  const text = String(item.arguments);
  switch (form.arguments) {
    case "deltas":
      return [
        ...piecesOf(text, chance).map((delta) => ({ type: `${type}.delta`, delta })),
        ...call.isCut ? [] : [{ type: `${type}.done`, arguments: text }],
      ];
    case "the end":
      return [{ type: `${type}.done`, arguments: text }];
    case "an object at the end":
      return [{ type: `${type}.done`, arguments: call.input }];
    default:
      return [];
  }
}

function withExtras(frames: readonly object[], { extras }: ResponsesForm, { below, one }: Chance): readonly object[] {
  switch (extras) {
    case "unknown members":
      return frames.map((frame, at) => ({
        sequence_number: at,
        obfuscation: "x".repeat(below(9)),
        x_vendor: [{}],
        ...frame,
      }));
    case "unknown events":
      return frames.flatMap((frame) => [
        frame,
        ...one<object[]>([[], [{ type: "keepalive" }], [{ type: "response.x_vendor", response: { id: 1 } }], [{}]]),
      ]);
    case "nulls":
      return frames.map((frame) => ({ item_id: null, logprobs: null, part: null, ...frame }));
    default:
      return frames;
  }
}

/** Puts a failure among the events. */
function failed(
  frames: readonly object[],
  { at, message, recoverable }: Failure,
  { failure }: ResponsesForm,
): readonly object[] {
  const place = { start: 0, middle: Math.floor(frames.length / 2), end: frames.length - 1 }[at];
  const error = { code: recoverable ? "server_error" : "invalid_prompt", message };
  const forms: { readonly [form in ResponsesForm["failure"]]: object } = {
    "error": { type: "error", ...error, param: null },
    "response.failed": { type: "response.failed", response: { status: "failed", error, output: [] } },
    "status": { type: "response.completed", response: { status: "failed", error, output: [] } },
  };
  return [...frames.slice(0, place), forms[failure]];
}

/** Puts an event with a member of a wrong type before the others. */
function broken(frames: readonly object[], member: ResponsesForm["broken"], { one }: Chance): readonly object[] {
  const value = one<unknown>([7, true, member === "arguments" ? ["text"] : member === "item" ? "text" : 1.5]);
  const item = { type: "message", id: "b", content: value };
  const events: { readonly [member: string]: object } = {
    delta: { type: "response.output_text.delta", output_index: 99, delta: value },
    text: { type: "response.output_text.done", output_index: 99, text: value },
    item: { type: "response.output_item.done", output_index: 99, item: value },
    content: { type: "response.output_item.done", output_index: 99, item },
    arguments: { type: "response.function_call_arguments.done", output_index: 99, arguments: value },
    output: { type: "response.completed", response: { output: value } },
    usage: { type: "response.completed", response: { usage: value } },
  };
  return [events[member]!, ...frames];
}

/** Fails unless the next request contains the items as the server wrote them. */
function checkNext({ input }: Body, { blocks, files }: CanonicalResponse, form: ResponsesForm): void {
  const without = ({ id: _, ...item }: Body) => item;
  const sent = input.map(without);
  const ofType = (type: string) => sent.filter((item: Body) => item.type === type);
  const isDropped = blocks.at(-1)?.type === "reasoning"; // the API rejects reasoning that nothing follows
  const reasoning = blocks.filter((block) => block.type === "reasoning").map((block) => reasoningItem(block, form));
  if (!isDropped) assertEquals(ofType("reasoning"), reasoning);
  const calls = blocks.filter((block) => block.type === "call");
  assertEquals(
    ofType("function_call").map(({ arguments: _, ...call }: Body) => call),
    calls.map(({ name }, at) => ({ type: "function_call", call_id: `call_${at}`, name, ...carriedBy(at, form) })),
  );
  assertEquals(ofType("image_generation_call"), files.map(({ data }) => imageItem(data)));
  assertEquals(
    ofType("function_call_output").map((item: Body) => item.call_id),
    calls.map((_, at) => `call_${at}`),
  );
}
