import { agent, type Middleware, refused, serve, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import type { UIMessage } from "npm:ai@7.0.173";
import { blueOrRed, lookAndDrop } from "../support/asking.ts";
import { Chat, logOptions, stored, texts } from "../support/chat.ts";
import { type App, post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const wires = [aiSdkUi(), aiSdkMessages()];

/** Replaces the text of the message at `index` of a chat, as a page does after an edit. */
async function edit(chat: Chat, index: number, text: string): Promise<void> {
  await chat.sendMessage({ text, messageId: chat.messages[index]?.id ?? "" });
}

/** Returns the messages of a page that is reloaded. */
async function reloaded(app: App): Promise<UIMessage[]> {
  return await (await app.request("/chat/chat")).json();
}

for (const [name, options] of logOptions) {
  Deno.test(`an edited message of useChat replaces the conversation from that message on, ${name}`, async () => {
    const model = scripted("One.", "Two.", "Three.", "Four.", "Five.");
    const app = serve(agent({ model }), { wires, ...options });
    const chat = new Chat(app);
    await chat.sendMessage({ text: "Hi" });
    await chat.sendMessage({ text: "More" });
    await edit(chat, 2, "Less");
    const first = ["user Hi", "assistant One.", "user Less", "assistant Three."];
    assertEquals([texts(chat), await stored(app)], [first, first]);
    assertEquals(lines(model.requests[2]?.messages ?? []), first.slice(0, 3));
    await edit(chat, 0, "Hello");
    const second = ["user Hello", "assistant Four."];
    assertEquals([texts(chat), await stored(app), texts({ messages: await reloaded(app) })], [second, second, second]);
    assertEquals((await reloaded(app)).map(({ id }) => id), chat.messages.map(({ id }) => id));
    assertEquals(lines(model.requests[3]?.messages ?? []), ["user Hello"]);
    await chat.sendMessage({ text: "More" });
    assertEquals(await stored(app), [...second, "user More", "assistant Five."]);
  });
}

Deno.test("a reloaded page has the ids of its user messages, and can edit them", async () => {
  const app = serve(agent({ model: scripted("One.", "Two.", "Three.") }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "More" });
  const messages = await reloaded(app);
  const userIds = (all: readonly UIMessage[]) => all.filter(({ role }) => role === "user").map(({ id }) => id);
  assertEquals(userIds(messages), userIds(chat.messages));
  const again = new Chat(app, { messages });
  await edit(again, 2, "Less");
  assertEquals(await stored(app), ["user Hi", "assistant One.", "user Less", "assistant Three."]);
});

Deno.test("a reloaded page can edit a prompt that no page of useChat has sent", async () => {
  const app = serve(agent({ model: scripted("One.", "Two.", "Three.", "Four.") }), { wires });
  await new Chat(app).sendMessage({ text: "Hi" });
  await (await post(app, "/runs", { session: "chat", prompt: "More" })).text();
  const chat = new Chat(app, { messages: await reloaded(app) });
  await edit(chat, 2, "Less");
  await edit(chat, 2, "Nothing");
  assertEquals(await stored(app), ["user Hi", "assistant One.", "user Nothing", "assistant Four."]);
});

Deno.test("an edit replaces the named one of several equal messages, whatever an input hook made of it", async () => {
  const rewriting: Middleware = {
    name: "rewriting",
    input: ({ messages }, next) =>
      next({
        messages: messages.map((message) =>
          message.role === "user" ? { ...message, parts: [{ type: "text", text: "***" }] } : message
        ),
        context: ["It is noon."],
      }),
  };
  const app = serve(agent({ model: scripted("One.", "Two.", "Three.", "Four."), use: [rewriting] }), { wires });
  const chat = new Chat(app);
  for (let sent = 0; sent < 3; sent++) await chat.sendMessage({ text: "Hi" });
  const before = await stored(app);
  assertEquals(before.length, 9);
  await edit(chat, 2, "Hi");
  assertEquals(await stored(app), [...before.slice(0, 5), "assistant Four."]);
});

Deno.test("useChat's regenerate() answers the message again whose content an input hook has changed", async () => {
  const masking: Middleware = {
    name: "masking",
    input: ({ messages: [message] }, next) =>
      next({ messages: message?.role === "user" ? [{ ...message, parts: [{ type: "text", text: "***" }] }] : [] }),
  };
  const app = serve(agent({ model: scripted("One.", "Two."), use: [masking] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.regenerate();
  assertEquals(await stored(app), ["user ***", "assistant Two."]);
});

Deno.test("an edit ends the pause of a run that waits for an approval", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Without calls.");
  const app = serve(agent({ model, tools }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Go" });
  await edit(chat, 0, "Stay");
  assertEquals([await stored(app), did], [["user Stay", "assistant Without calls."], []]);
});

for (const point of ["input", "prompt"] as const) {
  Deno.test(`an edited message does not answer the question of a hook at ${point}`, async () => {
    let asks = true;
    const asking = {
      name: "asking",
      async [point]<R>(ctx: Parameters<NonNullable<Middleware["prompt"]>>[0], next: () => Promise<R>): Promise<R> {
        if (asks) throw ctx.run.pause("Which one?");
        return await next();
      },
    } as Middleware; // a hook of either point
    const app = serve(agent({ model: scripted("One."), use: [asking] }), { wires });
    const chat = new Chat(app);
    await chat.sendMessage({ text: "Go" });
    asks = false;
    await edit(chat, 0, "Stay");
    assertEquals([await stored(app), texts(chat)], [["user Stay", "assistant One."], ["user Stay", "assistant One."]]);
  });
}

Deno.test("a page that is reloaded while an edit waits for a person shows the conversation without the replaced part", async () => {
  let asks = false;
  const asking: Middleware = {
    name: "asking",
    async prompt(ctx, next) {
      if (asks) throw ctx.run.pause("Sure?");
      return await next();
    },
  };
  const app = serve(agent({ model: scripted("One.", "Two.", "Three."), use: [asking] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "More" });
  asks = true;
  await edit(chat, 2, "Less");
  asks = false;
  const messages = await reloaded(app);
  const again = new Chat(app, { messages });
  assertEquals(texts(again), ["user Hi", "assistant One.", "user Less", "assistant Sure?"]);
  await again.sendMessage({ text: "Yes" });
  assertEquals(await stored(app), ["user Hi", "assistant One.", "user Less", "assistant Three."]);
});

for (const point of ["session", "input", "prompt"] as const) {
  Deno.test(`an edit changes nothing if a ${point} hook refuses it, and can be sent again`, async () => {
    let isRefused = false;
    const refuse = (_: unknown, next: () => Promise<never>) =>
      isRefused ? Promise.resolve(refused("The quota is used up.")) : next();
    const use = [{ name: "quota", [point]: refuse } as Middleware]; // a hook of any of the three points
    const app = serve(agent({ model: scripted("One.", "Two.", "Three."), use }), { wires });
    const chat = new Chat(app);
    await chat.sendMessage({ text: "Hi" });
    await chat.sendMessage({ text: "More" });
    const before = await stored(app);
    isRefused = true;
    await edit(chat, 2, "Less");
    assertEquals(await stored(app), before);
    isRefused = false;
    await edit(chat, 2, "Nothing");
    assertEquals(await stored(app), [...before.slice(0, 2), "user Nothing", "assistant Three."]);
  });
}

Deno.test("an edit of a message that the session does not have removes nothing", async () => {
  let isRefused = false;
  const use: Middleware[] = [{
    name: "quota",
    input: (_, next) => isRefused ? Promise.resolve(refused("No.")) : next(),
  }];
  const app = serve(agent({ model: scripted("One.", "Two.", "Three."), use }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "More" });
  isRefused = true;
  await chat.sendMessage({ text: "My secret" });
  isRefused = false;
  const before = await stored(app);
  await edit(chat, chat.messages.findLastIndex(({ role }) => role === "user"), "Hi"); // as an earlier message
  assertEquals(await stored(app), [...before, "user Hi", "assistant Three."]);
});

Deno.test("an edit of an answer gives it again on a server with resume tokens", async () => {
  const keys = [{ id: "k", secret: "x".repeat(32) }] as const;
  const model = scripted("One.", "Two.");
  const app = serve(agent({ model, use: [blueOrRed("prompt")] }), { wires, resumeTokens: resumeTokens({ keys }) });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Go" });
  await chat.sendMessage({ text: "Red" });
  await edit(chat, 2, "Blue");
  assertEquals(texts(chat), ["user Go", "assistant Blue or red?", "user Blue", "assistant Two."]);
  assertEquals(lines(model.requests[1]?.messages ?? [])[0], "user Go");
});

Deno.test("an answer that could not be sent answers the question also if it is edited or sent again", async () => {
  for (const text of ["Blue", undefined]) {
    const app = serve(agent({ model: scripted("One."), use: [blueOrRed("prompt")] }), { wires });
    let isOffline = false;
    const connection: App = {
      request: (...request) => isOffline ? Promise.reject(new TypeError("offline")) : app.request(...request),
    };
    const chat = new Chat(connection, { onError() {} });
    await chat.sendMessage({ text: "Go" });
    isOffline = true;
    await chat.sendMessage({ text: "Red" });
    assertEquals(chat.status, "error");
    isOffline = false;
    await (text === undefined ? chat.sendMessage() : edit(chat, 2, text));
    const expected = ["user Go", "assistant Blue or red?", `user ${text ?? "Red"}`, "assistant One."];
    assertEquals([texts(chat), await stored(app)], [expected, ["user Go", "assistant One."]]);
  }
});

Deno.test("an edit of the answer to an earlier question does not answer the open one", async () => {
  const seen: unknown[] = [];
  const confirm: Middleware = {
    name: "confirm",
    async turn({ run }, next) {
      seen.push(run.answers.map((answer) => answer.type === "reply" ? answer.text : answer.type));
      if (run.answers.at(-1)?.type !== "reply" || seen.length < 3) throw run.pause("Really?");
      return await next();
    },
  };
  const app = serve(agent({ model: scripted("One."), use: [blueOrRed("prompt"), confirm] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Go" });
  await chat.sendMessage({ text: "Red" });
  assertEquals(texts(chat).at(-1), "assistant Really?");
  await edit(chat, 2, "Blue");
  assertEquals(texts(chat).at(-1), "assistant Blue or red?"); // the edit is a new prompt
  assertEquals(seen, [["Red"]]);
});

Deno.test("an answer of a page that was reloaded answers the question if it is sent again", async () => {
  const app = serve(agent({ model: scripted("One."), use: [blueOrRed("prompt")] }), { wires });
  await new Chat(app).sendMessage({ text: "Go" });
  let isOffline = true;
  const connection: App = {
    request: (...request) => isOffline ? Promise.reject(new TypeError("offline")) : app.request(...request),
  };
  const chat = new Chat(connection, { messages: await reloaded(app), onError() {} });
  await chat.sendMessage({ text: "Red" });
  isOffline = false;
  await chat.sendMessage();
  assertEquals(texts(chat), ["user Go", "assistant Blue or red?", "user Red", "assistant One."]);
  assertEquals(await stored(app), ["user Go", "assistant One."]);
});

Deno.test("an id of a message that is no text is left out", async () => {
  const app = serve(agent({ model: scripted("One.") }), { wires });
  const messages = [{ id: 7, role: "user", parts: [{ type: "text", text: "Hi" }] }];
  const response = await post(app, "/chat", { id: "chat", messages });
  await response.text();
  assertEquals([response.status, await stored(app)], [200, ["user Hi", "assistant One."]]);
});

Deno.test("only the owner of a chat can edit its messages", async () => {
  const owner: ServeOptions["owner"] = (c) => c.req.header("user") ?? "ada";
  const app = serve(agent({ model: scripted("One.", "Two.") }), { wires, owner });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  const [message] = chat.messages;
  const body = { id: "chat", trigger: "submit-message", messageId: message?.id, messages: [message] };
  await (await post(app, "/chat", body, { user: "mallory" })).text();
  assertEquals(await stored(app), ["user Hi", "assistant One."]);
});
