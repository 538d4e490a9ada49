/**
 * Chat completions, as OpenAI and compatible servers stream them.
 *
 * @module
 */
import { openai } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import type { Block, CallBlock, CanonicalResponse, Failure } from "./canonical.ts";
import {
  callPieces,
  type Delta,
  extraOf,
  reasoningDeltas,
  reasoningItem,
  textDeltas,
  wholeCall,
} from "./chat_deltas.ts";
import { type Aspects, type Body, dialect, type Form, NamedFrame, type Rendered } from "./dialect.ts";

/** The aspects. A server that shows a quirk is named beside it. */
const aspects = {
  /** The members that hold the reasoning: text, items of a list, or both. */
  reasoning: [
    "reasoning_content",
    "reasoning", // Ollama, Groq, vLLM
    "reasoning_details", // OpenRouter, MiniMax
    "reasoning and reasoning_details", // OpenRouter
    "encrypted reasoning_details", // OpenRouter with Gemini and OpenAI: a signature without a text, after the calls
    "thinking_blocks", // LiteLLM with Claude: the item with the signature repeats the whole text
    "reasoning_content and thinking_blocks", // LiteLLM
    "parts of content", // Mistral
  ],
  /** The type of the content. */
  content: ["a string", "parts", "parts of unknown types"], // Mistral
  /** The member `index` of calls. */
  index: ["counted", "from 1", "missing", "zero", "null"], // Ollama, Gemini
  /** The member `id` of calls. */
  id: ["given", "missing", "empty", "numeric", "new in each delta", "in each delta", "the same for all"], // vLLM, Gemini
  /** The place of the name of a call. */
  name: ["at the start", "in a later chunk", "in each delta", "in pieces"], // vLLM
  /** The form of the input of a call. */
  arguments: [
    "in pieces",
    "a text",
    "an object", // llama.cpp
    "an empty text for no input",
    "an empty list for no input",
    "all so far in each piece", // Qianfan
  ],
  /** The form of `tool_calls`. */
  calls: ["one in a delta", "all in one delta", "an object"], // Ollama, Text Generation Inference
  /** The form in which calls are repeated after their deltas. */
  repeated: ["nothing", "each call", "each input", "a message"], // MiniMax
  /** The member that holds a delta. */
  delta: ["delta", "message", "delta and message"], // Perplexity: `message` holds all text so far
  /** The finish reason of a response with calls. */
  reason: ["tool_calls", "stop", "function_call", "tool_use"],
  /** The chunk that carries the finish reason. */
  finish: [
    "its own chunk",
    "the last delta", // Gemini
    "no chunk",
    "its own chunk, after null as text", // Qwen
    "its own chunk, after empty texts", // Ollama
    "its own chunk, after stop in each", // gcli2api
    "its own chunk, without a delta", // Azure
    "its own chunk, with null as its delta", // Azure
    "its own chunk, twice",
  ],
  /** The place of the usage. */
  usage: [
    "its own chunk",
    "with the finish reason",
    "in every chunk",
    "x_groq",
    "in the choice",
    "before an empty one",
    "its own chunk, with an empty delta", // OpenRouter
  ],
  /** The counts: the names of cached tokens and of cache writes, and whether the output includes the reasoning. */
  counts: ["as OpenAI", "as xAI", "as Perplexity", "as DeepSeek", "as LiteLLM", "without details"],
  /** The place of sources. */
  sources: ["annotations", "citations in every chunk", "search results"], // xAI, Perplexity
  /** The frame after the response. */
  done: ["[DONE]", "[DONE] with blanks", "[DONE] twice", "none"],
  /** The form of a failure. */
  failure: [
    "error",
    "error with a code",
    "error with a code as text",
    "error as text", // Text Generation Inference
    "finish reason",
    "finish reason and error", // OpenRouter
    "finish reason of a full server", // DeepSeek
    "error in the choice", // OpenRouter
    "detail", // FastAPI
    "only a message",
    "an event named error", // LM Studio
    "an event of text",
    "object", // vLLM
    "x_groq",
    "base_resp", // MiniMax
  ],
  /** The part of the answer with further data, which is sent back. */
  extra: ["none", "calls", "the answer"], // Gemini
  /** Content that the API does not document. */
  extras: [
    "none",
    "unknown members",
    "unknown chunks",
    "nulls",
    "empty lists and texts",
    "a second choice",
    "chunks of a filter", // Azure
    "the role in each delta",
  ],
  /** A member whose type the adapter cannot read. */
  broken: ["none", "content", "arguments", "name", "tool_calls", "delta", "finish_reason", "reasoning", "usage"],
} as const satisfies Aspects;

/** The form of a response. */
export type ChatForm = Form<typeof aspects>;

const finishNames: Readonly<Record<string, string>> = { filter: "content_filter", other: "eos" };

/** A chunk of a response. */
type Chunk = Readonly<Record<string, unknown>>;

/** The dialect. */
export const chatCompletions = dialect({
  name: "openai()",
  aspects,
  model: ({ fetch }) => openai({ model: "m", fetch: fetch! }),
  concerns: {
    reasoning: has("reasoning"),
    content: has("text"),
    index: has("call"),
    id: has("call"),
    name: has("call"),
    arguments: has("call"),
    calls: has("call"),
    repeated: has("call"),
    reason: has("call"),
    extra: has("call"),
    usage: ({ usage, failure }) => usage !== undefined && !failure,
    counts: ({ usage, failure }) => usage?.reasoning !== undefined && !failure,
    sources: ({ sources, failure }) => sources.length > 0 && !failure,
    failure: ({ failure }) => failure !== undefined,
    broken: ({ failure }) => !failure,
  },
  settle,
  expected,
  render,
});

/** Returns a function that is true for a complete response with a block of a type. */
function has(type: Block["type"]): (response: CanonicalResponse) => boolean {
  return ({ blocks, failure, finish }) =>
    !failure && finish !== "filter" && blocks.some((block) => block.type === type);
}

/** Replaces quirks that together leave no sign which call a piece belongs to. Names and whole inputs tell calls apart where nothing else does. */
function settle(form: ChatForm, { blocks, finish, failure }: CanonicalResponse): ChatForm {
  const settled: { -readonly [aspect in keyof ChatForm]: ChatForm[aspect] } = { ...form };
  const hasCut = blocks.some((block) => block.type === "call" && block.isCut);
  if (hasCut) settled.index = "counted";
  if (hasCut && form.arguments === "an empty text for no input") settled.arguments = "a text"; // it may be incomplete
  const isCounted = settled.index === "counted" || settled.index === "from 1";
  const hasIds = /^given|numeric|each/.test(form.id);
  if (!isCounted && !hasIds && /^an empty/.test(form.arguments)) settled.arguments = "a text";
  if (!isCounted && form.id === "the same for all" && form.arguments === "an object") settled.arguments = "a text";
  const isGrowing = form.arguments === "all so far in each piece";
  if (isGrowing && (!isCounted && form.id !== "in each delta")) settled.arguments = "in pieces";
  if (form.calls === "all in one delta" && /pieces?$/.test(settled.arguments)) settled.arguments = "a text";
  const needed = {
    "at the start": true,
    "in a later chunk": isCounted,
    "in each delta": form.id !== "new in each delta",
  };
  const isNamed = form.name === "in pieces" ? isCounted && form.id === "given" : needed[form.name];
  if (!isNamed || settled.arguments !== "in pieces") settled.name = "at the start";
  if (form.delta !== "delta" || hasCut || isGrowing || (form.repeated === "each call" && !hasIds)) {
    settled.repeated = "nothing";
  }
  if (form.repeated === "each call" && form.id === "new in each delta") settled.repeated = "nothing";
  if (form.repeated === "each input" && !isCounted && form.id !== "in each delta") settled.repeated = "nothing";
  if (form.finish === "no chunk" && finish !== "stop" && finish !== "calls") settled.finish = "its own chunk";
  if (settled.finish === "no chunk") settled.done = "[DONE]";
  if (failure) settled.broken = "none";
  return settled;
}

/** Reasoning precedes the text, which precedes the calls. A refusal is also the text of the answer. */
function expected(response: CanonicalResponse, form: ChatForm): CanonicalResponse {
  const { blocks, refusal, usage, sources, failure } = response;
  const text = blocks.map((block) => block.type === "text" ? block.text : "").join("");
  const written = refusal ?? text;
  const { input = 0, output = 0, ...details } = usage ?? {};
  const { cached, cacheWrite, reasoning } = { ...details, ...hidden[form.counts] };
  return {
    ...response,
    blocks: [
      ...blocks.flatMap((block) => block.type === "reasoning" ? [reasoningOf(block, form)] : []),
      ...written === "" ? [] : [{ type: "text", text: written } as const],
      ...blocks.filter(({ type }) => type === "call"),
    ],
    sources: form.sources === "citations in every chunk"
      ? sources.map(({ url }) => ({ url, title: undefined }))
      : sources,
    ...(usage && {
      usage: {
        input,
        output,
        ...(cached !== undefined && { cached }),
        ...(cacheWrite !== undefined && { cacheWrite }),
        ...(reasoning !== undefined && { reasoning }),
      },
    }),
    ...(failure && { failure: { ...failure, recoverable: failure.recoverable || !hasKind.test(form.failure) } }),
  };
}

/** The counts that a form does not tell. */
const hidden = {
  "as OpenAI": {},
  "as xAI": { cacheWrite: undefined },
  "as Perplexity": { cached: undefined, cacheWrite: undefined },
  "as DeepSeek": { cacheWrite: undefined },
  "as LiteLLM": {},
  "without details": { cached: undefined, cacheWrite: undefined, reasoning: undefined },
};

/** Matches the forms of failures that tell whether the same request may succeed later. */
const hasKind = /^error$|^error as text|code|and error|in the choice|named|object/;

/** Returns reasoning as a form shows it. Gateways send a signature with each block. */
function reasoningOf(block: Block & { readonly type: "reasoning" }, { reasoning }: ChatForm): Block {
  const signature = block.signature ?? "c2ln";
  if (reasoning === "encrypted reasoning_details") return { type: "reasoning", text: "", signature };
  return reasoning.includes("_blocks") ? { ...block, signature } : block;
}

function render(response: CanonicalResponse, form: ChatForm, chance: Chance): Rendered {
  const { blocks, finish, usage, failure, refusal } = response;
  const calls = blocks.filter((block) => block.type === "call");
  const reasoning = blocks.filter((block) => block.type === "reasoning")
    .flatMap((block, index) => reasoningDeltas(block, index, form, chance));
  const texts = blocks.filter((block) => block.type === "text")
    .flatMap(({ text }) => textDeltas(text, refusal !== undefined, form, chance));
  const pieces = callPieces(calls, form, chance)
    .map((pieces) => ({ tool_calls: form.calls === "an object" ? pieces[0] : pieces }));
  const isLate = form.reasoning === "encrypted reasoning_details";
  const deltas: Delta[] = isLate ? [...texts, ...pieces, ...reasoning] : [...reasoning, ...texts, ...pieces];
  const whole = { tool_calls: calls.map((call, at) => wholeCall(call, at, form)) };
  if (form.repeated.startsWith("each") && calls.length > 0) deltas.push(whole);
  if (form.extra === "the answer") deltas.push({ content: "", extra_content: extraOf("answer") });
  deltas.push(...partDeltas(response, form));
  const name = refusal !== undefined ? "stop" : finish === "calls" ? form.reason : finishNames[finish] ?? finish;
  const counted = withUsage(chunksOf(deltas, name, form), usage && countsOf(usage, form), form);
  if (form.repeated === "a message") {
    const content = blocks.map((block) => block.type === "text" ? block.text : "").join("");
    counted.push(chunkOf([{ index: 0, message: { role: "assistant", content, ...calls.length > 0 && whole } }]));
  }
  const chunks = withExtras(withSources(counted, response, form), form, chance);
  if (failure) return failed(chunks, failure, form);
  if (form.broken !== "none") {
    return { frames: broken(chunks, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  const hasUnknown = form.content === "parts of unknown types" && refusal === undefined && texts.length > 0;
  return {
    frames: [...chunks, ...doneFrames[form.done]],
    warnings: (hasUnknown ? 1 : 0) + (form.extras === "a second choice" ? 1 : 0),
    checkNext: (body) => checkNext(body, response, form),
  };
}

/** The frames after a response. */
const doneFrames = {
  "[DONE]": ["[DONE]"],
  "[DONE] with blanks": [" [DONE]  "],
  "[DONE] twice": ["[DONE]", "[DONE]"],
  "none": [],
};

/** Returns the deltas of sources and files. */
function partDeltas({ sources, files }: CanonicalResponse, form: ChatForm): readonly Delta[] {
  const annotations = sources.map((source) => ({ type: "url_citation", url_citation: { start_index: 0, ...source } }));
  const images = files.map(({ mediaType, data }) => ({ image_url: { url: `data:${mediaType};base64,${data}` } }));
  return [
    ...form.sources === "annotations" && annotations.length > 0 ? [{ annotations }] : [],
    ...images.length > 0 ? [{ images }] : [],
  ];
}

function chunkOf(choices: readonly object[]): Chunk {
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-5", choices };
}

/** Puts deltas into chunks, and adds the finish reason. */
function chunksOf(deltas: readonly Delta[], reason: string, { finish, delta: place }: ChatForm): Chunk[] {
  const all = [{ role: "assistant", content: "" }, ...deltas, ...finish === "the last delta" ? [] : [{}]];
  const early: { readonly [finish: string]: string } = {
    "its own chunk, after null as text": "null",
    "its own chunk, after empty texts": "",
    "its own chunk, after stop in each": "stop",
  };
  const noReason = early[finish] ?? null;
  let text = "";
  const chunks = all.map((delta, at) => {
    const isLast = at === all.length - 1;
    if ("content" in delta && typeof delta.content === "string") text += delta.content;
    const bare = { "its own chunk, without a delta": {}, "its own chunk, with null as its delta": { delta: null } };
    const member = {
      delta: { delta },
      message: { message: delta },
      "delta and message": { delta, message: { content: text } },
    };
    return chunkOf([{
      index: 0,
      ...isLast ? bare[finish as keyof typeof bare] ?? member[place] : member[place],
      ...finish !== "no chunk" && { finish_reason: isLast ? reason : noReason },
    }]);
  });
  return finish === "its own chunk, twice" ? [...chunks, chunks.at(-1)!] : chunks;
}

/** Encodes token counts. */
function countsOf(usage: NonNullable<CanonicalResponse["usage"]>, { counts }: ChatForm): object {
  const { input, output, cached = 0, cacheWrite = 0, reasoning = 0 } = usage;
  const isBeside = counts === "as xAI" || counts === "as Perplexity";
  const base = {
    prompt_tokens: input,
    completion_tokens: isBeside ? output - reasoning : output,
    total_tokens: input + output,
  };
  const completion_tokens_details = { reasoning_tokens: reasoning };
  const prompt_tokens_details = { cached_tokens: cached };
  switch (counts) {
    case "as OpenAI":
      return {
        ...base,
        prompt_tokens_details: { ...prompt_tokens_details, cache_write_tokens: cacheWrite },
        completion_tokens_details,
      };
    case "as xAI":
      return { ...base, prompt_tokens_details, completion_tokens_details };
    case "as Perplexity":
      return { ...base, reasoning_tokens: reasoning, citation_tokens: 3, prompt_tokens_details: null };
    case "as DeepSeek":
      return { ...base, prompt_cache_hit_tokens: cached, completion_tokens_details };
    case "as LiteLLM":
      return { ...base, prompt_tokens_details, cache_creation_input_tokens: cacheWrite, completion_tokens_details };
    case "without details":
      return { ...base, prompt_tokens_details: [], completion_tokens_details: null };
  }
}

function withUsage(chunks: readonly Chunk[], usage: object | undefined, form: ChatForm): Chunk[] {
  if (!usage) return [...chunks];
  const last = chunks.at(-1)!;
  const before = chunks.slice(0, -1);
  switch (form.usage) {
    case "its own chunk":
      return [...chunks, { ...chunkOf([]), usage }];
    case "its own chunk, with an empty delta":
      return [...chunks, {
        ...chunkOf([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
        usage,
      }];
    case "before an empty one":
      return [...chunks, { ...chunkOf([]), usage }, { ...chunkOf([]), usage: {} }];
    case "with the finish reason":
      return [...before, { ...last, usage }];
    case "in every chunk":
      return chunks.map((chunk) => ({ ...chunk, usage }));
    case "x_groq":
      return [...before, { ...last, x_groq: { id: "req_1", usage } }];
    case "in the choice":
      return [...before, { ...last, choices: (last.choices as object[]).map((choice) => ({ ...choice, usage })) }];
  }
}

/** Adds sources that are not in a delta. */
function withSources(chunks: readonly Chunk[], { sources }: CanonicalResponse, form: ChatForm): readonly Chunk[] {
  const citations = sources.map(({ url }) => url);
  if (form.sources === "annotations" || citations.length === 0) return chunks;
  if (form.sources === "citations in every chunk") return chunks.map((chunk) => ({ ...chunk, citations }));
  const results = sources.map((source) => ({ ...source, date: null }));
  return chunks.map((chunk, at) => at === chunks.length - 1 ? { ...chunk, citations, search_results: results } : chunk);
}

/** Adds content that the API does not document. */
function withExtras(chunks: readonly Chunk[], { extras }: ChatForm, { one, below }: Chance): readonly Chunk[] {
  const nulls = { content: null, refusal: null, tool_calls: null, reasoning: null, audio: null, annotations: null };
  switch (extras) {
    case "none":
      return chunks;
    case "unknown members":
      return chunks.map((chunk) => ({
        x_vendor: { nested: [null, below(9)] },
        provider: "Vendor",
        ...withChoice(chunk, (choice) => ({ native_finish_reason: "STOP", stop_reason: 7, ...choice })),
      }));
    case "empty lists and texts": {
      const empty = { content: "", tool_calls: [], reasoning_content: "", annotations: [], images: [], refusal: "" };
      return chunks.map((chunk) => ({
        ...{ citations: [], search_results: [], service_tier: "" },
        ...withChoice(chunk, ({ delta, ...choice }) => ({ ...choice, ...delta && { delta: { ...empty, ...delta } } })),
      }));
    }
    case "the role in each delta":
      return chunks.map((chunk) =>
        withChoice(chunk, ({ delta, ...choice }) => ({
          ...choice,
          ...delta && { delta: { role: "assistant", ...delta } },
        }))
      );
    case "chunks of a filter": {
      const results = { hate: { filtered: false, severity: "safe" } };
      const filter = { content_filter_results: results, content_filter_offsets: { check_offset: 44 } };
      const first = { id: "", object: "", model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] };
      const last = {
        id: "",
        object: "",
        model: "",
        choices: [{ index: 0, finish_reason: null, ...filter }],
        usage: null,
      };
      return [first, ...chunks.flatMap((chunk, at) => at % 2 === 0 ? [chunk, last] : [chunk])];
    }
    case "nulls":
      return chunks.map((chunk) => ({
        ...{ usage: null, system_fingerprint: null, citations: null, x_groq: null },
        ...withChoice(
          chunk,
          ({ delta, ...choice }) => ({ logprobs: null, ...choice, ...delta && { delta: { ...nulls, ...delta } } }),
        ),
      }));
    case "unknown chunks":
      return chunks.flatMap((chunk) => [
        chunk,
        ...one<Chunk[]>([[], [{ type: "heartbeat" }], [chunkOf([])], [{ choices: null }], [{
          type: "info",
          message: "queued",
        }]]),
      ]);
    case "a second choice":
      return chunks.map((chunk, at) => {
        const second = { index: 1, delta: { content: "second" }, finish_reason: null };
        return at === 0 ? { ...chunk, choices: [...chunk.choices as object[], second] } : chunk;
      });
  }
}

/** Changes the choice of a chunk, if there is one. */
function withChoice(chunk: Chunk, change: (choice: { readonly delta?: object }) => object): Chunk {
  return { ...chunk, choices: (chunk.choices as object[]).map(change) };
}

/** Puts a failure among the chunks. */
function failed(chunks: readonly Chunk[], { at, message, recoverable }: Failure, form: ChatForm): Rendered {
  const place = { start: 0, middle: Math.floor(chunks.length / 2), end: chunks.length - 1 }[at];
  const code = recoverable ? 502 : 400;
  const type = recoverable ? "server_error" : "invalid_request_error";
  const ended = (reason: string, more: object = {}) =>
    chunkOf([{ index: 0, delta: { content: "" }, finish_reason: reason, ...more }]);
  const error = { error: { code, message, metadata: { provider_name: "Vendor" } } };
  const forms: { readonly [form in ChatForm["failure"]]: object } = {
    "error": { error: { message, type, code: null } },
    "error with a code": error,
    "error with a code as text": { error: { message, code: `${code}` } },
    "error as text": { error: message, error_type: recoverable ? "overloaded" : "validation" },
    "finish reason": ended("error"),
    "finish reason and error": { ...ended("error"), ...error },
    "finish reason of a full server": ended("insufficient_system_resource"),
    "error in the choice": chunkOf([{
      index: 0,
      message: { role: "assistant", content: null },
      finish_reason: "error",
      ...error,
    }]),
    "detail": { detail: message },
    "only a message": { message },
    "an event named error": new NamedFrame("error", { message, code }),
    "an event of text": new NamedFrame("error", message),
    "object": { object: "error", message, type: recoverable ? "InternalServerError" : "BadRequestError", code },
    "x_groq": { ...ended("stop"), x_groq: { id: "req_1", error: message } },
    "base_resp": { ...chunkOf([]), choices: null, base_resp: { status_code: 1_008, status_msg: message } },
  };
  const frames = [...chunks.slice(0, place), forms[form.failure], "[DONE]"];
  return form.failure.startsWith("finish reason") && !form.failure.endsWith("error")
    ? { frames, lost: /finish reason "/ }
    : { frames };
}

/** Puts a chunk with a member of a wrong type among the chunks. */
function broken(chunks: readonly Chunk[], member: ChatForm["broken"], { below, one }: Chance): Rendered["frames"] {
  const value = one<unknown>([7, true, member === "tool_calls" || member === "delta" ? "text" : { nested: "text" }]);
  const call = (fn: object) => ({ delta: { tool_calls: [{ index: 9, id: "call_9", function: fn }] } });
  const choices: { readonly [member: string]: object } = {
    arguments: call({ name: "weather", arguments: 7 }),
    name: call({ name: value, arguments: "{}" }),
    delta: { delta: value },
    finish_reason: { delta: {}, finish_reason: value },
  };
  const chunk = member === "usage"
    ? { ...chunkOf([]), usage: "text" }
    : chunkOf([choices[member] ?? { delta: { [member]: value } }]);
  const at = below(chunks.length);
  return [...chunks.slice(0, at), chunk, ...chunks.slice(at), "[DONE]"];
}

/** Fails unless the next request contains the answer as the server wrote it. */
function checkNext({ messages }: Body, { blocks, files }: CanonicalResponse, form: ChatForm): void {
  const answer = messages.find(({ role }: Body) => role === "assistant");
  const text = blocks.map((block) => block.type === "text" ? block.text : "").join("");
  const calls = blocks.filter((block) => block.type === "call");
  const notices = files.map(({ mediaType }) => `[You generated a file of type ${mediaType}]`);
  const written = [text, ...notices].filter((text) => text !== "").join("\n");
  if (calls.length === 0 && written === "") return; // the API has no message of reasoning alone
  const reasoning = blocks.filter((block) => block.type === "reasoning");
  const thought = reasoning.map(({ text }) => text).join("");
  const isPart = form.reasoning === "parts of content" && thought !== "";
  const parts = [
    { type: "thinking", thinking: [{ type: "text", text: thought }] },
    ...written === "" ? [] : [{ type: "text", text: written }],
  ];
  assertEquals(answer.content, isPart ? parts : written);
  assertEquals(answer.extra_content, form.extra === "the answer" ? extraOf("answer") : undefined);
  const items = reasoning.map((block, index) => reasoningItem(block, index, form));
  for (const name of ["reasoning_content", "reasoning"]) {
    const isSent = form.reasoning.split(" and ").includes(name) && thought !== "";
    assertEquals([name, answer[name]], [name, isSent ? thought : undefined]);
  }
  for (const name of ["reasoning_details", "thinking_blocks"]) {
    assertEquals([name, answer[name]], [name, form.reasoning.includes(name) && items.length > 0 ? items : undefined]);
  }
  checkCalls(messages, answer.tool_calls ?? [], calls, form);
}

/** Fails unless the calls are sent back with the ids of the server, if it gave any, and each has its result. */
function checkCalls(messages: Body, sent: Body, calls: readonly CallBlock[], form: ChatForm): void {
  assertEquals(
    sent.map(({ function: fn }: Body, at: number) => [fn.name, calls[at]?.isCut ? "cut" : JSON.parse(fn.arguments)]),
    calls.map(({ name, input, isCut }) => [name, isCut ? "cut" : input]),
  );
  const ids: string[] = sent.map(({ id }: Body) => id);
  assertEquals(
    sent.map((call: Body) => call.extra_content),
    calls.map((_, at) => form.extra === "calls" ? extraOf(at) : undefined),
  );
  assertEquals(new Set(ids).size, ids.length);
  if (form.id === "given" || form.id === "in each delta") assertEquals(ids, calls.map((_, at) => `call_${at}`));
  if (form.id === "numeric") assertEquals(ids, calls.map((_, at) => `${7 + at}`));
  const results = messages.filter(({ role }: Body) => role === "tool");
  assertEquals(results.map((each: Body) => each.tool_call_id), ids);
}
