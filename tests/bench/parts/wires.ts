/**
 * The cost of the wires for other clients, relative to the native stream.
 *
 * @module
 */
import { agent, memory, type Model, serve } from "@jizai/jizai";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { drain } from "../kit/floor.ts";
import { type Run, streaming } from "../kit/load.ts";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const count = 10_000;

/** The path and the body of each client's request. Each request begins a session. */
const requests = {
  native: ["/runs", () => ({ prompt: "Hi" })],
  "the AI SDK's UI stream": [
    "/chat",
    (id: string) => ({ id, messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }] }),
  ],
  "chat completions": ["/v1/chat/completions", () => ({ stream: true, messages: [{ role: "user", content: "Hi" }] })],
  "the Responses API": ["/v1/responses", () => ({ stream: true, input: "Hi" })],
  "AG-UI": ["/ag-ui", (id: string) => ({ threadId: id, runId: "r", messages: [{ id, role: "user", content: "Hi" }] })],
} as const;

type Name = keyof typeof requests;
const names = Object.keys(requests) as Name[]; // exactly its keys

/** Streams ten thousand deltas over each wire. */
export async function wireMeasures(): Promise<readonly Measure[]> {
  const model = streaming(count);
  const runs = Object.fromEntries(names.map((name) => [name, servedOver(model, name)])) as Record<Name, Run>; // of each name
  const { native, ...time } = await medians(runs, { rounds: 60, warmUp: 8 });
  return Object.entries(time).map(([name, each]) => ({
    what: `10,000 deltas for ${name}, of the native stream`,
    figure: each / native,
    atMost: 1.5,
    unit: "x",
  }));
}

function servedOver(model: Model, name: Name): Run {
  const wires = [aiSdkUi(), chatCompletions(), responses(), agUi()];
  const app = serve(agent({ model }), { store: memory({ max: 1 }), wires });
  const headers = { "content-type": "application/json" };
  const [path, body] = requests[name];
  return async () => {
    const response = await app.request(path, {
      method: "POST",
      headers,
      body: JSON.stringify(body(crypto.randomUUID())),
    });
    return await drain(response.body);
  };
}
