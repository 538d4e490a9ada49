import { agent, type Model, type ModelEvent, rewrite, user } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { screen } from "@jizai/jizai/screen";
import { assertEquals, assertRejects } from "@std/assert";
import { responseStream } from "../support/providers/openai_responses.ts";
import { readAll, recordRequests, sse } from "../support/providers/sse.ts";

/** Returns the parts that were complete at once. */
function partsOf(events: readonly ModelEvent[]) {
  return events.flatMap((event) => event.type === "part" ? [event.part] : []);
}

function chat(...choices: readonly object[]): string {
  return sse([...choices, { delta: {}, finish_reason: "stop" }].map((choice) => ({ choices: [choice] })));
}

const tokens = [
  { token: "Hi", logprob: -0.1, top: [{ token: "Hi", logprob: -0.1 }, { token: "Hey", logprob: -2 }] },
  { token: " you", logprob: -0.5 },
];
const openaiTokens = tokens.map(({ token, logprob, top = [] }) => ({ token, logprob, bytes: null, top_logprobs: top }));

Deno.test("openai() requests log probabilities and keeps those of all chunks as one part", async () => {
  const { sent, fetch } = recordRequests(
    chat(
      { delta: { content: "Hi" }, logprobs: { content: openaiTokens.slice(0, 1), refusal: null } },
      { delta: { content: " you" }, logprobs: { content: openaiTokens.slice(1), refusal: null } },
    ),
  );
  const model = openai({ model: "m", fetch });
  const events = (await readAll(model, { messages: [user("Hi")], options: { logprobs: 2 } })).flat();
  assertEquals([sent[0]?.body.logprobs, sent[0]?.body.top_logprobs], [true, 2]);
  assertEquals(partsOf(events), [{ type: "logprobs", tokens }]);
});

Deno.test("openaiResponses() requests log probabilities and keeps those of the message", async () => {
  const content = [{ type: "output_text", text: "Hi you", annotations: [], logprobs: openaiTokens }];
  const item = { type: "message", id: "msg_1", role: "assistant", content };
  const { sent, fetch } = recordRequests(
    responseStream([{ type: "response.output_item.done", output_index: 0, item }]),
  );
  const model = openaiResponses({ model: "m", fetch });
  const events = (await readAll(model, { messages: [user("Hi")], options: { logprobs: 2 } })).flat();
  assertEquals(sent[0]?.body.top_logprobs, 2);
  assertEquals(sent[0]?.body.include, ["reasoning.encrypted_content", "message.output_text.logprobs"]);
  assertEquals(partsOf(events), [{ type: "logprobs", tokens }]);
});

Deno.test("gemini() requests log probabilities and keeps those of all chunks", async () => {
  const of = ({ token, logprob }: { token: string; logprob: number }) => ({ token, logProbability: logprob });
  const chunks = tokens.map(({ top = [], ...token }, index) => ({
    candidates: [{
      content: { parts: [{ text: token.token }] },
      ...(index === 1 && { finishReason: "STOP" }),
      logprobsResult: { chosenCandidates: [of(token)], topCandidates: [{ candidates: top.map(of) }] },
    }],
  }));
  const { sent, fetch } = recordRequests(sse(chunks));
  const model = gemini({ model: "m", fetch });
  const events = (await readAll(model, { messages: [user("Hi")], options: { logprobs: 2 } })).flat();
  const { responseLogprobs, logprobs } = sent[0]?.body.generationConfig;
  assertEquals([responseLogprobs, logprobs], [true, 2]);
  assertEquals(partsOf(events), [{ type: "logprobs", tokens }]);
});

Deno.test("anthropic() rejects log probabilities, which its API lacks", async () => {
  const { fetch } = recordRequests("");
  const error = await assertRejects(
    () => readAll(anthropic({ model: "m", fetch }), { options: { logprobs: 0 } }),
    Error,
  );
  assertEquals(error.message, "Cannot ask m: the messages API has no option logprobs");
});

Deno.test("every adapter keeps a refusal as a part, besides its text", async () => {
  const chatEvents = await readAll(
    openai({
      model: "m",
      fetch: recordRequests(chat({ delta: { refusal: "I can" } }, { delta: { refusal: "not." } })).fetch,
    }),
  );
  assertEquals(partsOf(chatEvents.flat()), [{ type: "refusal", text: "I cannot." }]);

  const stopped = {
    type: "message_delta",
    delta: { stop_reason: "refusal", stop_details: { type: "refusal", category: "bio", explanation: "Not that." } },
  };
  const messageEvents = await readAll(anthropic({ model: "m", fetch: recordRequests(sse([stopped])).fetch }));
  assertEquals(partsOf(messageEvents.flat()), [{ type: "refusal", text: "Not that.", category: "bio" }]);

  const blocked = { promptFeedback: { blockReason: "SAFETY", blockReasonMessage: "Blocked." } };
  const blockedEvents = await readAll(gemini({ model: "m", fetch: recordRequests(sse([blocked])).fetch }));
  assertEquals(partsOf(blockedEvents.flat()), [{ type: "refusal", text: "Blocked.", category: "SAFETY" }]);
});

Deno.test("openaiResponses() sends a refusal back as a refusal", async () => {
  const refused = [
    { type: "response.refusal.delta", output_index: 0, delta: "I cannot" },
    { type: "response.refusal.delta", output_index: 0, delta: " help." },
  ];
  const { sent, fetch } = recordRequests(responseStream(refused));
  const assistant = agent({ model: openaiResponses({ model: "m", fetch }) });
  const { text, messages } = await assistant.run("Help").result;
  assertEquals(text, "I cannot help.");
  assertEquals(messages[1]?.role === "assistant" && messages[1].parts, [
    { type: "text", text: "I cannot help." },
    { type: "refusal", text: "I cannot help." },
  ]);
  await assistant.run({ messages: [...messages, user("Please")] }).result;
  assertEquals(sent[1]?.body.input[1], {
    role: "assistant",
    content: [{ type: "refusal", refusal: "I cannot help." }],
  });
});

Deno.test("openai() keeps speech as one file and its transcript as text, and refers to it in the next request", async () => {
  const audio = [
    { id: "audio_1", transcript: "Hel" },
    { data: btoa("ab") },
    { transcript: "lo.", data: btoa("cde") },
    { expires_at: 1_700_000_000 },
  ];
  const { sent, fetch } = recordRequests(chat(...audio.map((piece) => ({ delta: { audio: piece } }))));
  const assistant = agent({ model: openai({ model: "m", fetch }) });
  const { text, messages } = await assistant.run("Speak").result;
  const file = {
    type: "media",
    mediaType: "audio/pcm;rate=24000",
    data: btoa("abcde"),
    meta: { model: "m", audio: "audio_1" },
  };
  assertEquals([text, messages[1]?.role === "assistant" && messages[1].parts[1]], ["Hello.", file as never]);
  await assistant.run({ messages: [...messages, user("Again")] }).result;
  assertEquals(sent[1]?.body.messages[1], { role: "assistant", content: "Hello.", audio: { id: "audio_1" } });
  const other = recordRequests(chat());
  await readAll(openai({ model: "another", fetch: other.fetch }), { messages });
  assertEquals(other.sent[0]?.body.messages[1], {
    role: "assistant",
    content: "Hello.\n[You generated a file of type audio/pcm;rate=24000]",
  });
});

const secretTokens = [{ token: "hun", logprob: -1 }, { token: "ter2", logprob: -1 }];
const refusal = { type: "refusal", text: "Not hunter2" } as const;

/** A model that writes a secret, with its tokens. */
function leaking(): Model {
  return scripted({
    reads: [[
      { type: "text", text: "hunter2" },
      { type: "part", part: { type: "logprobs", tokens: secretTokens } },
      { type: "part", part: refusal },
      { type: "finish", reason: "stop" },
    ]],
  });
}

Deno.test("a hook that rewrites text also rewrites the refusal, and leaves out the tokens of the text", async () => {
  const hide = (text: string) => text.replaceAll("hunter2", "***");
  const hooks = {
    redact: redact({ secrets: ["hunter2"] }),
    rewrite: { name: "hide", model: rewrite({ text: (text, at) => at === "more" ? ["", text] : [hide(text), ""] }) },
    screen: {
      name: "guard",
      model: screen({ window: 100, check: ({ text }) => ({ type: "replace", text: hide(text) }) }),
    },
  };
  for (const [name, hook] of Object.entries(hooks)) {
    const run = agent({ model: leaking(), use: [hook] }).run("Hi");
    const events = await Array.fromAsync(run.events);
    const { messages } = await run.result;
    const added = events.flatMap((event) => event.type === "part.added" ? [event.content] : []);
    const shown = JSON.stringify([added.filter(({ type }) => type === "logprobs"), messages]);
    assertEquals([name, shown.includes("ter2")], [name, name === "screen" && shown.includes("Not hunter2")]);
  }
});
