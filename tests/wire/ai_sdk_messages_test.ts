import { agent, memory, type Middleware, serve, type ServeOptions, tool, ToolError, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
  validateUIMessages,
} from "npm:ai@7.0.173";
import * as z from "zod";
import { blueOrRed, lookAndDrop } from "../support/asking.ts";
import { Chat } from "../support/chat.ts";
import { halting } from "../support/halting.ts";
import { type App, post, refusalOf } from "../support/requests.ts";

type Options = Parameters<typeof agent>[0];

function served(options: Options, serving: ServeOptions = {}): App {
  return serve(agent(options), { wires: [aiSdkUi(), aiSdkMessages()], ...serving });
}

/** Three tools, one of which asks and one of which fails, and their effects. */
function own() {
  const { did, tools } = lookAndDrop({ json: true });
  const print = tool({
    name: "print",
    description: "Prints",
    input: z.object({ table: z.string() }),
    execute: () => {
      throw new ToolError("No ink.");
    },
  });
  return { did, tools: [...tools, print] };
}

/** Creates the chat of a page that was just loaded. */
async function loaded(app: App): Promise<Chat> {
  const messages: UIMessage[] = await (await app.request("/chat/chat")).json();
  assertEquals(await validateUIMessages({ messages }), messages);
  return new Chat(app, { messages, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
}

/** Returns a line for each part of a chat. */
function shown({ messages }: Chat): string[] {
  return messages.flatMap(({ role, parts }) =>
    parts.map((part) => {
      const { type, state, parts, text, url, output, errorText, approval } = part as Readonly<Record<string, unknown>>;
      const values = [text, url, parts, output, errorText, (approval as { reason?: string } | undefined)?.reason];
      const words = values.filter((value) => value !== undefined)
        .map((value) => typeof value === "string" ? value : JSON.stringify(value));
      return [role, type, state, ...words].filter((word) => word !== undefined).join(" ");
    })
  );
}

/** Answers the last question of a chat, and waits for the response. */
async function answer(chat: Chat, approved: boolean): Promise<void> {
  const asked = chat.lastMessage?.parts.findLast((part) => "state" in part && part.state === "approval-requested");
  const { approval } = asked as unknown as { readonly approval: { readonly id: string } }; // a question has an approval
  await chat.addToolApprovalResponse({ id: approval.id, approved, ...(!approved && { reason: "Too dear" }) });
  await chat.settled();
}

const drops = { text: "See.", calls: [["drop", { table: "a" }], ["look", { table: "b" }]] } as const;

Deno.test("aiSdkMessages() returns texts, reasoning, files and results of calls", async () => {
  const { tools } = own();
  const model = scripted(
    { reasoning: "Hm.", text: "Let me.", calls: [["look", { table: "a" }], ["print", { table: "a" }]] },
    "Done.",
    { calls: [["drop", { table: "a" }]] },
    "A pity.",
  );
  const app = served({ model, tools });
  const chat = new Chat(app, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  const png = { type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw==" } as const;
  const jpg = { type: "file", mediaType: "image/jpeg", url: "https://example.com/a.jpg" } as const;
  await chat.sendMessage({ text: "Go", files: [png, jpg] });
  await chat.sendMessage({ text: "Drop it" });
  await answer(chat, false);
  const before = [
    `user file ${png.url}`,
    `user file ${jpg.url}`,
    "user text Go",
    "assistant step-start",
    "assistant reasoning done Hm.",
    "assistant text done Let me.",
    `assistant tool-look output-available {"found":"a"}`,
    "assistant tool-print output-error No ink.",
    "assistant step-start",
    "assistant text done Done.",
    "user text Drop it",
    "assistant step-start",
  ];
  const after = ["assistant step-start", "assistant text done A pity."];
  const anew = await loaded(app);
  assertEquals(shown(chat), [...before, "assistant tool-drop output-denied Too dear", ...after]);
  assertEquals(shown(anew), [...before, "assistant tool-drop output-denied A person said no: Too dear", ...after]);
  assertEquals(anew.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assertEquals(anew.lastMessage?.id, chat.lastMessage?.id);
});

for (const named of [false, true]) {
  const how = named ? "in a store that is named" : "in the memory of the server";
  Deno.test(`aiSdkMessages() returns open questions, and the chat continues with the answer and follows its run, ${how}`, async () => {
    const { did, tools } = own();
    const model = scripted(drops, "Done.", "Again.");
    const app = served({ model, tools }, { onClientGone: "detach", ...(named && { store: memory() }) });
    await new Chat(app).sendMessage({ text: "Go" });
    const chat = await loaded(app);
    const before = ["user text Go", "assistant step-start", "assistant text done See."];
    const lookResult = `assistant tool-look output-available {"found":"b"}`;
    assertEquals(shown(chat), [...before, "assistant tool-drop approval-requested", lookResult]);
    await chat.resumeStream();
    assertEquals(shown(chat), [...before, "assistant tool-drop approval-requested", lookResult]);
    await answer(chat, true);
    const after = [...before, `assistant tool-drop output-available {"dropped":"a"}`, lookResult];
    assertEquals(shown(chat), [...after, "assistant step-start", "assistant text done Done."]);
    const anew = await loaded(app);
    await anew.resumeStream();
    assertEquals(shown(anew), shown(chat));
    await anew.sendMessage({ text: "More" });
    assertEquals(shown(anew).slice(-3), ["user text More", "assistant step-start", "assistant text done Again."]);
    assertEquals([anew.messages.length, anew.status, did], [4, "ready", ["found b", "dropped a"]]);
  });
}

Deno.test("aiSdkMessages() returns the messages before an active run", async () => {
  const { model, begun, release } = halting();
  const app = served({ model }, { onClientGone: "detach" });
  const sending = new Chat(app).sendMessage({ text: "Go" });
  await begun;
  const chat = await loaded(app);
  assertEquals(shown(chat), ["user text Go"]);
  const resuming = chat.resumeStream();
  release();
  await resuming;
  await sending;
  assertEquals(shown(chat), ["user text Go", "assistant step-start", "assistant text done One. Two."]);
});

Deno.test("aiSdkMessages() returns a steering message inside the answer, as the stream does", async () => {
  const going = Promise.withResolvers<string>();
  const gate = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    async execute(_input, { run }) {
      going.resolve(run.id);
      await gate.promise;
      return "Waited.";
    },
  });
  const model = scripted("Hello.", { calls: [["wait", {}]] }, "Blue it is.", "Bye.");
  const app = served({ model, tools: [wait] }, { onClientGone: "detach" });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  const sending = chat.sendMessage({ text: "Paint" });
  const run = await going.promise;
  assertEquals((await post(app, `/runs/${run}/messages`, { text: "In blue" })).status, 202);
  gate.resolve();
  await sending;
  const hi = ["user text Hi", "assistant step-start", "assistant text done Hello."];
  const paint = ["user text Paint", "assistant step-start", "assistant tool-wait output-available Waited."];
  const blue = `assistant steering-message [{"type":"text","text":"In blue"}]`;
  const all = [...hi, ...paint, blue, "assistant step-start", "assistant text done Blue it is."];
  const anew = await loaded(app);
  assertEquals([shown(chat), shown(anew)], [all, all]);
  await anew.resumeStream();
  assertEquals(shown(anew), all);
  await anew.sendMessage({ text: "Bye" });
  assertEquals(shown(await loaded(app)).filter((line) => line.startsWith("user")), [
    "user text Hi",
    "user text Paint",
    "user text In blue", // its role as a steering message is not stored
    "user text Bye",
  ]);
});

Deno.test("aiSdkMessages() returns questions about the calls of subagents", async () => {
  const { did, tools } = own();
  const child = agent({ name: "child", model: scripted(drops, "Both."), tools });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const app = served({ model, tools: [asTool(child)] });
  await new Chat(app).sendMessage({ text: "Go" });
  const chat = await loaded(app);
  assertEquals(shown(chat), [
    "user text Go",
    "assistant step-start",
    "assistant tool-child output-available Run drop?",
    "assistant tool-drop approval-requested",
    `assistant tool-look output-available {"found":"b"}`,
  ]);
  await answer(chat, true);
  assertEquals([chat.status, did], ["ready", ["found b", "dropped a"]]);
  assertEquals(shown(chat).at(-1), "assistant text done Done.");
});

Deno.test("aiSdkMessages() returns a question of a hook, and a prompt that is not accepted yet", async () => {
  const app = served({ model: scripted("Red it is."), use: [blueOrRed("prompt")] });
  await new Chat(app).sendMessage({ text: "Paint" });
  const chat = await loaded(app);
  assertEquals(shown(chat), ["user text Paint", "assistant text done Blue or red?"]);
  await chat.sendMessage({ text: "Red" });
  assertEquals(shown(await loaded(app)), ["user text Paint", "assistant step-start", "assistant text done Red it is."]);
});

Deno.test("aiSdkMessages() returns a prompt only as the input hooks have reviewed it", async () => {
  const reviewing: Middleware = {
    name: "reviewing",
    input(ctx, next) {
      if (ctx.run.answers.length === 0) throw ctx.run.pause("May I store this?");
      return next({ messages: [user("My code is ****")] });
    },
    prompt(ctx) {
      throw ctx.run.pause("Which door?");
    },
  };
  const app = served({ model: scripted(), use: [reviewing] });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "My code is 1234" });
  assertEquals(shown(await loaded(app)), ["assistant text done May I store this?"]);
  await chat.sendMessage({ text: "Yes" });
  const asked = ["user text My code is ****", "assistant text done Which door?"];
  assertEquals(shown(await loaded(app)), asked);
});

Deno.test("aiSdkMessages() returns 404 for a chat of another owner, and for an unknown chat", async () => {
  const app = served({ model: scripted("Hello.") }, { owner: (c) => c.req.header("who") });
  const body = { id: "chat", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }] };
  await (await post(app, "/chat", body, { who: "ada" })).text();
  const as = (who: string, chat = "chat") => app.request(`/chat/${chat}`, { headers: { who } });
  const refused = (chat: string) =>
    [404, { code: "unknown", message: `Cannot show session "${chat}": there is none` }] as const;
  assertEquals((await as("ada")).status, 200);
  assertEquals(await refusalOf(as("eve")), refused("chat"));
  assertEquals(await refusalOf(as("ada", "other")), refused("other"));
  assertEquals((await as("")).status, 403);
  assertEquals((await post(app, "/chat/chat", {})).headers.get("allow"), "GET, HEAD");
});
