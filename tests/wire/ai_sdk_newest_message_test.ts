import { agent, serve, tool } from "@jizai/jizai";
import { newestMessageOnly } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "npm:ai@7.0.173";
import * as z from "zod";
import { blueOrRed } from "../support/asking.ts";
import { Chat, reaching, stored, texts } from "../support/chat.ts";
import { tooLarge } from "../support/requests.ts";

const wires = [aiSdkUi(), aiSdkMessages()];
const maxBody = 2_000;
const long = "long ".repeat(300); // 1,500 bytes: the history exceeds the body after the second message

/** A tool with a long output, one that a person approves, and one that the page runs. */
const tools = [
  tool({ name: "read", description: "Reads", input: z.object({}), execute: () => long }),
  tool({ name: "write", description: "Writes", input: z.object({ text: z.string() }), ask: true, execute: () => "Ok" }),
  tool({ name: "place", description: "The place of the page", input: z.object({}), ask: true, execute: () => "" }),
];

const read = { calls: [["read", {}]] } as const;

/** The approval that a chat is asked for. */
function approvalIn({ lastMessage }: Chat): string {
  const asked = lastMessage?.parts.findLast((part) => "state" in part && part.state === "approval-requested");
  const { approval: { id } } = asked as unknown as { readonly approval: { readonly id: string } }; // a question has an approval
  return id;
}

Deno.test("newestMessageOnly() sends prompts, edits and regenerate() of a conversation that is longer than a body", async () => {
  const app = serve(agent({ model: scripted(...Array.from({ length: 9 }, (_, index) => `${index} ${long}`)) }), {
    wires,
    maxBody,
  });
  const chat = new Chat(app);
  for (const text of ["a", "b", "c"]) await chat.sendMessage({ text: `${text} ${long}` });
  await chat.regenerate();
  await chat.sendMessage({ text: "d", messageId: chat.messages[2]?.id ?? "" });
  const [first] = chat.messages;
  await chat.sendMessage({ text: "e" });
  await chat.regenerate({ messageId: chat.messages[5]?.id ?? "" });
  const shown = texts(chat).map((text) => text.split(" ", 2).join(" "));
  assertEquals(shown, ["user a", "assistant 0", "user d", "assistant 4", "user e", "assistant 6"]);
  assertEquals(await stored(app), texts(chat));
  await chat.regenerate({ messageId: first?.id ?? "" });
  assertEquals(await stored(app), texts(chat));
  assertEquals([chat.status, chat.messages.length], ["ready", 2]);
});

Deno.test("newestMessageOnly() sends the approval at the end of a run that is longer than a body", async () => {
  const asking = { calls: [["write", { text: long }], ["write", { text: long }]] } as const;
  const app = serve(agent({ model: scripted(read, read, asking, "Done."), tools }), { wires, maxBody });
  const chat = new Chat(app, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  await chat.sendMessage({ text: "Go" });
  await chat.addToolApprovalResponse({ id: approvalIn(chat), approved: true });
  await chat.addToolApprovalResponse({ id: approvalIn(chat), approved: false, reason: "Enough" });
  await chat.settled();
  assertEquals([chat.error, chat.reported.at(-1)], [undefined, "text done Done."]);
});

Deno.test("newestMessageOnly() sends the output of a tool that the page runs at the end of such a run", async () => {
  const model = scripted(read, read, { calls: [["place", {}]] }, "In Kyoto.");
  const app = serve(agent({ model, tools }), { wires, maxBody });
  const chat = new Chat(app, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
  await chat.sendMessage({ text: "Where?" });
  await chat.addToolOutput({ tool: "place", toolCallId: "call_3", output: "Kyoto" });
  await chat.settled();
  assertEquals([chat.error, chat.reported.at(-1)], [undefined, "text done In Kyoto."]);
});

Deno.test("newestMessageOnly() sends the reply to a question after a long conversation, also after a reload", async () => {
  const app = serve(agent({ model: scripted(long, "One."), use: [blueOrRed("prompt")] }), { wires, maxBody });
  const chat = new Chat(app);
  for (const text of ["Hi", "Blue", "More"]) await chat.sendMessage({ text });
  const page = new Chat(app, { messages: await (await app.request("/chat/chat")).json() });
  await page.sendMessage({ text: "Red" });
  assertEquals(texts(page).at(-1), "assistant One.");
});

Deno.test("newestMessageOnly() keeps further fields of the body, and sends a first message alone", () => {
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] };
  const request = { id: "tab", trigger: "submit-message", messageId: undefined };
  assertEquals(newestMessageOnly({ ...request, messages: [message], body: { model: "m", id: "other" } }), {
    body: { model: "m", ...request, messages: [message] },
  });
  assertEquals(newestMessageOnly({ ...request, messages: [], body: undefined }), {
    body: { ...request, messages: [] },
  });
});

Deno.test("a chat that sends its whole history is told how to send less", async () => {
  const app = serve(agent({ model: scripted(long, "Hello.") }), { wires, maxBody });
  let error: Error | undefined;
  const transport = new DefaultChatTransport({ api: "/chat", fetch: reaching(app) });
  const chat = new Chat(app, { transport, onError: (each) => error = each });
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: long });
  assertEquals(JSON.parse(error?.message ?? "").error, tooLarge(maxBody)[1]);
});
