import { agent, type Middleware, rewrite, serve, windowed } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { screen } from "@jizai/jizai/screen";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import { Chat, reaching } from "../support/chat.ts";

const page = { type: "source", url: "https://example.com", title: "Example" } as const;
const document = { type: "source", title: "a.pdf", text: "cited" } as const;
const png = { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" } as const;
const reads = [
  [{ type: "text", text: "See " }],
  [{ type: "text", text: "this." }],
  [{ type: "part", part: page }],
  [{ type: "part", part: document }],
  [{ type: "part", part: png }],
  [{ type: "finish", reason: "stop" }],
] as const;
const dataUrl = "data:image/png;base64,iVBORw0KGgo=";

function served(...use: Middleware[]) {
  const wires = [aiSdkUi(), aiSdkMessages(), agUi(), chatCompletions(), responses()];
  return serve(agent({ model: scripted({ reads }), use }), { wires });
}

function openaiOf(app: ReturnType<typeof served>) {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const uiParts = [
  { type: "source-url", sourceId: "1.1", url: "https://example.com", title: "Example" },
  { type: "source-document", sourceId: "1.2", mediaType: "text/plain", title: "a.pdf" },
  { type: "file", mediaType: "image/png", url: dataUrl },
];

/** Replaces the text of each answer. */
const shout: Middleware = {
  name: "shout",
  async model(_, next) {
    const response = await next();
    return {
      ...response,
      parts: response.parts.map((part) => part.type === "text" ? { ...part, text: "SEE." } : part),
    };
  },
};

Deno.test("useChat receives sources and files as its own parts, also if a hook replaces the text, and after a reload", async () => {
  for (const [use, text] of [[[], "See this."], [[shout], "SEE."]] as const) {
    const app = served(...use);
    const chat = new Chat(app);
    await chat.sendMessage({ text: "Hi" });
    const parts = chat.lastMessage?.parts.filter(({ type }) => type !== "step-start") ?? [];
    assertEquals(parts.filter((part) => part.type === "text").map((part) => part.text), [text]);
    assertEquals(parts.filter(({ type }) => type !== "text").map((part) => JSON.parse(JSON.stringify(part))), uiParts);
    const [, reloaded] = await (await app.request("/chat/chat")).json();
    const stored = reloaded.parts.filter(({ type }: { type: string }) => /^(source|file)/.test(type));
    assertEquals(stored.map(({ type }: { type: string }) => type), uiParts.map(({ type }) => type));
  }
});

Deno.test("AG-UI clients receive sources and files as custom events", async () => {
  const agent = new HttpAgent({ url: "/ag-ui", threadId: "t", fetch: reaching(served()) });
  agent.addMessage({ id: "m1", role: "user", content: "Hi" });
  const custom: unknown[] = [];
  await agent.runAgent({}, { onCustomEvent: ({ event }) => void custom.push([event.name, event.value]) });
  assertEquals(custom, [
    ["source", { url: "https://example.com", title: "Example" }],
    ["source", { title: "a.pdf", text: "cited" }],
    ["media", { mediaType: "image/png", data: "iVBORw0KGgo=" }],
  ]);
});

const messages = [{ role: "user" as const, content: "Hi" }];
const url_citation = { url: "https://example.com", title: "Example", start_index: 0, end_index: 0 };

Deno.test("chat completions contain annotations and images, streamed and whole", async () => {
  const whole = await openaiOf(served()).chat.completions.create({ model: "any", messages });
  const message = whole.choices[0]?.message as unknown as Record<string, unknown>; // `images` is an extension
  const images = [{ type: "image_url", image_url: { url: dataUrl } }];
  assertEquals([message.content, message.annotations, message.images], [
    "See this.",
    [{ type: "url_citation", url_citation }],
    images,
  ]);
  const deltas: Record<string, unknown>[] = [];
  for await (
    const { choices } of await openaiOf(served()).chat.completions.create({ model: "any", messages, stream: true })
  ) {
    deltas.push(...choices.map(({ delta }) => delta as Record<string, unknown>)); // as above
  }
  assertEquals(deltas.flatMap(({ annotations }) => annotations ?? []), [{ type: "url_citation", url_citation }]);
  assertEquals(deltas.flatMap(({ images }) => images ?? []), images);
});

Deno.test("Responses contain annotations and generated images, streamed and whole", async () => {
  const annotation = {
    type: "url_citation",
    url: "https://example.com",
    title: "Example",
    start_index: 0,
    end_index: 9,
  };
  const citation = { type: "file_citation", file_id: "", filename: "a.pdf", index: 9 };
  const check = ({ output }: OpenAI.Responses.Response) => {
    const [text, image] = output;
    if (text?.type !== "message" || image?.type !== "image_generation_call") {
      throw new Error("Expected a text and an image");
    }
    assertEquals(text.content.map((part) => part.type === "output_text" && [part.text, part.annotations]), [
      ["See this.", [annotation, citation]],
    ] as never);
    assertEquals(image.result, "iVBORw0KGgo=");
  };
  check(await openaiOf(served()).responses.create({ input: "Hi" }));
  const stream = openaiOf(served()).responses.stream({ input: "Hi" });
  check(await stream.finalResponse());
});

Deno.test("Responses keep sources, files and refusals if a hook replaces the text, streamed and whole", async () => {
  const table = { type: "media", mediaType: "text/csv", data: "YSxi" } as const;
  const refusal = { type: "refusal", text: "No more." } as const;
  const added = [page, png, table, refusal].map((part) => ({ type: "part", part }) as const);
  const answer = {
    reads: [[{ type: "text", text: "See this." }], added, [{ type: "finish", reason: "stop" }]],
  } as const;
  const app = serve(agent({ model: scripted(answer, answer), use: [shout] }), { wires: [responses()] });
  const streamed = await openaiOf(app).responses.stream({ input: "Hi" }).finalResponse();
  const whole = await openaiOf(app).responses.create({ input: "Hi" });
  for (const { output, output_text } of [streamed, whole]) {
    assertEquals([output_text, output.map(({ type }) => type)], ["SEE.", ["image_generation_call", "message"]]);
    const [text, ...others] = output.flatMap((item): unknown[] => item.type === "message" ? item.content : []);
    assertEquals((text as { readonly annotations: unknown }).annotations, [
      { type: "url_citation", url: page.url, title: page.title, start_index: 0, end_index: 4 },
    ]);
    assertEquals(JSON.parse(JSON.stringify(others)).map(({ parsed: _, ...part }: Record<string, unknown>) => part), [
      { type: "input_file", filename: "file.csv", file_data: "data:text/csv;base64,YSxi" },
      { type: "refusal", refusal: "No more." },
    ]);
  }
});

Deno.test("Responses contain files other than images as files, streamed and whole, and accept them back", async () => {
  const table = { type: "media", mediaType: "text/csv", data: "YSxi" } as const;
  const pdf = { type: "media", mediaType: "application/pdf", url: "https://a.example/a.pdf" } as const;
  const linked = { type: "media", mediaType: "image/*", url: "https://a.example/a.png" } as const;
  const files = [table, pdf, linked];
  const answer = {
    reads: [[{ type: "text", text: "See." }], files.map((part) => ({ type: "part", part }) as const), [
      { type: "finish", reason: "stop" },
    ]],
  } as const;
  const model = scripted(answer, answer, "Yes.");
  const openai = openaiOf(serve(agent({ model }), { wires: [responses()] }));
  const streamed = await openai.responses.stream({ input: "Hi" }).finalResponse();
  const { output } = await openai.responses.create({ input: "Hi" });
  for (const items of [streamed.output, output]) {
    const contents = items.map((item) => item.type === "message" && item.content);
    assertEquals<unknown>(JSON.parse(JSON.stringify(contents)).map((parts: object[]) => parts.slice(1)), [[
      { type: "input_file", filename: "file.csv", file_data: "data:text/csv;base64,YSxi" },
      { type: "input_file", file_url: pdf.url },
      { type: "input_image", image_url: linked.url, detail: "auto" },
    ].map((part) => items === output ? part : { ...part, parsed: null })]);
  }
  const prompt = { role: "user", content: "Hi" };
  await openai.responses.create({ input: [prompt, ...output, prompt] as never }); // OpenAI's types know no files here
  assertEquals<unknown>(model.requests[2]?.messages[1], {
    role: "assistant",
    parts: [{ type: "text", text: "See." }, ...files],
  });
});

Deno.test("the native client has sources and files in its state", async () => {
  const run = client("", { fetch: served().request }).run({ prompt: "Hi" });
  const { messages } = await run.result();
  assertEquals(messages.at(-1)?.parts, [
    { type: "text", id: 0, text: "See this." },
    { ...page, id: 1 },
    { ...document, id: 2 },
    { ...png, id: 3 },
  ]);
});

Deno.test("native clients may send the parts back in a history", async () => {
  const app = served();
  const answer = { role: "assistant", parts: [{ type: "text", text: "See." }, page, { ...png, meta: { a: 1 } }] };
  const prompt = { role: "user", parts: [{ type: "text", text: "Hi" }] };
  const response = await app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [prompt, answer, prompt] }),
  });
  assertEquals(response.status, 200);
  await response.body?.cancel();
});

Deno.test("rewriting, screening and redaction keep the order of text and parts, and redaction masks sources", async () => {
  const hooks: readonly (readonly [Middleware, string, string])[] = [
    [
      { name: "rewrite", model: rewrite({ text: windowed(20, (text) => text.replaceAll("this", "that")) }) },
      "See that.",
      "Example",
    ],
    [
      { name: "screen", model: screen({ window: 50, check: async () => await Promise.resolve({ type: "pass" }) }) },
      "See this.",
      "Example",
    ],
    [redact({ secrets: ["Example", "this"] }), "See [redacted].", "[redacted]"],
  ];
  for (const [hook, text, title] of hooks) {
    const run = client("", { fetch: served(hook).request }).run({ prompt: "Hi" });
    const { messages } = await run.result();
    const parts = messages.at(-1)?.parts ?? [];
    assertEquals(parts.map(({ type }) => type), ["text", "source", "source", "media"]);
    assertEquals([parts[0]?.type === "text" && parts[0].text, parts[1]?.type === "source" && parts[1].title], [
      text,
      title,
    ]);
  }
});
