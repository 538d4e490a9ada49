/**
 * The Gemini API, as Google streams it.
 *
 * @module
 */
import { gemini } from "@jizai/jizai/model/gemini";
import { key, type ProviderApi } from "./api.ts";
import { sse } from "./sse.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Encodes a response with one frame for each list of parts. The last one has the finish reason. */
export function partStream(frames: readonly (readonly Fields[])[], last: Fields = {}): string {
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 4, thoughtsTokenCount: 3, totalTokenCount: 14 };
  return sse(frames.map((parts, index) => {
    const isLast = index === frames.length - 1;
    const candidate = { content: { parts, role: "model" }, index: 0, ...(isLast && { finishReason: "STOP", ...last }) };
    return { candidates: [candidate], usageMetadata, modelVersion: "gemini-3-flash", responseId: "r1" };
  }));
}

/** The Gemini API. */
export const geminiApi: ProviderApi = {
  name: "gemini()",
  model: (options) => gemini({ model: "gemini-3-flash", apiKey: key, ...options }),
  path: "/models/gemini-3-flash:streamGenerateContent",
  query: "alt=sse",
  stream: partStream([
    [{ text: "The 鉤 ", thought: true }],
    [{ text: "hangs.", thought: true }],
    [{ text: "自在" }],
    [{ text: "鉤 🪝" }],
    [
      { functionCall: { id: "a", name: "weather", args: { city: "京都" } }, thoughtSignature: "c2ln" },
      { functionCall: { name: "weather", args: { city: "Oslo" } } },
    ],
    [{ text: "" }],
  ]),
  events: [
    { type: "reasoning", text: "The 鉤 " },
    { type: "reasoning", text: "hangs." },
    { type: "text", text: "自在" },
    { type: "text", text: "鉤 🪝" },
    { type: "reasoning", text: "", meta: { model: "gemini-3-flash", callSignature: "c2ln" } },
    { type: "call.start", id: "a", name: "weather" },
    { type: "call.delta", id: "a", text: '{"city":"京都"}' },
    { type: "call.end", id: "a" },
    { type: "call.start", id: "call_1", name: "weather" },
    { type: "call.delta", id: "call_1", text: '{"city":"Oslo"}' },
    { type: "call.end", id: "call_1" },
    { type: "finish", reason: "calls", usage: { input: 7, output: 7, reasoning: 3 }, id: "r1" },
  ],
  finished: /"finishReason":"/,
  endsWithoutFrame: true,
  textStream: (...texts) => partStream([...texts.map((text) => [{ text }]), []]),
  overloadedFrame: sse([{ error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }]),
  overloadedMessage: "503 Overloaded",
  temperatureIn: ({ generationConfig }) => generationConfig.temperature,
  inputIn: ({ contents }) => contents[1].parts[0].functionCall.args,
};
