/**
 * Models of every adapter that record what they send to their provider.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";
import { aiSdk } from "@jizai/jizai/model/ai_sdk";
import { apis } from "./mod.ts";
import { recordRequests } from "./sse.ts";

/** A model, and the bodies of the requests that it has sent. */
export interface RecordingModel {
  /** The name of the adapter. */
  readonly name: string;
  /** The model. Its id is `m`. */
  readonly model: Model;
  /** Returns the bodies of its requests. */
  sent(): readonly unknown[];
}

/** Creates a model of each adapter. Each response is a text. */
export function recordingModels(): readonly RecordingModel[] {
  const overHttp = apis.map(({ name, model, textStream }): RecordingModel => {
    const { sent, fetch } = recordRequests(textStream("Yes."));
    return { name, model: model({ model: "m", fetch }), sent: () => sent.map(({ body }) => body) };
  });
  return [...overHttp, overAiSdk()];
}

function overAiSdk(): RecordingModel {
  const asked: unknown[] = [];
  const model = aiSdk({
    specificationVersion: "v4",
    modelId: "m",
    doStream({ abortSignal: _, ...call }) {
      asked.push(call);
      const text = [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "Yes." }];
      const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
      const end = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage };
      return Promise.resolve({ stream: ReadableStream.from([...text, end]) });
    },
  });
  return { name: "aiSdk", model, sent: () => asked };
}
