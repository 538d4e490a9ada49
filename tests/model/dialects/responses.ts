/**
 * The Responses API, as OpenAI and compatible servers stream it.
 *
 * @module
 */
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CallBlock, type CanonicalResponse, type Failure, inputText, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, NamedFrame, type Rendered } from "./dialect.ts";

const aspects = {
  /** The place of texts. */
  text: ["deltas", "output_text.done", "content_part.done", "the item", "the response"],
  /** The place of reasoning. */
  reasoning: ["summary", "content", "content with null as its summary", "only in ended parts", "only in the item"], // vLLM
  /** The place and the form of the input of a call. */
  arguments: ["deltas", "the end", "an object at the end", "the added item", "the item", "an object in the item"],
  /** Whether an item is announced. */
  added: ["announced", "only done", "all announced at first"], // LiteLLM
  /** The ids of items: some gateways change them between the events of an item. */
  ids: ["given", "missing", "changed", "new in each event", "others in the response"], // GitHub Copilot, LiteLLM, vLLM
  /** The numbers of items. */
  index: ["counted", "missing", "zero"],
  /** The items of the response that ends the stream. */
  output: ["none", "all", "only there"],
  /** The status of items that have ended. */
  status: ["completed", "missing", "in_progress", "null"], // OmniRoute
  /** The events before the content. */
  opening: ["created", "none", "twice", "in progress without a response", "queued"], // OmniRoute
  /** The event after the content. */
  end: ["completed", "done", "completed and [DONE]", "completed twice", "completed without a status"], // LiteLLM, LM Studio
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
  failure: [
    "error",
    "an error in an object", // OpenAI
    "an error without a type", // Llama Stack
    "a chunk of chat completions", // OmniRoute
    "an event named error",
    "response.failed",
    "status",
  ],
  /** Content that the API does not document. */
  extras: [
    "none",
    "unknown members",
    "unknown events",
    "an unknown item",
    "unknown content",
    "nulls",
    "an empty message that is only ended", // LiteLLM
  ],
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
    status: has("call"),
    failure: ({ failure }) => failure !== undefined,
    broken: ({ failure }) => !failure,
  },
  settle: (form, { blocks, failure, finish }) => ({
    ...form,
    ...blocks.some((block) => block.type === "call" && block.isCut) &&
      { output: "none", arguments: "deltas", added: "announced" },
    ...failure && { client: "none", broken: "none" },
    ...form.extras === "an empty message that is only ended" && { ids: "given" }, // nothing else tells it from others
    ...form.added === "all announced at first" && form.ids !== "given" && { index: "counted" },
    ...form.end === "completed without a status" && finish !== "stop" && finish !== "calls" && { end: "completed" },
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
  const all = items.map(({ item, block }, at) => eventsOf(item, block, at, form, chance));
  const isEarly = (event: object) => Object(event).type === "response.output_item.added";
  const frames = form.added === "all announced at first"
    ? [...all.flat().filter(isEarly), ...all.flat().filter((event) => !isEarly(event))]
    : all.flat();
  const isWhole = finish === "stop" || finish === "calls" || refusal !== undefined;
  const reasons: Readonly<Record<string, string>> = { length: "max_output_tokens", filter: "content_filter" };
  const end = {
    status: isWhole ? "completed" : "incomplete",
    error: null,
    incomplete_details: isWhole ? null : { reason: reasons[finish] ?? "other" },
    output: form.output !== "none" || form.text === "the response"
      ? items.map(({ item }, at) => finalItem(item, at, form))
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
  const last = { type: `response.${form.end === "done" ? "done" : end.status}`, response: end };
  const { status: _, ...withoutStatus } = end;
  const ends = {
    "completed": [last],
    "done": [last],
    "completed and [DONE]": [last, "[DONE]"],
    "completed twice": [last, last],
    "completed without a status": [{ ...last, response: withoutStatus }],
  };
  const created = { type: "response.created", response: { status: "in_progress", output: [] } };
  const openings = {
    "created": [created],
    "none": [],
    "twice": [created, created],
    "in progress without a response": [{ type: "response.in_progress" }, created],
    "queued": [{ type: "response.queued", response: { status: "queued" } }, created],
  };
  const opened = [...openings[form.opening], ...frames];
  if (failure) {
    return { frames: withExtras(failed([...opened, last], failure, form), form, chance) };
  }
  const sent = withExtras([...opened, ...ends[form.end]], form, chance);
  if (form.broken !== "none") {
    return { frames: broken(sent, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  return {
    frames: sent,
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
  if (form.reasoning === "content with null as its summary") {
    return { type: "reasoning", summary: null, content: [{ type: "reasoning_text", text }], ...encrypted };
  }
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
    ...call.isCut ? { status: "incomplete" } : statusOf(form),
    ...carriedBy(at, form),
  };
}

function statusOf({ status }: ResponsesForm): object {
  return status === "missing" ? {} : { status: status === "null" ? null : status };
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
  const ids = {
    given: `item_${at}`,
    missing: undefined,
    changed: `item_${at}_end`,
    "new in each event": `item_${at}_end_${item.status}`,
    "others in the response": `item_${at}`,
  };
  const id = ids[form.ids];
  return { ...id !== undefined && { id }, ...item };
}

/** Returns an item as the response at the end contains it. vLLM parses the text of the model again for it, and makes new ids. */
function finalItem(item: Item, at: number, form: ResponsesForm): Item {
  if (form.ids !== "others in the response") return wholeItem(item, at, form);
  const isOther = form.output !== "only there" && item.type === "function_call";
  return { ...item, id: `final_${at}`, ...isOther && { call_id: `final_call_${at}` } };
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
  let events = 0;
  const newId = () => {
    const ids = {
      given: `item_${at}`,
      missing: undefined,
      changed: `item_${at}_delta`,
      "new in each event": `item_${at}_delta_${events++}`,
      "others in the response": `item_${at}`,
    };
    const id = ids[form.ids];
    return id !== undefined && { item_id: id };
  };
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
    ...block ? contentEvents(item, block, form, chance).map((event) => ({ ...number, ...newId(), ...event })) : [],
    ...isUnfinished || isCut ? [] : [{ type: "response.output_item.done", ...number, item: wholeItem(done, at, form) }],
  ];
}

/** Returns the events of the content of an item. */
function contentEvents(item: Item, block: Block, form: ResponsesForm, chance: Chance): readonly object[] {
  if (block.type === "call") return inputEvents(item, block, form, chance);
  const { text } = block;
  if (block.type === "reasoning") {
    if (form.reasoning === "only in the item") return [];
    if (form.reasoning === "only in ended parts") {
      return [{ type: "response.reasoning_summary_part.done", summary_index: 0, part: { type: "summary_text", text } }];
    }
    const isContent = form.reasoning.startsWith("content");
    const type = isContent ? "response.reasoning_text" : "response.reasoning_summary_text";
    const place = isContent ? { content_index: 0 } : { summary_index: 0 };
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
  const events = {
    "deltas": [...deltas, end],
    "output_text.done": [end],
    "content_part.done": [{ type: "response.content_part.done", content_index: 0, part }],
    "the item": [],
    "the response": [],
  };
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

function withExtras(
  frames: readonly (object | string)[],
  { extras }: ResponsesForm,
  { below, one }: Chance,
): readonly (object | string)[] {
  const withMembers = (members: (at: number) => object) =>
    frames.map((frame, at) =>
      typeof frame === "string" || frame instanceof NamedFrame ? frame : { ...members(at), ...frame }
    );
  switch (extras) {
    case "unknown members":
      return withMembers((at) => ({ sequence_number: at, obfuscation: "x".repeat(below(9)), x_vendor: [{}] }));
    case "an empty message that is only ended": {
      const [item_id, output_index] = ["chatcmpl-1", 77];
      const part = { type: "output_text", text: "", annotations: [] };
      const item = { id: item_id, type: "message", role: "assistant", status: "completed", content: [part] };
      return [
        { type: "response.output_text.done", item_id, output_index, content_index: 0, text: "" },
        { type: "response.content_part.done", item_id, output_index, content_index: 0, part },
        { type: "response.output_item.done", output_index, item },
        ...frames,
      ];
    }
    case "unknown events":
      return frames.flatMap((frame) => [
        frame,
        ...one<object[]>([[], [{ type: "keepalive" }], [{ type: "response.x_vendor", response: { id: 1 } }], [{}]]),
      ]);
    case "nulls":
      return withMembers(() => ({ item_id: null, logprobs: null, part: null, error: null, message: null }));
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
    "an error in an object": { type: "error", sequence_number: 2, error: { ...error, type: error.code, param: null } },
    "an error without a type": { error },
    "a chunk of chat completions": {
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: {}, finish_reason: "error" }],
      error: { message, type: "upstream_error", code: recoverable ? 500 : 400 },
    },
    "an event named error": new NamedFrame("error", { error }),
    "response.failed": { type: "response.failed", response: { status: "failed", error, output: [] } },
    "status": { type: "response.completed", response: { status: "failed", error, output: [] } },
  };
  return [...frames.slice(0, place), forms[failure]];
}

/** Puts an event with a member of a wrong type before the others. */
function broken(
  frames: readonly (object | string)[],
  member: ResponsesForm["broken"],
  { one }: Chance,
): readonly (object | string)[] {
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
