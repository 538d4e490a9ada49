/**
 * Chat completions, as OpenAI and compatible servers stream them.
 *
 * @module
 */
import { openai } from "@jizai/jizai/model/openai";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CallBlock, type CanonicalResponse, inputText, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, type Rendered } from "./dialect.ts";

const aspects = {
  /** The member that holds the reasoning. */
  reasoning: ["reasoning_content", "reasoning"],
  /** The member that tells calls apart. */
  index: ["counted", "missing"],
  /** The chunk that carries the finish reason. */
  finish: ["its own chunk", "the last delta"],
  /** The name of the finish reason after calls. */
  calls: ["tool_calls", "stop"],
  /** The chunk that carries the usage. */
  usage: ["its own chunk", "with the finish reason", "in every chunk"],
  /** Members that the API does not document. */
  extras: ["none", "unknown members"],
} as const satisfies Aspects;

type ChatForm = Form<typeof aspects>;

/** A delta of a choice. */
type Delta = Readonly<Record<string, unknown>>;

const finishNames: Readonly<Record<string, string>> = { calls: "tool_calls", filter: "content_filter", other: "eos" };

/** The dialect. */
export const chatCompletions = dialect({
  name: "openai()",
  aspects,
  model: ({ fetch }) => openai({ model: "m", fetch: fetch! }),
  expected,
  render,
});

/** Reasoning precedes the text, which precedes the calls. A refusal is also the text of the answer. */
function expected(response: CanonicalResponse): CanonicalResponse {
  const { blocks, refusal, usage } = response;
  const joined = (type: "reasoning" | "text"): Block[] => {
    const text = blocks.map((block) => block.type === type ? block.text : "").join("");
    return text === "" ? [] : [{ type, text }];
  };
  const text: Block[] = refusal === undefined ? joined("text") : [{ type: "text", text: refusal }];
  const calls = blocks.filter(({ type }) => type === "call");
  const { cacheWrite: _, reasoning: __, ...counts } = usage ?? { input: 0, output: 0 };
  return { ...response, blocks: [...joined("reasoning"), ...text, ...calls], ...(usage && { usage: counts }) };
}

function render(response: CanonicalResponse, form: ChatForm, chance: Chance): Rendered {
  const { blocks, finish, usage, failure } = response;
  const deltas: Delta[] = blocks.flatMap((block) => deltasOf(block, response, form, chance));
  let index = 0;
  for (const block of blocks) if (block.type === "call") deltas.push(...callDeltas(block, index++, form, chance));
  deltas.push(...partDeltas(response));
  const reason = form.calls === "stop" && finish === "calls" ? "stop" : finishNames[finish] ?? finish;
  const finishReason = response.refusal === undefined ? reason : "stop";
  const chunks = chunksOf(deltas, finishReason, form);
  const counted = withUsage(chunks, usage && countsOf(usage), form);
  const all = form.extras === "none" ? counted : counted.map((chunk) => withExtras(chunk, chance));
  if (failure) return { frames: failedFrames(all, failure) };
  return { frames: [...all, "[DONE]"], checkNext: (body) => checkNext(body, response, form) };
}

/** Returns the deltas of reasoning and text. */
function deltasOf(block: Block, { refusal }: CanonicalResponse, form: ChatForm, chance: Chance): Delta[] {
  if (block.type === "call") return [];
  const field = block.type === "reasoning" ? form.reasoning : refusal === undefined ? "content" : "refusal";
  return piecesOf(block.text, chance).map((text) => ({ [field]: text }));
}

/** Returns the deltas of a call: its start, and its input in pieces. */
function callDeltas(block: CallBlock, at: number, form: ChatForm, chance: Chance): Delta[] {
  const index = form.index === "counted" ? { index: at } : {};
  const id = `call_${at}_${chance.below(1_000)}`;
  const begun = { ...index, id, type: "function", function: { name: block.name, arguments: "" } };
  const pieces = piecesOf(inputText(block, chance), chance);
  return [begun, ...pieces.map((text) => ({ ...index, function: { arguments: text } }))]
    .map((call) => ({ tool_calls: [call] }));
}

/** Returns the deltas of sources and files. */
function partDeltas({ sources, files }: CanonicalResponse): Delta[] {
  const annotations = sources.map((source) => ({
    type: "url_citation",
    url_citation: { start_index: 0, end_index: 0, ...source },
  }));
  const images = files.map(({ mediaType, data }) => ({
    type: "image_url",
    image_url: { url: `data:${mediaType};base64,${data}` },
  }));
  return [...annotations.length > 0 ? [{ annotations }] : [], ...images.length > 0 ? [{ images }] : []];
}

/** A chunk of the response. */
type Chunk = Readonly<Record<string, unknown>> & { readonly choices: readonly object[] };

function chunkOf(choices: readonly object[]): Chunk {
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "gpt-5", choices };
}

/** Puts deltas into chunks, and adds the finish reason. */
function chunksOf(deltas: readonly Delta[], reason: string, { finish }: ChatForm): readonly Chunk[] {
  const choice = (delta: Delta, finish_reason: string | null) => chunkOf([{ index: 0, delta, finish_reason }]);
  const first = { role: "assistant", content: "" };
  const all = finish === "its own chunk" ? [first, ...deltas, {}] : [first, ...deltas];
  return all.map((delta, at) => choice(delta, at === all.length - 1 ? reason : null));
}

/** Encodes token counts. */
function countsOf({ input, output, cached }: NonNullable<CanonicalResponse["usage"]>): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cached !== undefined && { prompt_tokens_details: { cached_tokens: cached } }),
  };
}

function withUsage(chunks: readonly Chunk[], usage: object | undefined, form: ChatForm): readonly Chunk[] {
  if (!usage) return chunks;
  switch (form.usage) {
    case "its own chunk":
      return [...chunks, { ...chunkOf([]), usage }];
    case "with the finish reason":
      return [...chunks.slice(0, -1), ...chunks.slice(-1).map((chunk) => ({ ...chunk, usage }))];
    case "in every chunk":
      return chunks.map((chunk) => ({ ...chunk, usage }));
  }
}

/** Adds members that no API documents. */
function withExtras(chunk: Chunk, { below }: Chance): Chunk {
  const vendor = {
    x_vendor: { nested: [null, below(9)] },
    service_tier: "default",
    provider: "Vendor",
    citations: null,
  };
  const choices = chunk.choices.map((choice) => ({
    native_finish_reason: "STOP",
    logprobs: null,
    ...choice,
    x_choice: [],
  }));
  return { ...chunk, ...vendor, choices };
}

/** Puts an error among the frames. */
function failedFrames(
  frames: readonly object[],
  { at, message, recoverable }: NonNullable<CanonicalResponse["failure"]>,
) {
  const error = { error: { message, type: recoverable ? "server_error" : "invalid_request_error", code: null } };
  const place = { start: 0, middle: Math.floor(frames.length / 2), end: frames.length - 1 }[at];
  return [...frames.slice(0, place), error, "[DONE]"];
}

/** Fails unless the next request contains the answer as the server wrote it. */
function checkNext({ messages }: Body, { blocks, files }: CanonicalResponse, form: ChatForm): void {
  const answer = messages.find(({ role }: { role: string }) => role === "assistant");
  const textOf = (type: Block["type"]) =>
    blocks.map((block) => block.type === type && "text" in block ? block.text : "").join("");
  const reasoning = textOf("reasoning");
  const calls = blocks.flatMap((block) =>
    block.type === "call" ? [[block.name, block.isCut ? "cut" : block.input]] : []
  );
  const notices = files.map(({ mediaType }) => `[You generated a file of type ${mediaType}]`);
  const content = [textOf("text"), ...notices].filter((text) => text !== "").join("\n");
  if (calls.length === 0 && content === "") return; // the API has no message of reasoning alone
  assertEquals(answer?.content, content);
  assertEquals(answer?.[form.reasoning] ?? "", reasoning);
  const sent = (answer?.tool_calls ?? []).map(({ function: fn }: Body, index: number) => {
    return [fn.name, calls[index]?.[1] === "cut" ? "cut" : JSON.parse(fn.arguments)];
  });
  assertEquals(sent, calls);
  const results = messages.filter(({ role }: { role: string }) => role === "tool");
  assertEquals(results.map((each: Body) => each.tool_call_id), (answer?.tool_calls ?? []).map(({ id }: Body) => id));
}
