import { agent, type Message, serve } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import { Chat, reaching } from "../support/chat.ts";
import { post } from "../support/requests.ts";

const refusal = { type: "refusal", text: "I cannot.", category: "bio" } as const;
const tokens = [
  { token: "I", logprob: -0.1, top: [{ token: "I", logprob: -0.1 }] },
  { token: " cannot.", logprob: -0.2 },
];
const logprobs = { type: "logprobs", tokens } as const;
const speech = { type: "media", mediaType: "audio/wav", data: "UklGRg==" } as const;
const parts = [logprobs, speech, refusal];
const reads = [
  [{ type: "text", text: "I cannot." }],
  ...parts.map((part) => [{ type: "part", part }] as const),
  [{ type: "finish", reason: "filter" }],
] as const;

function served(model = scripted({ reads })) {
  return serve(agent({ model }), { wires: [aiSdkUi(), aiSdkMessages(), agUi(), chatCompletions(), responses()] });
}

function openaiOf(app: ReturnType<typeof served>) {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const audioUrl = "data:audio/wav;base64,UklGRg==";

Deno.test("useChat receives refusals, log probabilities and recordings, also after a reload", async () => {
  const app = served();
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  const expected = [
    { type: "data-logprobs", data: { tokens } },
    { type: "file", mediaType: "audio/wav", url: audioUrl },
    { type: "data-refusal", data: { text: "I cannot.", category: "bio" } },
  ];
  const added = (given: readonly { readonly type: string }[]) => given.filter(({ type }) => /^(data|file)/.test(type));
  assertEquals<unknown>(JSON.parse(JSON.stringify(added(chat.lastMessage?.parts ?? []))), expected);
  const [, reloaded] = await (await app.request("/chat/chat")).json();
  assertEquals<unknown>(added(reloaded.parts), expected);
});

Deno.test("AG-UI clients receive refusals, log probabilities and recordings as custom events", async () => {
  const agent = new HttpAgent({ url: "/ag-ui", threadId: "t", fetch: reaching(served()) });
  agent.addMessage({ id: "m1", role: "user", content: "Hi" });
  const custom: unknown[] = [];
  await agent.runAgent({}, { onCustomEvent: ({ event }) => void custom.push({ type: event.name, ...event.value }) });
  assertEquals<unknown>(custom, parts);
});

const bytes = (text: string) => [...new TextEncoder().encode(text)];
const openaiTokens = tokens.map(({ token, logprob, top = [] }) => ({
  token,
  logprob,
  bytes: bytes(token),
  top_logprobs: top.map((each) => ({ ...each, bytes: bytes(each.token) })),
}));

Deno.test("chat completions contain refusals, log probabilities and recordings, streamed and whole", async () => {
  const messages = [{ role: "user" as const, content: "Hi" }];
  const check = ({ choices: [choice] }: OpenAI.ChatCompletion) => {
    const { message, logprobs, finish_reason } = choice!;
    const audio = { id: "audio", data: "UklGRg==", transcript: "", expires_at: 0 };
    assertEquals([message.content, message.refusal, logprobs?.content, finish_reason], [
      "I cannot.",
      "I cannot.",
      openaiTokens,
      "content_filter",
    ]);
    assertEquals(message.audio, audio);
  };
  check(await openaiOf(served()).chat.completions.create({ model: "any", messages }));
  check(await openaiOf(served()).chat.completions.stream({ model: "any", messages }).finalChatCompletion());
});

Deno.test("Responses contain refusals, log probabilities and recordings, streamed and whole", async () => {
  const check = ({ output }: OpenAI.Responses.Response) => {
    const contents = output.flatMap((item) => item.type === "message" ? item.content : []);
    assertEquals<unknown>(
      JSON.parse(JSON.stringify(contents)).map(({ parsed: _, ...part }: Record<string, unknown>) => part),
      [
        { type: "output_text", text: "I cannot.", annotations: [], logprobs: openaiTokens },
        { type: "output_audio", data: "UklGRg==", transcript: "I cannot." },
        { type: "refusal", refusal: "I cannot." },
      ],
    );
  };
  check(await openaiOf(served()).responses.create({ input: "Hi" }));
  check(await openaiOf(served()).responses.stream({ input: "Hi" }).finalResponse());
});

Deno.test("the native client has refusals, log probabilities and recordings in its state, and may send them back", async () => {
  const { messages } = await client("", { fetch: served().request }).run({ prompt: "Hi" }).result();
  assertEquals<unknown>(messages.at(-1)?.parts, [
    { type: "text", id: 0, text: "I cannot." },
    ...parts.map((part, index) => ({ ...part, id: index + 1 })),
  ]);
  const model = scripted("Again.");
  const prompt = { role: "user", parts: [{ type: "text", text: "Hi" }] } as const;
  const history: readonly Message[] = [prompt, { role: "assistant", parts }, prompt];
  const response = await post(served(model), "/runs", { messages: history });
  await response.text();
  assertEquals(model.requests[0]?.messages, history);
});

const refused = {
  role: "assistant",
  parts: [{ type: "text", text: "I cannot." }, { type: "refusal", text: "I cannot." }],
};
const prompts = [{ role: "user", parts: [{ type: "text", text: "Hi" }] }, refused, {
  role: "user",
  parts: [
    speech,
    { type: "media", mediaType: "application/pdf", data: "JVBERg==" },
  ],
}];

Deno.test("chat completions and Responses accept refusals in the history, recordings and files", async () => {
  const model = scripted("One.", "Two.");
  const app = served(model);
  const file_data = "data:application/pdf;base64,JVBERg==";
  const input_audio = { type: "input_audio" as const, input_audio: { data: "UklGRg==", format: "wav" as const } };
  await openaiOf(app).chat.completions.create({
    model: "any",
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: null, refusal: "I cannot." },
      { role: "user", content: [input_audio, { type: "file", file: { filename: "a.pdf", file_data } }] },
    ],
  });
  const response = await post(app, "/v1/responses", {
    input: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "refusal", refusal: "I cannot." }] },
      { role: "user", content: [input_audio, { type: "input_file", filename: "a.pdf", file_data }] },
    ],
  });
  await response.text();
  assertEquals<unknown>(model.requests.map(({ messages }) => messages), [prompts, prompts]);
});
