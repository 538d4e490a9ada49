import { agent, type Middleware, type Model, type ModelEvent, serve, tool, tryAgain } from "@jizai/jizai";
import type { AddedPart } from "@jizai/jizai/engine";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { PartialOutput, streamed } from "@jizai/jizai/output";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertRejects } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import * as z from "zod";
import { Chat, reaching } from "../support/chat.ts";

const schema = z.object({ city: z.string(), days: z.array(z.object({ sunny: z.boolean() })) });
const kyoto = { city: "Kyoto", days: [{ sunny: true }, { sunny: false }] };
const json = JSON.stringify(kyoto);
const pieces = json.match(/[^]{1,3}/g) ?? [];

function served(model: Model) {
  return serve(agent({ model, output: streamed(schema) }), { wires: [aiSdkUi(), agUi()] });
}

Deno.test("useChat folds the changes that arrive as data-output", async () => {
  const output = new PartialOutput();
  const cities: unknown[] = [];
  const chat = new Chat(served(scripted({ text: pieces })), {
    onData(part) {
      if (part.type !== "data-output") return;
      const { changes } = part.data as { changes: Parameters<PartialOutput["add"]>[0] };
      output.add(changes);
      cities.push((output.value as Partial<typeof kyoto>).city);
    },
  });
  await chat.sendMessage({ text: "Where?" });
  assertEquals(output.value, kyoto);
  assertEquals([...new Set(cities)], [undefined, "", "Kyo", "Kyoto"]);
  assertEquals(chat.lastMessage?.parts.map(({ type }) => type), ["step-start", "text"]);
});

Deno.test("AG-UI clients have the partial value in the state", async () => {
  const long = { city: 'a "long"/~name\n'.repeat(40), days: [{ sunny: true }] };
  for (const value of [kyoto, long]) {
    const client = new HttpAgent({
      url: "/ag-ui",
      threadId: "t",
      initialState: { other: 1 },
      fetch: reaching(served(scripted({ text: JSON.stringify(value).match(/[^]{1,3}/g) ?? [] }))),
    });
    client.addMessage({ id: "m1", role: "user", content: "Where?" });
    let bytes = 0;
    const states: unknown[] = [];
    await client.runAgent({}, {
      onStateDeltaEvent: ({ event }) => void (bytes += JSON.stringify(event.delta).length),
      onStateChanged: ({ state }) => void states.push(structuredClone(state.output)),
    });
    assertEquals(client.state, { other: 1, output: value });
    assertEquals(states.at(-1), value);
    assertEquals(bytes < 20 * JSON.stringify(value).length + 500, true, `${bytes} bytes`);
  }
});

const messages = [{ role: "user" as const, content: "Where?" }];
const json_schema = { name: "forecast", strict: true, schema: z.toJSONSchema(schema) };
const format = { type: "json_schema" as const, ...json_schema };
const text = { format };
const response_format = { type: "json_schema" as const, json_schema };

function client(...answers: readonly ScriptedAnswer[]) {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Sun." });
  const model = scripted(...answers);
  const app = serve(agent({ model, tools: [look] }), { wires: [chatCompletions(), responses()] });
  const openai = new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
  return { model, openai };
}

const looking = { text: "I will look.", calls: [["look", {}]] } as const;

Deno.test("OpenAI's client parses the answer to a response_format, without the text before calls", async () => {
  const { model, openai } = client(looking, `\`\`\`json\n${json}\n\`\`\``);
  const { choices } = await openai.chat.completions.parse({ model: "any", messages, response_format });
  assertEquals(choices[0]?.message.parsed, kyoto);
  assertEquals(model.requests[0]?.options.output, json_schema.schema);
});

Deno.test("OpenAI's client streams the answer to a response_format", async () => {
  const { openai } = client(looking, { text: pieces });
  const stream = openai.chat.completions.stream({ model: "any", messages, response_format });
  const deltas: string[] = [];
  stream.on("content.delta", ({ delta }) => void deltas.push(delta));
  const { choices } = await stream.finalChatCompletion();
  assertEquals(choices[0]?.message.parsed, kyoto);
  assertEquals(deltas, pieces);
});

Deno.test("OpenAI's client parses and streams the answer to a text.format", async () => {
  assertEquals((await client(looking, json).openai.responses.parse({ input: "Where?", text })).output_parsed, kyoto);
  const stream = client(looking, { text: pieces }).openai.responses.stream({ input: "Where?", text });
  const deltas: string[] = [];
  stream.on("response.output_text.delta", ({ delta }) => void deltas.push(delta));
  assertEquals((await stream.finalResponse()).output_text, json);
  assertEquals(deltas, pieces);
});

Deno.test("a model is asked again for JSON, and a stream that has begun another JSON answer has the last one", async () => {
  const parsed = await client("Kyoto.", json).openai.chat.completions.parse({
    model: "any",
    messages,
    response_format,
  });
  assertEquals(parsed.choices[0]?.message.parsed, kyoto);
  const object = { type: "json_object" as const };
  const completion = await client("{", '{"a":1}').openai.chat.completions.create({
    model: "a",
    messages,
    response_format: object,
  });
  assertEquals(completion.choices[0]?.message.content, '{"a":1}');
  const begun = [['{"city":'], ['{"city":"Os'], ['{"days":[{"sunny"'], ["[the city]"]];
  for (const text of [...begun, ["[the ", "city]"]]) {
    const stream = client({ text }, json).openai.responses.stream({ input: "Where?", text: { format } });
    const { output_text, output_parsed } = await stream.finalResponse();
    assertEquals([output_text, output_parsed], [json, kyoto]);
  }
  for (const text of begun) {
    const stream = client({ text }, json).openai.chat.completions.stream({ model: "any", messages, response_format });
    assertEquals((await stream.finalChatCompletion()).choices[0]?.message.parsed, kyoto);
  }
  const array = client({ text: ["[the ", "city]"] }, json).openai;
  const failing = array.chat.completions.stream({ model: "any", messages, response_format });
  await assertRejects(() => failing.finalChatCompletion(), OpenAI.OpenAIError, "Cannot stream the JSON answer");
});

const again: Middleware = {
  error: (ctx, next) => ctx.attempt === 1 ? Promise.resolve(tryAgain()) : next(),
};

Deno.test("OpenAI's client has the last JSON answer of a stream, wherever the first one breaks off", async () => {
  const first = '{"days":[{"sunny":true},{"sunny":false}],"city":"\\u00d6\\"s"}';
  for (let length = 1; length <= first.length; length++) {
    const served = () => {
      const model = scripted({ text: [...first.slice(0, length)], error: new Error("cut") }, { text: pieces });
      const app = serve(agent({ model, use: [again] }), { wires: [chatCompletions(), responses()], onError: () => {} });
      return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
    };
    const completion = served().chat.completions.stream({ model: "any", messages, response_format });
    assertEquals((await completion.finalChatCompletion()).choices[0]?.message.parsed, kyoto, first.slice(0, length));
    const response = await served().responses.stream({ input: "Where?", text }).finalResponse();
    assertEquals([response.output_text, response.output_parsed], [json, kyoto]);
  }
});

Deno.test("a streamed JSON answer that begins again and is cut has the finish reason of the cut", async () => {
  const model = scripted({ text: ['{"a":', "1"], error: new Error("cut") }, { text: '{"b":', finish: "length" });
  const app = serve(agent({ model, use: [again], limits: { turns: 1 } }), {
    wires: [chatCompletions()],
    onError: () => {},
  });
  const openai = new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
  const stream = await openai.chat.completions.create({
    model: "any",
    messages,
    response_format: { type: "json_object" },
    stream: true,
  });
  const choices = (await Array.fromAsync(stream)).flatMap(({ choices }) => choices);
  assertEquals([choices.map(({ delta }) => delta.content ?? "").join(""), choices.at(-1)?.finish_reason], [
    '{"a":1',
    "length",
  ]);
});

Deno.test("the agent's own output schema comes before the format of the request", async () => {
  const model = scripted(json);
  const app = serve(agent({ model, output: schema }), { wires: [chatCompletions()] });
  const openai = new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app) });
  const object = { type: "json_object" as const };
  const { choices } = await openai.chat.completions.create({ model: "any", messages, response_format: object });
  assertEquals(choices[0]?.message.content, json);
  assertEquals(model.requests[0]?.options.output?.type, "object");
  assertEquals(Object.keys(model.requests[0]?.options.output?.properties ?? {}), ["city", "days"]);
});

Deno.test("Responses send an answer in a code fence for a text.format, also after a source and a thought", async () => {
  const fenced = `\`\`\`json\n${json}\n\`\`\``;
  const source = { type: "source", url: "https://a.example" } as const;
  const reads = [[
    { type: "reasoning", text: "Hm." },
    { type: "part", part: source },
    { type: "text", text: fenced },
    { type: "finish", reason: "stop" },
  ]] as const;
  const { output_text } = await client({ reads }).openai.responses.create({ input: "Where?", text });
  assertEquals(JSON.parse(output_text), kyoto);
});

const page = { type: "source", url: "https://a.example", title: "A" } as const;
const search = { type: "provider_call", callId: "s1", name: "web_search", input: { query: "sun" } } as const;
const found = { type: "provider_result", callId: "s1", name: "web_search", status: "ok", output: null } as const;
const refusal = { type: "refusal", text: "Not yet." } as const;
const end = { type: "finish", reason: "stop" } as const;
const fence = { type: "text", text: `\`\`\`json\n${json}\n\`\`\`` } as const;
const partEvents = (...parts: readonly AddedPart[]) => parts.map((part) => ({ type: "part", part }) as const);

/** Answers with sources, and the end of the citation in a streamed answer. An answer that is not streamed is sent as a whole, after its sources. */
const cited: Readonly<Record<string, readonly [reads: readonly (readonly ModelEvent[])[], end: number]>> = {
  "before an answer in a code fence": [[partEvents(page), [fence, end]], 0],
  "after an answer in a code fence": [[[fence], partEvents(page), [end]], 0],
  "before and after a call of the provider": [[partEvents(search, found, page), [fence, end]], 0],
  "behind an answer and a call of the provider": [
    [[{ type: "text", text: json }], partEvents(search, found, page), [end]],
    json.length,
  ],
};

for (const [name, [reads, streamedEnd]] of Object.entries(cited)) {
  Deno.test(`OpenAI's client parses the answer to a text.format with a source ${name}`, async () => {
    const citation = { type: "url_citation", url: page.url, title: "A", start_index: 0, end_index: 0 };
    const check = ({ output }: OpenAI.Responses.Response, annotation: object) => {
      const messages = output.flatMap((item) => item.type === "message" ? [item.content] : []);
      const contents = messages.map((content) =>
        content.map((part) => part.type === "output_text" ? [part.text, part.annotations] : part.type)
      );
      assertEquals<unknown>(contents, [[[json, [annotation]]]]);
    };
    const parsed = await client({ reads }).openai.responses.parse({ input: "Where?", text });
    assertEquals(parsed.output_parsed, kyoto);
    check(parsed, citation);
    const stream = client({ reads }).openai.responses.stream({ input: "Where?", text });
    const annotations: unknown[] = [];
    stream.on("response.output_text.annotation.added", ({ annotation }) => void annotations.push(annotation));
    const streamedCitation = { ...citation, end_index: streamedEnd };
    check(await stream.finalResponse(), streamedCitation);
    assertEquals(annotations, [streamedCitation]);
  });
}

Deno.test("OpenAI's client parses a text.format beside a refusal, and a call that pauses the run after a source", async () => {
  const tools = [{ type: "function" as const, name: "paint", parameters: { type: "object" }, strict: false }];
  const refused = await client({ reads: [partEvents(refusal), [end]] }, json).openai.responses
    .parse({ input: "Where?", text });
  assertEquals(refused.output_parsed, kyoto);
  const contents = refused.output.map((item) => item.type === "message" && item.content.map(({ type }) => type));
  assertEquals(contents, [["refusal"], ["output_text"]]);
  const calling = [{ type: "call.start", id: "c", name: "paint" }, { type: "call.end", id: "c", input: {} }] as const;
  const reads = [partEvents(page), calling, [{ ...end, reason: "calls" }]] as const;
  const { output } = await client({ reads }).openai.responses.parse({ input: "Where?", text, tools });
  assertEquals(output.map(({ type }) => type), ["function_call"]);
});

Deno.test("Responses send a source that no text follows as the annotation of an empty message", async () => {
  const reads = [partEvents(page), [end]] as const;
  const { output } = await client({ reads }).openai.responses.create({ input: "Where?" });
  assertEquals<unknown>(output.map((item) => item.type === "message" && item.content), [[{
    type: "output_text",
    text: "",
    annotations: [{ type: "url_citation", url: page.url, title: "A", start_index: 0, end_index: 0 }],
  }]]);
});
