/**
 * Streams of the Gemini API.
 *
 * @module
 */
import { type CorpusCase, dataFrames } from "./case.ts";

const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 5, totalTokenCount: 16 };

type Parts = readonly object[];

/** A frame with these parts. */
function frame(parts: Parts, more: object = {}): object {
  return {
    candidates: [{ content: { parts, role: "model" }, index: 0, ...more }],
    usageMetadata,
    modelVersion: "gemini-3-flash-preview",
    responseId: "mAitaLmkHPPlz7IPvtfUqQ4",
  };
}

/** Encodes frames, the last of which has the finish reason. */
function stream(frames: readonly Parts[], finishReason: string, more: object = {}): string {
  const last = frames.length - 1;
  return dataFrames(frames.map((parts, index) => frame(parts, index === last ? { finishReason, ...more } : {})));
}

const functionCalling = "https://ai.google.dev/gemini-api/docs/function-calling";
const signatures = "https://ai.google.dev/gemini-api/docs/thought-signatures";

/** The cases. */
export const geminiCorpus: readonly CorpusCase[] = [
  {
    name: "a text",
    source: "https://ai.google.dev/gemini-api/docs/text-generation#streaming-responses",
    stream: stream([[{ text: "AI learns" }], [{ text: " patterns." }]], "STOP"),
    expected: { text: "AI learns patterns.", calls: [], finish: "stop" },
  },
  {
    name: "a text with CRLF line ends, as Google's servers send them",
    source: "https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent",
    stream: stream([[{ text: "Hel" }], [{ text: "lo\n" }]], "STOP").replaceAll("\n", "\r\n"),
    expected: { text: "Hello\n", calls: [], finish: "stop" },
  },
  {
    name: "one call",
    source: functionCalling,
    stream: stream([[{ functionCall: { name: "get_weather", args: { location: "London" } } }]], "STOP"),
    expected: { text: "", calls: [["get_weather", { location: "London" }]], finish: "calls" },
  },
  {
    name: "three parallel calls in one frame, the first with a signature",
    source: signatures,
    stream: stream([[
      {
        functionCall: { id: "f1", name: "power_disco_ball", args: { power: true } },
        thoughtSignature: "CiQBcsjafJ20Qbx0YvwAAA",
      },
      { functionCall: { id: "f2", name: "start_music", args: { energetic: true, loud: true } } },
      { functionCall: { id: "f3", name: "dim_lights", args: { brightness: 0.5 } } },
    ]], "STOP"),
    expected: {
      text: "",
      calls: [
        ["power_disco_ball", { power: true }],
        ["start_music", { energetic: true, loud: true }],
        ["dim_lights", { brightness: 0.5 }],
      ],
      finish: "calls",
    },
  },
  {
    name: "summaries of thoughts, and a signature in a last empty part",
    source: "https://ai.google.dev/gemini-api/docs/thinking#summaries",
    stream: stream([
      [{ text: "**Calculating**\n", thought: true }],
      [{ text: "Primes: 2, 3, 5.", thought: true }],
      [{ text: "The sum is 10." }],
      [{ text: "", thoughtSignature: "EtgHCtUHAb4" }],
    ], "STOP"),
    expected: { text: "The sum is 10.", calls: [], finish: "stop", reasoning: "**Calculating**\nPrimes: 2, 3, 5." },
  },
  {
    name: "a grounded text",
    source: "https://ai.google.dev/gemini-api/docs/google-search",
    stream: stream([[{ text: "Spain won " }], [{ text: "Euro 2024." }]], "STOP", {
      groundingMetadata: {
        webSearchQueries: ["UEFA Euro 2024 winner"],
        searchEntryPoint: { renderedContent: "<div></div>" },
        groundingChunks: [{ web: { uri: "https://vertexaisearch.cloud.google.com/1", title: "uefa.com" } }],
        groundingSupports: [{ segment: { startIndex: 0, endIndex: 20, text: "Spain won Euro 2024." } }],
      },
    }),
    expected: {
      text: "Spain won Euro 2024.",
      calls: [],
      finish: "stop",
      ran: [["web_search", [{ web: { uri: "https://vertexaisearch.cloud.google.com/1", title: "uefa.com" } }]]],
    },
  },
  {
    name: "code that the provider runs",
    source: "https://ai.google.dev/gemini-api/docs/code-execution",
    stream: stream([
      [{ text: "I will compute it." }],
      [{ executableCode: { language: "PYTHON", code: "print(sum([2, 3, 5]))" } }],
      [{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "10\n" } }],
      [{ text: " It is 10." }],
    ], "STOP"),
    expected: {
      text: "I will compute it. It is 10.",
      calls: [],
      finish: "stop",
      ran: [["code_execution", "10\n"]],
    },
  },
  {
    name: "a generated image",
    source: "https://ai.google.dev/gemini-api/docs/image-generation",
    stream: stream(
      [[{ text: "Here it is." }], [{ inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }]],
      "STOP",
    ),
    expected: { text: "Here it is.", calls: [], finish: "stop" },
  },
  {
    name: "a response that reaches its token limit",
    source: "https://ai.google.dev/api/generate-content#FinishReason",
    stream: stream([[{ text: "Once upon" }]], "MAX_TOKENS"),
    expected: { text: "Once upon", calls: [], finish: "length" },
  },
  {
    name: "a response that is stopped for safety",
    source: "https://ai.google.dev/gemini-api/docs/safety-settings",
    stream: dataFrames([
      frame([{ text: "I" }]),
      { candidates: [{ finishReason: "SAFETY", index: 0, safetyRatings: [] }], usageMetadata },
    ]),
    expected: { text: "I", calls: [], finish: "filter" },
  },
  {
    name: "a blocked prompt",
    source: "https://ai.google.dev/gemini-api/docs/safety-settings",
    stream: dataFrames([{ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata }]),
    expected: { text: "", calls: [], finish: "filter" },
  },
  {
    name: "a call without arguments and without an id",
    source: functionCalling,
    stream: stream([[{ text: "Let me look." }], [{ functionCall: { name: "list_files" } }]], "STOP"),
    expected: { text: "Let me look.", calls: [["list_files", {}]], finish: "calls" },
  },
  {
    name: "a text with a signature in its own part",
    source: signatures,
    stream: stream([[{ text: "It is " }], [{ text: "42.", thoughtSignature: "EtgHCtUHAb4" }]], "STOP"),
    expected: { text: "It is 42.", calls: [], finish: "stop" },
  },
  {
    name: "the context of an address",
    source: "https://ai.google.dev/gemini-api/docs/url-context",
    stream: stream([[{ text: "Two recipes." }]], "STOP", {
      urlContextMetadata: {
        urlMetadata: [{ retrievedUrl: "https://example.com", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS" }],
      },
    }),
    expected: {
      text: "Two recipes.",
      calls: [],
      finish: "stop",
      ran: [["url_context", [{
        retrievedUrl: "https://example.com",
        urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS",
      }]]],
    },
  },
  {
    name: "generated speech",
    source: "https://ai.google.dev/gemini-api/docs/speech-generation",
    stream: stream([[{ inlineData: { mimeType: "audio/L16;codec=pcm;rate=24000", data: "AAAA" } }]], "STOP"),
    expected: { text: "", calls: [], finish: "stop" },
  },
  {
    name: "thoughts before a call, and their token counts",
    source: "https://ai.google.dev/gemini-api/docs/thinking#pricing",
    stream: dataFrames([
      frame([{ text: "I need the time.", thought: true }]),
      {
        ...frame([{ functionCall: { id: "f1", name: "get_time", args: { zone: "UTC" } } }], { finishReason: "STOP" }),
        usageMetadata: { ...usageMetadata, thoughtsTokenCount: 34, totalTokenCount: 50 },
      },
    ]),
    expected: { text: "", calls: [["get_time", { zone: "UTC" }]], finish: "calls", reasoning: "I need the time." },
  },
];
