import { agent, type Event, type Middleware, refused, serve, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { lookAndDrop } from "../support/asking.ts";
import { Chat, logOptions, stored, texts } from "../support/chat.ts";
import { halting } from "../support/halting.ts";
import { type App, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const wires = [aiSdkUi(), aiSdkMessages()];

for (const [name, options] of logOptions) {
  Deno.test(`useChat's regenerate() replaces the last answer, ${name}`, async () => {
    const model = scripted("One.", "Two.", "Three.");
    const app = serve(agent({ model }), { wires, ...options });
    const chat = new Chat(app);
    await chat.sendMessage({ text: "Hi" });
    await chat.regenerate();
    assertEquals(texts(chat), ["user Hi", "assistant Two."]);
    assertEquals(lines(model.requests[1]?.messages ?? []), ["user Hi"]);
    assertEquals(await stored(app), ["user Hi", "assistant Two."]);
    assertEquals(texts({ messages: await (await app.request("/chat/chat")).json() }), ["user Hi", "assistant Two."]);
    await chat.sendMessage({ text: "More" });
    assertEquals(await stored(app), ["user Hi", "assistant Two.", "user More", "assistant Three."]);
  });
}

Deno.test("useChat's regenerate() replaces an earlier answer, and removes what came after it", async () => {
  const model = scripted("One.", "Two.", "Three.");
  const app = serve(agent({ model }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "More" });
  const [, first] = chat.messages;
  await chat.regenerate({ messageId: first?.id ?? "" });
  assertEquals(texts(chat), ["user Hi", "assistant Three."]);
  assertEquals(await stored(app), ["user Hi", "assistant Three."]);
});

Deno.test("useChat's regenerate() replaces the last answer also if an earlier regenerate() waits for a person", async () => {
  let asks = false;
  const asking: Middleware = {
    name: "asking",
    async prompt(ctx, next) {
      if (asks && !ctx.resumed) throw ctx.run.pause("Again?");
      return await next();
    },
  };
  const app = serve(agent({ model: scripted("One.", "Two."), use: [asking] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  asks = true;
  await chat.regenerate();
  asks = false;
  await chat.regenerate({ messageId: chat.messages.findLast(({ role }) => role === "user")?.id ?? "" });
  assertEquals(await stored(app), ["user Hi", "assistant Two."]);
});

Deno.test("useChat's regenerate() of a prompt that waits in an input hook keeps an earlier prompt with the same text", async () => {
  let asks = false;
  const asking: Middleware = {
    name: "asking",
    input(ctx, next) {
      if (asks) throw ctx.run.pause("Again?");
      return next();
    },
  };
  const app = serve(agent({ model: scripted("One.", "Two.", "Three."), use: [asking] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "More" });
  const before = await stored(app);
  asks = true;
  await chat.sendMessage({ text: "Hi" });
  asks = false;
  await chat.regenerate();
  assertEquals(await stored(app), [...before, "user Hi", "assistant Three."]);
});

Deno.test("useChat's regenerate() replaces the context that an input hook added to the prompt", async () => {
  const clock: Middleware = { name: "clock", input: (_, next) => next({ context: ["It is noon."] }) };
  const app = serve(agent({ model: scripted("One.", "Two."), use: [clock] }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  const before = await stored(app);
  await chat.regenerate();
  assertEquals(before.length, 3);
  assertEquals(await stored(app), [...before.slice(0, -1), "assistant Two."]);
});

Deno.test("useChat's regenerate() replaces the last of two answers to the same prompt", async () => {
  const app = serve(agent({ model: scripted("One.", "Two.", "Three.") }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.sendMessage({ text: "Hi" });
  await chat.regenerate();
  assertEquals(await stored(app), ["user Hi", "assistant One.", "user Hi", "assistant Three."]);
});

Deno.test("useChat's regenerate() replaces an answer with calls, and a question with its pause", async () => {
  const { did, tools } = lookAndDrop();
  const model = scripted(
    { calls: [["look", { table: "a" }]] },
    { calls: [["drop", { table: "a" }]] },
    "Without calls.",
  );
  const app = serve(agent({ model, tools }), { wires });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Go" });
  const asked = chat.lastMessage?.parts.find((part) => "state" in part && part.state === "approval-requested");
  const { approval: { id } } = asked as unknown as { readonly approval: { readonly id: string } }; // a question has an approval
  const part = { toolCallId: "call_2", state: "approval-responded", approval: { id, approved: true } };
  const answered = [{ id: "m", role: "assistant", parts: [{ type: "tool-drop", ...part }] }];
  await chat.regenerate();
  assertEquals(await stored(app), ["user Go", "assistant Without calls."]);
  assertEquals((await refusalOf(post(app, "/chat", { id: "chat", messages: answered })))[0], 409);
  assertEquals(did, ["Found a"]);
});

Deno.test("useChat's regenerate() sends a prompt again that failed", async () => {
  let failures = 0;
  const use = [{
    name: "failing",
    async model<R>(_: unknown, next: () => Promise<R>): Promise<R> {
      if (failures++ === 0) throw new Error("No ink");
      return await next();
    },
  }];
  const app = serve(agent({ model: scripted("Hello."), use }), { wires, onError() {} });
  const chat = new Chat(app, { onError() {} });
  await chat.sendMessage({ text: "Hi" });
  assertEquals(chat.status, "error");
  await chat.regenerate();
  assertEquals([chat.status, texts(chat)], ["ready", ["user Hi", "assistant Hello."]]);
  assertEquals(await stored(app), ["user Hi", "assistant Hello."]);
});

Deno.test("useChat's regenerate() sends a prompt again that the session does not have", async () => {
  const app = serve(agent({ model: scripted("Hello.") }), { wires });
  const messages = [{ id: "m", role: "user" as const, parts: [{ type: "text" as const, text: "Hi" }] }];
  const chat = new Chat(app, { messages });
  await chat.regenerate();
  assertEquals(await stored(app), ["user Hi", "assistant Hello."]);
});

Deno.test("useChat's regenerate() waits for a run that another page has begun, and replaces its answer", async () => {
  const { model, begun, release } = halting();
  const app = serve(agent({ model }), { wires });
  const chat = new Chat(app);
  const sending = chat.sendMessage({ text: "Hi" });
  await begun;
  const messages = [{ id: "m", role: "user" as const, parts: [{ type: "text" as const, text: "Hi" }] }];
  const other = new Chat(app, { messages });
  const regenerating = other.regenerate();
  release();
  await Promise.all([sending, regenerating]);
  assertEquals([texts(other), await stored(app)], [
    ["user Hi", "assistant One. Two."],
    ["user Hi", "assistant One. Two."],
  ]);
});

Deno.test("useChat's regenerate() answers again on a server with resume tokens", async () => {
  const keys = [{ id: "k", secret: "x".repeat(32) }] as const;
  const app = serve(agent({ model: scripted("One.", "Two.") }), { wires, resumeTokens: resumeTokens({ keys }) });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  await chat.regenerate();
  assertEquals(texts(chat), ["user Hi", "assistant Two."]);
});

for (const point of ["session", "input", "prompt"] as const) {
  for (const first of [true, false]) {
    const which = first ? "the first prompt" : "a later prompt";
    Deno.test(`useChat's regenerate() of ${which} changes nothing if a ${point} hook refuses it`, async () => {
      let isRefused = false;
      const refuse = (_: unknown, next: () => Promise<never>) =>
        isRefused ? Promise.resolve(refused("The quota is used up.")) : next();
      const use = [{ name: "quota", [point]: refuse } as Middleware]; // a hook of any of the three points
      const app = serve(agent({ model: scripted("One.", "Two.", "Three."), use }), { wires });
      const chat = new Chat(app);
      if (!first) await chat.sendMessage({ text: "Before" });
      await chat.sendMessage({ text: "Hi" });
      const before = await stored(app);
      isRefused = true;
      await chat.regenerate();
      assertEquals(await stored(app), before);
      isRefused = false;
      await chat.regenerate();
      assertEquals(await stored(app), [...before.slice(0, -1), first ? "assistant Two." : "assistant Three."]);
    });
  }
}

Deno.test("only the owner of a chat can regenerate its answers", async () => {
  const owner: ServeOptions["owner"] = (c) => c.req.header("user") ?? "ada";
  const app = serve(agent({ model: scripted("One.", "Two.") }), { wires, owner });
  await new Chat(app).sendMessage({ text: "Hi" });
  const messages = [{ id: "m", role: "user", parts: [{ type: "text", text: "Hi" }] }];
  const body = { id: "chat", trigger: "regenerate-message", messages };
  await (await post(app, "/chat", body, { user: "mallory" })).text();
  assertEquals(await stored(app), ["user Hi", "assistant One."]);
});

/** Two models in one: it stops in the middle of its first answer, and answers "Hello." then. */
function haltingOnce() {
  const first = halting();
  const { stream } = first.model;
  const second = scripted("Hello.");
  let asked = 0;
  const model: typeof first.model = {
    id: "halting once",
    stream: (...args) => asked++ === 0 ? stream(...args) : second.stream(...args),
  };
  return { model, begun: first.begun, requests: second.requests };
}

const stops: Readonly<Record<string, (chat: Chat, app: App) => Promise<unknown>>> = {
  "useChat's stop()": (chat) => chat.stop(),
  "DELETE /chat/:id/stream": async (_, app) => {
    assertEquals((await app.request("/chat/chat/stream", { method: "DELETE" })).status, 204);
  },
};
for (const [what, stop] of Object.entries(stops)) {
  for (const [name, options] of logOptions) {
    if (what !== "DELETE /chat/:id/stream" && options.onClientGone === "detach") continue; // the run continues then
    Deno.test(`a message sent right after ${what} is answered, ${name}`, async () => {
      const { model, begun, requests } = haltingOnce();
      const ends: string[] = [];
      const observe = (event: Event) => void (/^run\.(finished|aborted)$/.test(event.type) && ends.push(event.type));
      const app = serve(agent({ model, observe }), { wires, ...options });
      const chat = new Chat(app);
      const sending = chat.sendMessage({ text: "Go" });
      await begun;
      await stop(chat, app);
      const next = new Chat(app);
      await next.sendMessage({ text: "Something else" });
      await sending;
      assertEquals([next.status, texts(next)], ["ready", ["user Something else", "assistant Hello."]]);
      assertEquals(ends, ["run.aborted", "run.finished"]);
      assertEquals(lines(requests[0]?.messages ?? []).at(-1), "user Something else");
    });
  }
}

Deno.test("a wire's message waits for its session, unless the server refuses it with the busy option", async () => {
  for (const [options, status] of [[{}, 200], [{ busy: "refuse" }, 409]] as const) {
    const { model, begun, release } = halting();
    const app = serve(agent({ model }), { wires, ...options });
    const first = new Chat(app).sendMessage({ text: "Go" });
    await begun;
    const messages = [{ id: "m", role: "user", parts: [{ type: "text", text: "More" }] }];
    const second = post(app, "/chat", { id: "chat", messages });
    setTimeout(release);
    const { status: given, body } = await second;
    await body?.cancel();
    await first;
    assertEquals(given, status);
  }
});

Deno.test("a native prompt is refused while another run has its session", async () => {
  const { model, begun, release } = halting();
  const app = serve(agent({ model }), { wires });
  const first = new Chat(app).sendMessage({ text: "Go" });
  await begun;
  assertEquals((await refusalOf(post(app, "/runs", { session: "chat", prompt: "More" })))[0], 409);
  release();
  await first;
});
