import { agent, cancelled, type Middleware, refused, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import { Chat, reaching } from "../support/chat.ts";
import type { App } from "../support/requests.ts";

const reason = "Too many requests: try again in 60 s.";

/** Middleware that refuse a run, by their point. */
const refusing: Readonly<Record<string, Middleware>> = {
  session: { name: "refusing", session: () => Promise.resolve(refused(reason)) },
  input: { name: "refusing", input: () => Promise.resolve(refused(reason)) },
  prompt: { name: "refusing", prompt: () => Promise.resolve(cancelled(reason)) },
};

function appWith(middleware: Middleware): App {
  const wires = [agUi(), aiSdkUi(), chatCompletions(), responses()];
  return serve(agent({ model: scripted("Hello.", "Again."), use: [middleware] }), { wires });
}

function openAiClient(app: App): OpenAI {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}

const hi = { model: "any", messages: [{ role: "user" as const, content: "Hi" }] };

for (const [point, middleware] of Object.entries(refusing)) {
  Deno.test(`chatCompletions() sends the reason why a ${point} hook refused the run as a refusal`, async () => {
    const client = openAiClient(appWith(middleware));
    const whole = await client.chat.completions.create(hi);
    const streamed = await client.chat.completions.stream(hi).finalChatCompletion();
    for (const { choices: [choice] } of [whole, streamed]) {
      const { content, refusal } = choice?.message ?? {};
      assertEquals([content || null, refusal, choice?.finish_reason], [null, reason, "stop"]);
    }
  });

  Deno.test(`responses() sends the reason why a ${point} hook refused the run as a refusal`, async () => {
    const client = openAiClient(appWith(middleware));
    const whole = await client.responses.create({ input: "Hi" });
    const streamed = await client.responses.stream({ input: "Hi" }).finalResponse();
    for (const { status, output } of [whole, streamed]) {
      const content = output.map((item) =>
        item.type === "message" && item.content.map((part) => [part.type, part.type === "refusal" && part.refusal])
      );
      assertEquals([status, content], ["completed", [[["refusal", reason]]]]);
    }
  });

  Deno.test(`agUi() sends the reason why a ${point} hook refused the run as an error`, async () => {
    const client = new HttpAgent({ url: "/ag-ui", threadId: "thread", fetch: reaching(appWith(middleware)) });
    client.addMessage({ id: "m", role: "user", content: "Hi" });
    const errors: unknown[] = [];
    await client.runAgent({}, {
      onRunErrorEvent: ({ event: { message, code } }) => void errors.push([message, code]),
      onRunFinishedEvent: ({ event }) => void errors.push(event),
    });
    assertEquals(errors, [[reason, "cancelled"]]);
  });

  Deno.test(`aiSdkUi() sends the reason why a ${point} hook refused the run as metadata`, async () => {
    const chat = new Chat(appWith(middleware));
    await chat.sendMessage({ text: "Hi" });
    const { status, reason: given } = Object(chat.lastMessage?.metadata);
    assertEquals([status, given], ["cancelled", reason]);
  });
}

Deno.test("OpenAI's wires send a refusal also to a client that asks for JSON", async () => {
  const client = openAiClient(appWith(refusing.input as Middleware)); // it is there
  const { choices: [choice] } = await client.chat.completions.parse({
    ...hi,
    response_format: { type: "json_object" },
  });
  assertEquals([choice?.message.refusal, choice?.message.parsed ?? null], [reason, null]);
  const { output } = await client.responses.stream({ input: "Hi", text: { format: { type: "json_object" } } })
    .finalResponse();
  assertEquals(output.map((item) => item.type === "message" && item.content.map(({ type }) => type)), [["refusal"]]);
});
