import { agent, type AnswerPart, type Message, type Model, type ModelRequest, user } from "@jizai/jizai";
import { aiSdk } from "@jizai/jizai/model/ai_sdk";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { respond } from "../support/providers/sse.ts";
import { recordRequests } from "../support/providers/sse.ts";
import { eventsOfRun } from "../support/run_events.ts";
import { chatCompletionsCorpus } from "./corpus/chat_completions.ts";
import type { CorpusCase } from "./corpus/case.ts";
import { geminiCorpus } from "./corpus/gemini.ts";
import { messagesCorpus } from "./corpus/messages.ts";
import { responsesCorpus } from "./corpus/responses.ts";

type Fetch = NonNullable<Parameters<typeof openai>[0]["fetch"]>;

const adapters = {
  chat: (fetch: Fetch) => openai({ model: "m", fetch }),
  responses: (fetch: Fetch) => openaiResponses({ model: "m", fetch }),
  messages: (fetch: Fetch) => anthropic({ model: "m", fetch }),
  gemini: (fetch: Fetch) => gemini({ model: "m", fetch }),
};

/** Returns the message of an agent whose model reads a stream of the corpus. */
async function read(cases: readonly CorpusCase[], name: string, adapter: (fetch: Fetch) => Model): Promise<Message> {
  const stream = cases.find((each) => each.name === name)?.stream;
  if (stream === undefined) throw new Error(`Cannot find the case "${name}"`);
  const { messages } = await agent({ model: adapter(respond(stream)) }).run("Hi").result;
  const message = messages.at(-1);
  if (message?.role !== "assistant") throw new Error("Expected an answer");
  return message;
}

/** Returns the parts that are complete at once, without the provider's own data. */
function addedIn(message: Message): readonly object[] {
  const parts: readonly AnswerPart[] = message.role === "assistant" ? message.parts : [];
  return parts.flatMap((part): object[] => {
    if (part.type === "source") return [part];
    if (part.type !== "media") return [];
    const { meta: _, ...rest } = part;
    return [rest];
  });
}

/** Returns the body of the next request, after a message of the model. */
async function bodyAfter(message: Message, adapter: (fetch: Fetch) => Model): Promise<unknown> {
  const { sent, fetch } = recordRequests("");
  const model = adapter(fetch);
  const request: ModelRequest = {
    model,
    instructions: "",
    messages: [user("Hi"), message, user("And?")],
    tools: [],
    options: {},
  };
  await Array.fromAsync(model.stream(request, { signal: new AbortController().signal })).catch(() => {});
  return sent[0]?.body;
}

const png = { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" } as const;

Deno.test("gemini() reads generated images and grounding sources, and sends an image back as it came", async () => {
  const image = await read(geminiCorpus, "a generated image", adapters.gemini);
  assertEquals(addedIn(image), [png]);
  const { contents } = await bodyAfter(image, adapters.gemini) as { contents: { parts: unknown }[] };
  assertEquals(contents[1]?.parts, [
    { text: "Here it is." },
    { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } },
  ]);
  assertEquals(addedIn(await read(geminiCorpus, "a grounded text", adapters.gemini)), [
    { type: "source", url: "https://vertexaisearch.cloud.google.com/1", title: "uefa.com" },
  ]);
});

Deno.test("gemini() keeps the signature of a generated image", async () => {
  const part = { inlineData: { mimeType: "image/png", data: "AAAA" }, thoughtSignature: "c2ln" };
  const frame = { candidates: [{ content: { parts: [part] }, finishReason: "STOP" }] };
  const stream = `data: ${JSON.stringify(frame)}\n\n`;
  const { messages } = await agent({ model: adapters.gemini(respond(stream)) }).run("Hi").result;
  const { contents } = await bodyAfter(messages[1] ?? user(""), adapters.gemini) as { contents: { parts: unknown }[] };
  assertEquals(contents[1]?.parts, [part]);
});

Deno.test("openaiResponses() reads citations and generated images, and sends the item of an image back", async () => {
  assertEquals(addedIn(await read(responsesCorpus, "a web search with a citation", adapters.responses)).length, 1);
  const image = await read(responsesCorpus, "a generated image, with a partial one", adapters.responses);
  assertEquals(addedIn(image), [png]);
  const { input } = await bodyAfter(image, adapters.responses) as { input: { type?: string; result?: string }[] };
  const item = input.find(({ type }) => type === "image_generation_call");
  assertEquals(item?.result, "iVBORw0KGgo=");
});

Deno.test("anthropic() reads citations of pages and documents, and sends them back with their text", async () => {
  const document = await read(messagesCorpus, "a citation of a document", adapters.messages);
  const [source] = addedIn(document) as { type: string; text?: string }[];
  assertEquals([source?.type, typeof source?.text], ["source", "string"]);
  const { messages } = await bodyAfter(document, adapters.messages) as {
    messages: { content: { citations?: unknown[] }[] }[];
  };
  assertEquals(messages[1]?.content.some(({ citations }) => citations?.length === 1), true);
  assertEquals(addedIn(await read(messagesCorpus, "a web search with a citation", adapters.messages)).length, 1);
});

Deno.test("openai() reads annotations, addresses and images, each source once", async () => {
  const grok = "citations of xAI in the last chunk, after reasoning";
  assertEquals(addedIn(await read(chatCompletionsCorpus, grok, adapters.chat)), [
    { type: "source", url: "https://example.com/rain" },
  ]);
  const url_citation = { url: "https://example.com", title: "Example", start_index: 0, end_index: 2 };
  const frames = [
    { choices: [{ delta: { content: "Hi", annotations: [{ type: "url_citation", url_citation }] } }] },
    { choices: [{ delta: { images: [{ image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }] } }] },
    { choices: [{ delta: { images: [{ image_url: { url: "https://example.com/a.png" } }, {}] } }] },
    { choices: [{ delta: { annotations: [{ type: "url_citation", url_citation }, {}] }, finish_reason: "stop" }] },
  ];
  const stream = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("");
  const run = agent({ model: adapters.chat(respond(stream)) }).run("Hi");
  const { messages: [, message] } = await run.result;
  assertEquals(addedIn(message ?? user("")), [
    png,
    { type: "media", mediaType: "image/*", url: "https://example.com/a.png" },
    { type: "source", url: "https://example.com", title: "Example" },
  ]);
});

Deno.test("aiSdk() reads sources and files, and sends files back", async () => {
  const sent: unknown[] = [];
  const parts = [
    { type: "source", sourceType: "url", id: "1", url: "https://example.com", title: "Example" },
    { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" },
    { type: "file", mediaType: "image/png", data: new Uint8Array([0, 0, 0]) },
    { type: "finish", finishReason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
  ];
  const foreign = {
    specificationVersion: "v2" as const,
    provider: "p",
    modelId: "m",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not used")),
    doStream: (options: { readonly prompt: unknown }) => {
      sent.push(options.prompt);
      return Promise.resolve({ stream: ReadableStream.from(parts) });
    },
  };
  const assistant = agent({ model: aiSdk(foreign as never) }); // the parts of the model that the adapter uses
  const { messages, session } = await assistant.run({ prompt: "Hi", session: "s" }).result;
  assertEquals(addedIn(messages[1] ?? user("")), [
    { type: "source", url: "https://example.com", title: "Example" },
    png,
    { type: "media", mediaType: "image/png", data: "AAAA" },
  ]);
  await assistant.run({ prompt: "And?", session }).result;
  const prompt = sent[1] as { role: string; content: unknown }[];
  assertEquals(prompt[1], {
    role: "assistant",
    content: [
      { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" },
      { type: "file", mediaType: "image/png", data: "AAAA" },
    ],
  });
});

Deno.test("a generated file becomes a notice for a provider that accepts none, and sources are not sent", async () => {
  const source = { type: "source", url: "https://example.com/secret" } as const;
  const message = { role: "assistant", parts: [{ type: "text", text: "Here." }, png, source] } as const;
  for (const [name, adapter] of Object.entries(adapters)) {
    const body = JSON.stringify(await bodyAfter(message, adapter));
    assertEquals([name, body.includes("example.com/secret")], [name, false]);
    const isSent = name === "gemini"
      ? body.includes("iVBORw0KGgo=")
      : body.includes("[You generated a file of type image/png]");
    assertEquals([name, isSent], [name, true]);
  }
});

Deno.test("a part is an event between the text around it, and enters the transcript", async () => {
  const source = { type: "source", url: "https://example.com" } as const;
  const reads = [[
    { type: "text", text: "A" },
    { type: "part", part: source },
    { type: "text", text: "B" },
    { type: "part", part: png },
    { type: "finish", reason: "stop" },
  ]] as const;
  const run = agent({ model: scripted({ reads }) }).run("Hi");
  const events = (await eventsOfRun(run)).filter(({ type }) => type === "text.delta" || type === "part.added");
  assertEquals(events, [
    { type: "text.delta", turn: 1, part: 0, text: "A" },
    { type: "part.added", turn: 1, part: 1, content: source },
    { type: "text.delta", turn: 1, part: 2, text: "B" },
    { type: "part.added", turn: 1, part: 3, content: png },
  ]);
  const { messages, text } = await run.result;
  assertEquals(text, "AB");
  assertEquals(messages[1], {
    role: "assistant",
    parts: [{ type: "text", text: "A" }, source, { type: "text", text: "B" }, png],
  });
});
