/**
 * The Gemini API, as Google and its proxies stream it.
 *
 * @module
 */
import type { Json } from "@jizai/jizai";
import { gemini } from "@jizai/jizai/model/gemini";
import { assertEquals } from "@std/assert";
import type { Chance } from "../../support/seeded.ts";
import { type Block, type CallBlock, type CanonicalResponse, type Failure, piecesOf } from "./canonical.ts";
import { type Aspects, type Body, dialect, type Form, type Rendered } from "./dialect.ts";

const aspects = {
  /** The form of the input of a call. */
  args: ["an object", "in pieces", "a text", "missing if empty", "null if empty"],
  /** The form of a call within which the response ends. */
  cut: ["an empty input", "no pieces", "pieces"],
  /** The ids of calls. */
  ids: ["given", "missing", "the same for all"],
  /** The place of the signature of the response. */
  signature: ["none", "on the calls", "on an empty text", "on the last piece of text"], // AIClient2API
  /** The frames of the parts. */
  frames: ["one for each part", "one for all parts", "the last one has parts"],
  /** The finish reason of the frames before the last one. */
  reason: ["none", "STOP", "FINISH_REASON_UNSPECIFIED"], // Vertex AI, gcli2api
  /** The content of the last frame. */
  last: ["missing", "null", "without parts", "parts that are null", "an empty text"],
  /** The frame after the last one. */
  done: ["none", "[DONE]"], // 9router
  /** A tool that the server ran. */
  ran: ["none", "code", "failed code", "code with ids"],
  /** The place of the usage. */
  usage: ["at the end", "in every frame", "grows", "in a frame of its own"],
  /** Content that the API does not document. */
  extras: ["none", "unknown members", "unknown frames", "an unknown part", "nulls"],
  /** A member whose type the adapter cannot read. */
  broken: ["none", "candidates", "content", "parts", "text", "functionCall", "args", "finishReason", "usageMetadata"],
} as const satisfies Aspects;

type GeminiForm = Form<typeof aspects>;

/** The dialect. */
export const generateContent = dialect({
  name: "gemini()",
  aspects,
  model: ({ fetch }) => gemini({ model: "gemini-3-flash", fetch: fetch! }),
  concerns: {
    args: has("call"),
    cut: ({ blocks, failure }) => !failure && blocks.some((block) => block.type === "call" && block.isCut),
    ids: has("call"),
    signature: ({ failure, finish, blocks }) => !failure && finish !== "filter" && blocks.length > 1,
    ran: ({ failure }) => !failure,
    usage: ({ usage, failure }) => usage !== undefined && !failure,
    broken: ({ failure }) => !failure,
  },
  settle: (form, { failure, blocks }) => ({
    ...form,
    ...failure && { broken: "none" },
    ...form.frames === "the last one has parts" && { last: "missing" },
    ...blocks.some((block) => block.type === "call" && block.isCut) && { reason: "none" },
  }),
  expected,
  render,
});

function has(type: Block["type"]): (response: CanonicalResponse) => boolean {
  return ({ blocks, failure, finish }) =>
    !failure && finish !== "filter" && blocks.some((block) => block.type === type);
}

/** A refusal is one of the provider: its filter ends the response. */
function expected(response: CanonicalResponse): CanonicalResponse {
  const { finish, refusal, usage } = response;
  return {
    ...response,
    ...(finish === "filter" || finish === "refusal") && { finish: "filter", refusal: refusal ?? "" },
    ...usage && { usage: withoutCacheWrite(usage) },
  };
}

/** The API does not count cache writes. */
function withoutCacheWrite({ cacheWrite: _, ...usage }: NonNullable<CanonicalResponse["usage"]>) {
  return usage;
}

const reasons: Readonly<Record<string, string>> = {
  stop: "STOP",
  calls: "STOP",
  length: "MAX_TOKENS",
  filter: "SAFETY",
  other: "OTHER",
};

function render(response: CanonicalResponse, form: GeminiForm, chance: Chance): Rendered {
  const { blocks, files, sources, finish, usage, failure, refusal } = response;
  let calls = 0;
  const unknown = form.extras === "an unknown part" ? [{ hologram: { data: "x" } }] : [];
  const ran = ranParts[form.ran];
  const parts = [
    ...unknown,
    ...ran,
    ...files.map(({ mediaType, data }) => ({ inlineData: { mimeType: mediaType, data } })),
    ...blocks.flatMap((block): readonly object[] => {
      if (block.type === "call") return callParts(block, calls++, form, chance);
      const thought = block.type === "reasoning" && { thought: true };
      const signature = block.type === "reasoning" && block.signature !== undefined
        ? [{ text: "", thought: true, thoughtSignature: block.signature }]
        : [];
      const pieces = piecesOf(block.text, chance).map((text) => ({ text, ...thought }));
      const isSigned = block.type === "text" && form.signature === "on the last piece of text" && pieces.length > 0;
      return [
        ...isSigned ? [...pieces.slice(0, -1), { ...pieces.at(-1), thoughtSignature: "text sig" }] : pieces,
        ...signature,
      ];
    }),
    ...form.signature === "on an empty text" ? [{ text: "", thoughtSignature: "end sig" }] : [],
  ];
  const counts = usage && { usageMetadata: countsOf(usage) };
  const early = form.reason === "none" ? {} : { finishReason: form.reason };
  const groups = form.frames === "one for each part" ? parts.map((part) => [part]) : [parts];
  const isLast = form.frames === "the last one has parts";
  const chunks = (isLast ? [] : groups).map((parts, at) => ({
    candidates: [{ index: 0, content: { role: "model", parts }, ...early }],
    ...form.usage === "in every frame" && counts,
    ...form.usage === "grows" && usage &&
      { usageMetadata: countsOf({ ...usage, output: (usage.reasoning ?? 0) + at }) },
  }));
  const groundingMetadata = { groundingChunks: sources.map(({ url, title }) => ({ web: { uri: url, title } })) };
  const contents = {
    "missing": {},
    "null": { content: null },
    "without parts": { content: { role: "model" } },
    "parts that are null": { content: { role: "model", parts: null } },
    "an empty text": { content: { role: "model", parts: [{ text: "" }] } },
  };
  const last = {
    candidates: [{
      index: 0,
      ...isLast ? { content: { role: "model", parts } } : contents[form.last],
      finishReason: reasons[finish],
      ...refusal !== undefined && refusal !== "" && { finishMessage: refusal },
      ...sources.length > 0 && { groundingMetadata },
    }],
    ...form.usage !== "in a frame of its own" && counts,
  };
  const counted = form.usage === "in a frame of its own" && counts ? [counts] : [];
  const frames = [...chunks, last, ...failure ? [] : counted];
  const sent = withExtras(failure ? failed(frames, failure) : frames, form, chance);
  if (form.broken !== "none") {
    return { frames: broken(sent, form.broken, chance), lost: new RegExp(`\`${form.broken}\``) };
  }
  return {
    frames: form.done === "none" ? sent : [...sent, form.done],
    warnings: form.extras === "an unknown part" ? 1 : 0,
    ...form.ran !== "none" && { ran: ranResults[form.ran] },
    checkNext: (body) => checkNext(body, response, form),
  };
}

const code = { language: "PYTHON", code: "print(1)\n1/0" };

/** The parts of tools that the server ran. */
const ranParts: { readonly [ran in GeminiForm["ran"]]: readonly object[] } = {
  "none": [],
  "code": [
    { executableCode: code, thoughtSignature: "code sig" },
    { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } },
  ],
  "failed code": [{ executableCode: code }, { codeExecutionResult: { outcome: "OUTCOME_FAILED", output: "1/0" } }],
  "code with ids": [
    { executableCode: { id: "a", ...code } },
    { executableCode: { id: "b", ...code } },
    { codeExecutionResult: { id: "a", outcome: "OUTCOME_OK", output: "a" } },
    { codeExecutionResult: { id: "b", outcome: "OUTCOME_DEADLINE_EXCEEDED", output: "b" } },
  ],
};

/** Their calls and results. */
const ranResults: { readonly [ran in GeminiForm["ran"]]: readonly (readonly unknown[])[] } = {
  "none": [],
  "code": [["code_execution", code], ["code_execution", "ok", "1\n"]],
  "failed code": [["code_execution", code], ["code_execution", "error", "1/0"]],
  "code with ids": [
    ["code_execution", { id: "a", ...code }],
    ["code_execution", { id: "b", ...code }],
    ["code_execution", "ok", "a"],
    ["code_execution", "error", "b"],
  ],
};

/** Returns the parts of a call. */
function callParts({ name, input, isCut }: CallBlock, at: number, form: GeminiForm, chance: Chance): readonly object[] {
  const id = { given: { id: `fc_${at}` }, missing: {}, "the same for all": { id: "fc" } }[form.ids];
  const signed = form.signature === "on the calls" && { thoughtSignature: `call sig ${at}` };
  if (isCut) {
    const begun = { ...id, name, willContinue: true };
    const partial = (partialArgs(input, "$", chance) ?? []).slice(0, -1);
    const pieces = partial.map((piece) => ({ functionCall: { partialArgs: [piece], willContinue: true } }));
    const forms = {
      "an empty input": [{ functionCall: { ...id, name, args: {} }, ...signed }],
      "no pieces": [{ functionCall: begun, ...signed }],
      "pieces": [{ functionCall: begun, ...signed }, ...pieces],
    };
    return forms[form.cut];
  }
  const pieces = form.args === "in pieces" ? partialArgs(input, "$", chance) : undefined;
  if (!pieces || pieces.length === 0) {
    const isEmpty = Object.keys(input).length === 0;
    const args = form.args === "a text" ? JSON.stringify(input) : input;
    const given = isEmpty && form.args === "missing if empty"
      ? {}
      : { args: isEmpty && form.args === "null if empty" ? null : args };
    return [{ functionCall: { ...id, name, ...given }, ...signed }];
  }
  return [
    { functionCall: { ...id, name, willContinue: true }, ...signed },
    ...pieces.map((piece) => ({ functionCall: { partialArgs: [piece], willContinue: true } })),
    { functionCall: {} },
  ];
}

/** Returns the pieces of an input; undefined if they cannot express it, such as an empty list. */
function partialArgs(value: Json, path: string, chance: Chance): readonly object[] | undefined {
  if (typeof value === "string") {
    const pieces = value === "" ? [""] : piecesOf(value, chance);
    return pieces.map((stringValue) => ({ jsonPath: path, stringValue, willContinue: true }));
  }
  if (typeof value === "number") return [{ jsonPath: path, numberValue: value }];
  if (typeof value === "boolean") return [{ jsonPath: path, boolValue: value }];
  if (value === null) return [{ jsonPath: path, nullValue: "NULL_VALUE" }];
  const entries = Array.isArray(value)
    ? value.map((item, at): [string, Json] => [`[${at}]`, item])
    : Object.entries(value).map((
      [name, item],
    ): [string, Json] => [/^\w+$/.test(name) ? `.${name}` : `['${name}']`, item]);
  if (entries.length === 0) return undefined;
  const pieces = entries.map(([step, item]) => partialArgs(item, path + step, chance));
  return pieces.every((each) => each !== undefined) ? pieces.flat() : undefined;
}

/** Encodes token counts. The API counts reasoning beside the output. */
function countsOf({ input, output, cached = 0, reasoning = 0 }: NonNullable<CanonicalResponse["usage"]>): object {
  return {
    promptTokenCount: input,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cached,
    totalTokenCount: input + output,
  };
}

function withExtras(frames: readonly object[], { extras }: GeminiForm, { one }: Chance): readonly object[] {
  switch (extras) {
    case "unknown members":
      return frames.map((frame) => ({ modelVersion: "m", responseId: "r1", xVendor: [null], ...frame }));
    case "unknown frames":
      return frames.flatMap((frame) => [...one<object[]>([[], [{}], [{ candidates: [] }], [{ xVendor: 1 }]]), frame]);
    case "nulls":
      return frames.map((frame) => ({ promptFeedback: null, usageMetadata: null, responseId: null, ...frame }));
    default:
      return frames;
  }
}

/** Puts a failure among the frames. */
function failed(frames: readonly object[], { at, message, recoverable }: Failure): readonly object[] {
  const place = { start: 0, middle: Math.floor(frames.length / 2), end: frames.length - 1 }[at];
  const error = recoverable
    ? { code: 503, message, status: "UNAVAILABLE" }
    : { code: 400, message, status: "INVALID_ARGUMENT" };
  return [...frames.slice(0, place), { error }];
}

/** Puts a frame with a member of a wrong type before the others. */
function broken(frames: readonly object[], member: GeminiForm["broken"], { one }: Chance): readonly object[] {
  const value = one<unknown>([7, true, 1.5]);
  const part = (part: object) => ({ candidates: [{ content: { parts: [part] } }] });
  const forms: { readonly [member: string]: object } = {
    candidates: { candidates: value },
    content: { candidates: [{ content: value }] },
    parts: { candidates: [{ content: { parts: value } }] },
    text: part({ text: value }),
    functionCall: part({ functionCall: value }),
    args: part({ functionCall: { name: "weather", args: value } }),
    finishReason: { candidates: [{ finishReason: value }] },
    usageMetadata: { usageMetadata: value },
  };
  return [forms[member]!, ...frames];
}

/** Fails unless the next request contains the parts, their signatures and the ids of the calls. */
function checkNext({ contents }: Body, { blocks, files }: CanonicalResponse, form: GeminiForm): void {
  const answer = contents.find(({ role }: Body) => role === "model");
  const parts: Body[] = answer?.parts ?? [];
  const calls = blocks.filter((block) => block.type === "call");
  const sent = parts.filter(({ functionCall }) => functionCall);
  assertEquals(
    sent.map(({ functionCall, thoughtSignature }, at) => [
      functionCall.name,
      calls[at]?.isCut ? "cut" : functionCall.args,
      thoughtSignature,
    ]),
    calls.map(({ name, input, isCut }, at) => [
      name,
      isCut ? "cut" : input,
      form.signature === "on the calls" ? `call sig ${at}` : undefined,
    ]),
  );
  const ids = sent.map(({ functionCall }) => functionCall.id);
  assertEquals(new Set(ids).size, ids.length);
  if (form.ids === "given") assertEquals(ids, calls.map((_, at) => `fc_${at}`));
  const results = contents.flatMap(({ parts }: Body) => parts).filter(({ functionResponse }: Body) => functionResponse);
  assertEquals(results.map(({ functionResponse }: Body) => functionResponse.id), ids);
  const signatures = blocks.flatMap((block) => block.type === "reasoning" ? block.signature ?? [] : []);
  const signedThoughts = parts.filter(({ thought, thoughtSignature }) => thought && thoughtSignature);
  assertEquals(signedThoughts.map(({ thoughtSignature }) => thoughtSignature), signatures);
  assertEquals(parts.flatMap(({ inlineData }) => inlineData?.data ?? []), files.map(({ data }) => data));
  const ends = parts.filter(({ text, thought, thoughtSignature }) =>
    text !== undefined && !thought && thoughtSignature
  );
  const signed = {
    "none": [],
    "on the calls": [],
    "on an empty text": ["end sig"],
    "on the last piece of text": blocks.flatMap(({ type }) => type === "text" ? ["text sig"] : []),
  };
  assertEquals(ends.map(({ thoughtSignature }) => thoughtSignature), signed[form.signature]);
  const ran = parts.filter(({ executableCode, codeExecutionResult }) => executableCode ?? codeExecutionResult);
  assertEquals<unknown>(ran, ranParts[form.ran]);
}
