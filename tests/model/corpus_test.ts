/**
 * Recorded streams of the providers, read by the adapters and by the vendors' clients, and runs against aimock.
 */
import { agent, type Model, ModelError, type ModelEvent } from "@jizai/jizai";
import { anthropic, type ProviderOptions } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { collect, outline } from "@jizai/jizai/testing";
import { assert, assertEquals } from "@std/assert";
import { mockProvider, transcript, weather } from "../support/aimock.ts";
import { readAll, respond } from "../support/providers/sse.ts";
import { lines } from "../support/transcript_lines.ts";
import type { Content, CorpusCase } from "./corpus/case.ts";
import { chatCompletionsCorpus } from "./corpus/chat_completions.ts";
import { anthropicMessage, type Client, googleContent, openaiChat, openaiResponse } from "./corpus/clients.ts";
import { geminiCorpus } from "./corpus/gemini.ts";
import { messagesCorpus } from "./corpus/messages.ts";
import { responsesCorpus } from "./corpus/responses.ts";

/** Returns the content of a response. A response without an end fails. */
function contentOf(events: readonly ModelEvent[]): Content {
  const inputs = new Map<string, string>();
  const calls: [string, unknown][] = [];
  const names = new Map<string, string>();
  let text = "";
  let reasoning = "";
  const ran: [string, unknown][] = [];
  for (const event of events) {
    if (event.type === "text") text += event.text;
    else if (event.type === "reasoning") reasoning += event.text;
    else if (event.type === "part" && event.part.type === "provider_result") {
      ran.push([event.part.name, event.part.output]);
    } else if (event.type === "call.start") names.set(event.id, event.name);
    else if (event.type === "call.delta") inputs.set(event.id, (inputs.get(event.id) ?? "") + event.text);
    else if (event.type === "call.end") {
      calls.push([names.get(event.id) ?? "", event.input ?? JSON.parse(inputs.get(event.id) ?? "{}")]);
    }
  }
  const finish = events.at(-1);
  assert(finish?.type === "finish");
  return {
    text,
    calls,
    finish: finish.reason,
    ...(reasoning !== "" && { reasoning }),
    ...(ran.length > 0 && { ran }),
  };
}

/** The length of a chunk in bytes. It is shorter than most frames. */
const chunkSize = 64;

/** Splits bytes into chunks. The first chunk has `first` bytes. */
function chunksOf(bytes: Uint8Array, first: number): Uint8Array[] {
  const chunks = [bytes.slice(0, first)];
  for (let at = first; at < bytes.length; at += chunkSize) chunks.push(bytes.slice(at, at + chunkSize));
  return chunks;
}

/** Serves a stream in chunks to any request. */
function served(stream: string): AsyncDisposable & { readonly url: string } {
  const chunks = chunksOf(new TextEncoder().encode(stream), chunkSize);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    await request.body?.cancel();
    return new Response(ReadableStream.from(chunks), { headers: { "content-type": "text/event-stream" } });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** Tests each case with the adapter and with the vendor's client. */
function corpus(
  name: string,
  cases: readonly CorpusCase[],
  model: (options: Pick<ProviderOptions, "fetch">) => Model,
  client: Client,
): void {
  for (const { name: what, stream, expected } of cases) {
    const bytes = new TextEncoder().encode(stream);

    Deno.test(`corpus: ${name} reads ${what}, whole and split at every byte`, async () => {
      let chunks: readonly Uint8Array[] = [bytes];
      const reader = model({ fetch: () => respond(...chunks)() });
      const whole = (await readAll(reader)).flat();
      assertEquals(contentOf(whole), expected);
      // each byte begins a chunk once; providers_test.ts splits a stream of each API at one byte at a time
      for (let first = 1; first <= Math.min(chunkSize, bytes.length); first++) {
        chunks = chunksOf(bytes, first);
        assertEquals((await readAll(reader)).flat(), whole);
      }
    });

    Deno.test(`corpus: ${name} never finishes ${what} if it is cut before its finish reason`, async () => {
      const frames = stream.split(/(?<=\r?\n\r?\n)/);
      const reason = /"(finish_reason|stop_reason|finishReason|blockReason)":"|"response\.(completed|incomplete)"/;
      const last = frames.findIndex((frame) => reason.test(frame));
      for (let count = 0; count < last; count++) {
        const cut = await readAll(model({ fetch: respond(...frames.slice(0, count)) })).catch(() => []);
        assertEquals(cut.flat().some(({ type }) => type === "finish"), false);
      }
    });

    Deno.test(`corpus: the vendor's client reads ${what} as ${name} does`, async () => {
      await using server = served(stream);
      const { reasoning: _, ...content } = expected;
      assertEquals(await client(server.url), content);
    });
  }
}

corpus("openai()", chatCompletionsCorpus, ({ fetch }) => openai({ model: "m", fetch: fetch! }), openaiChat);
corpus(
  "openaiResponses()",
  responsesCorpus,
  ({ fetch }) => openaiResponses({ model: "m", fetch: fetch! }),
  openaiResponse,
);
corpus("anthropic()", messagesCorpus, ({ fetch }) => anthropic({ model: "m", fetch: fetch! }), anthropicMessage);
corpus("gemini()", geminiCorpus, ({ fetch }) => gemini({ model: "m", fetch: fetch! }), googleContent);

Deno.test("corpus: every case names its source", () => {
  const all = [...chatCompletionsCorpus, ...responsesCorpus, ...messagesCorpus, ...geminiCorpus];
  assertEquals(all.filter(({ source }) => !/^https:\/\/[\w.-]+\/\S+$/.test(source)).map(({ name }) => name), []);
});

const mock = mockProvider();
mock.on({ userMessage: "down" }, { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 });
const url = await mock.start();

const models = {
  openai: openai({ model: "gpt-5", apiKey: "sk-0123456789", baseURL: `${url}/v1` }),
  openaiResponses: openaiResponses({ model: "gpt-5", apiKey: "sk-0123456789", baseURL: `${url}/v1` }),
  gemini: gemini({ model: "gemini-3-flash", apiKey: "sk-0123456789", baseURL: `${url}/v1beta` }),
  anthropic: anthropic({ model: "claude-sonnet-4-5", apiKey: "sk-0123456789", baseURL: url }),
};

for (const [name, model] of Object.entries(models)) {
  const assistant = agent({ model, instructions: "You know the weather.", tools: [weather] });

  Deno.test(`${name}() completes a run with reasoning and two parallel calls against aimock`, async () => {
    const { events, result } = await collect(assistant.run("What is the weather?"));
    assertEquals([result.status, result.text, result.usage], [
      "done",
      "Sunny in 京都 and Oslo.",
      { input: 40, output: 20 },
    ]);
    assertEquals(lines(result.messages), transcript);
    const thought = outline(events).filter((line) => line.startsWith("reasoning.delta"));
    assertEquals(thought, ["reasoning.delta Two cities."]);
  });

  Deno.test(`${name}() reports retryAfter and the status from aimock`, async () => {
    const { error } = await assistant.run("Are you busy?").result;
    if (!(error instanceof ModelError)) throw error;
    assertEquals([error.status, error.recoverable, error.retryAfter], [429, true, 7_000]);
    assertEquals(error.message, `Cannot ask ${model.id}: 429 Slow down`);
    const down = await assistant.run("Are you down?").result;
    assertEquals(String(down.error), `ModelError: Cannot ask ${model.id}: 529 Overloaded`);
  });

  Deno.test(`${name}() reports a response that aimock cut as recoverable`, async () => {
    const { error } = await assistant.run("Will you be cut?").result;
    assertEquals(error instanceof ModelError && error.recoverable, true);
  });
}
