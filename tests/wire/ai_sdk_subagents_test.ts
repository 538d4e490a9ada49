import {
  agent,
  type AnyTool,
  type Event,
  memory,
  type Message,
  type Middleware,
  reply,
  serve,
  type ServeOptions,
  tool,
  tryAgain,
} from "@jizai/jizai";
import { estimateTokens } from "@jizai/jizai/kit";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
  validateUIMessages,
} from "npm:ai@7.0.173";
import * as z from "zod";
import { lookAndDrop, order } from "../support/asking.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";
import { Chat } from "../support/chat.ts";
import { readAll } from "../support/providers/sse.ts";
import { recordingModels } from "../support/providers/recording.ts";
import { type App, post } from "../support/requests.ts";

type Parent = Omit<Parameters<typeof agent>[0], "model" | "tools">;

/** Serves an agent with these tools. */
function served(
  steps: readonly ScriptedAnswer[],
  tools: readonly AnyTool[],
  options: ServeOptions & Pick<Parent, "use"> = {},
): App {
  const { use = [], ...serving } = options;
  const wires = [aiSdkUi(), aiSdkMessages()];
  return serve(agent({ model: scripted(...steps), tools, use }), { wires, onError: () => {}, ...serving });
}

/** A subagent as a tool. */
function helper(name: string, steps: readonly ScriptedAnswer[], tools: readonly AnyTool[], use: Middleware[] = []) {
  return asTool(agent({ name, description: "Helps", model: scripted(...steps), tools, use }));
}

const callHelper = { calls: [["helper", { prompt: "Help" }]] } as const;

function chatWith(app: App, messages: UIMessage[] = []): Chat {
  return new Chat(app, {
    messages,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
}

/** Returns parts as JSON has them. The reason of a denial is as the server sends it: the chat that sent it has the words of the person. */
function partsOf(message: UIMessage | undefined): readonly Readonly<Record<string, unknown>>[] {
  return JSON.parse(JSON.stringify(message?.parts ?? []).replaceAll(`"Too dear"`, `"A person said no: Too dear"`));
}

/** Returns the last message after a reload. Its parts are valid for the AI SDK. */
async function reloaded(app: App): Promise<UIMessage | undefined> {
  const messages: UIMessage[] = await (await app.request("/chat/chat")).json();
  assertEquals(await validateUIMessages({ messages }), messages);
  return messages.at(-1);
}

/** Expects that the chat shows these parts, each as its type, id and state, and that it shows the same after a reload. */
async function expectParts(app: App, chat: Chat, expected: readonly string[]): Promise<void> {
  const parts = partsOf(chat.lastMessage);
  assertEquals(
    parts.map(({ type, toolCallId, state }) =>
      [type, toolCallId, state].filter((word) => word !== undefined).join(" ")
    ),
    expected,
  );
  assertEquals(partsOf(await reloaded(app)), parts);
}

/** Answers the last question of a chat, and waits for the response. */
async function answer(chat: Chat, approved: boolean, reason?: string): Promise<void> {
  const asked = chat.lastMessage?.parts.findLast((part) => "state" in part && part.state === "approval-requested");
  const { approval } = asked as unknown as { readonly approval: { readonly id: string } }; // a question has an approval
  await chat.addToolApprovalResponse({ id: approval.id, approved, ...(reason !== undefined && { reason }) });
  await chat.settled();
}

Deno.test("useChat shows the calls of a subagent after a reload as it did before", async () => {
  const { tools } = lookAndDrop({ json: true });
  const bad = tool({
    name: "bad",
    description: "Fails",
    input: z.object({}),
    execute: () => {
      throw new Error("No.");
    },
  });
  const child = helper("helper", [
    { text: "Hm.", calls: [["look", { table: "a" }], ["bad", {}]] },
    { calls: [["look", { table: "b" }]] },
    "Both.",
  ], [...tools, bad]);
  const app = served([callHelper, "Done.", "Bye."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  const shown = [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-look call_1/call_1 output-available",
    "tool-bad call_1/call_2 output-error",
    "tool-look call_1/call_3 output-available",
    "step-start",
    "text done",
  ];
  await expectParts(app, chat, shown);
  const [, answered] = chat.messages;
  await chat.sendMessage({ text: "Bye" });
  const messages: UIMessage[] = await (await app.request("/chat/chat")).json();
  assertEquals(partsOf(messages[1]), partsOf(answered));
});

Deno.test("useChat shows the calls of nested subagents after a reload", async () => {
  const { tools } = lookAndDrop({ json: true });
  const inner = helper("inner", [{ calls: [["look", { table: "a" }]] }, "Inner."], tools);
  const outer = helper("helper", [
    { calls: [["inner", { prompt: "More" }], ["look", { table: "b" }]] },
    "Outer.",
  ], [inner, ...tools]);
  const app = served([callHelper, "Done."], [outer]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  await expectParts(app, chat, [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-inner call_1/call_1 output-available",
    "tool-look call_1/call_2 output-available",
    "tool-look call_1/call_1/call_1 output-available",
    "step-start",
    "text done",
  ]);
});

for (const approved of [true, false]) {
  Deno.test(`useChat shows a call of a subagent that a person has ${approved ? "allowed" : "denied"} after a reload`, async () => {
    const store = memory();
    const process = () => {
      const { did, tools } = lookAndDrop({ json: true });
      const calls = [["look", { table: "a" }], ["drop", { table: "b" }]] as const;
      const inner = helper("inner", [{ calls }, "Inner."], tools);
      const outer = helper("helper", [{ calls: [["inner", { prompt: "More" }]] }, "Outer."], [inner]);
      return { did, outer };
    };
    const one = process();
    const app = served([callHelper], [one.outer], { store });
    const chat = chatWith(app);
    await chat.sendMessage({ text: "Go" });
    await expectParts(app, chat, [
      "step-start",
      "tool-helper call_1 output-available",
      "tool-inner call_1/call_1 output-available",
      "tool-look call_1/call_1/call_1 output-available",
      "tool-drop call_1/call_1/call_2 approval-requested",
    ]);
    const last = () => helper("inner", ["Inner."], lookAndDrop({ json: true }).tools);
    const two = served(["Done."], [helper("helper", ["Outer."], [last()])], { store });
    const messages: UIMessage[] = await (await two.request("/chat/chat")).json();
    const resumed = chatWith(two, messages);
    await answer(resumed, approved, approved ? undefined : "Too dear");
    await expectParts(two, resumed, [
      "step-start",
      "tool-helper call_1 output-available",
      "tool-inner call_1/call_1 output-available",
      "tool-look call_1/call_1/call_1 output-available",
      `tool-drop call_1/call_1/call_2 ${approved ? "output-available" : "output-denied"}`,
      "step-start",
      "text done",
    ]);
  });
}

Deno.test("useChat shows the calls of parallel subagents after a reload in the order in which they started", async () => {
  const { tools } = lookAndDrop({ json: true });
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const look = (table: string) => ({ calls: [["look", { table }]] }) as const;
  const a = helper("a", [look("1"), { ...look("3"), before: () => first.promise }, {
    text: "A.",
    before: () => second.resolve(),
  }], tools);
  const b = helper("b", [
    { ...look("2"), before: () => Promise.resolve() },
    { ...look("4"), before: () => (first.resolve(), second.promise) },
    "B.",
  ], tools);
  const app = served([{ calls: [["a", { prompt: "Help" }], ["b", { prompt: "Help" }]] }, "Done."], [a, b]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  await expectParts(app, chat, [
    "step-start",
    "tool-a call_1 output-available",
    "tool-b call_2 output-available",
    "tool-look call_1/call_1 output-available",
    "tool-look call_2/call_1 output-available",
    "tool-look call_1/call_2 output-available",
    "tool-look call_2/call_2 output-available",
    "step-start",
    "text done",
  ]);
});

const card = "4111 1111 1111 1111";

/** A tool whose result contains the number of a card. */
const pay = tool({
  name: "pay",
  description: "Pays",
  input: z.object({ card: z.string() }),
  execute: ({ card }) => `Paid with ${card}.`,
});

/** Masks the number in the events of subagents. */
const masking: Middleware = {
  name: "masking",
  session: (ctx, next) =>
    next({
      emit: (event) =>
        ctx.emit(event.type === "subagent.event" ? JSON.parse(JSON.stringify(event).replaceAll(card, "****")) : event),
    }),
};

for (const use of [masking, redact({ patterns: [/\d{4} \d{4} \d{4} \d{4}/g] })]) {
  Deno.test(`useChat shows the calls of a subagent after a reload as ${use.name}() has masked them`, async () => {
    const child = helper("helper", [{ calls: [["pay", { card }]] }, "Paid."], [pay]);
    const app = served([callHelper, "Done."], [child], { use: [use] });
    const chat = chatWith(app);
    await chat.sendMessage({ text: "Go" });
    await expectParts(app, chat, [
      "step-start",
      "tool-helper call_1 output-available",
      "tool-pay call_1/call_1 output-available",
      "step-start",
      "text done",
    ]);
    for (const path of ["/chat/chat", "/sessions/chat", "/sessions/chat?limit=9"]) {
      const text = await (await app.request(path)).text();
      assertEquals(text.includes("1111"), false);
      assertStringIncludes(text, `"pay"`.replace("pay", path === "/chat/chat" ? "tool-pay" : "pay"));
    }
  });
}

Deno.test("useChat shows no call of a subagent after a reload if a filter has dropped its events", async () => {
  const { did, tools } = lookAndDrop({ json: true });
  const child = helper("helper", [{ calls: [["look", { table: "a" }]] }, "Both."], tools);
  const use: Middleware[] = [{
    name: "dropping",
    subagent: (ctx, next) =>
      next({ emit: (event: Event) => event.type === "subagent.event" ? undefined : ctx.emit(event) }),
  }];
  const app = served([callHelper, "Done."], [child], { use });
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  assertEquals(did, ["found a"]);
  await expectParts(app, chat, ["step-start", "tool-helper call_1 output-available", "step-start", "text done"]);
});

Deno.test("useChat does not show the calls of a response that a subagent has received anew", async () => {
  const { tools } = lookAndDrop({ json: true });
  const again: Middleware = { name: "again", error: () => Promise.resolve(tryAgain()) };
  const search = { callId: "s1", name: "web_search" } as const;
  const cut = [[{ type: "part", part: { type: "provider_call", ...search, input: {} } }], [
    { type: "call.start", id: "lost", name: "look" },
    { type: "call.end", id: "lost", input: { table: "a" } },
  ]] as const;
  const child = helper("helper", [{ reads: cut }, { calls: [["look", { table: "b" }]] }, "Both."], tools, [again]);
  const app = served([callHelper, "Done."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  await expectParts(app, chat, [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-look call_1/call_1 output-available",
    "step-start",
    "text done",
  ]);
});

Deno.test("useChat shows the question about a call of a subagent whose events a filter has dropped, and continues with the answer", async () => {
  const { did, tools } = lookAndDrop({ json: true });
  const child = helper("helper", [{ calls: [["drop", { table: "a" }]] }, "Both."], tools);
  const use: Middleware[] = [{
    name: "dropping",
    session: (ctx, next) => next({ emit: (event) => event.type === "subagent.event" ? undefined : ctx.emit(event) }),
  }];
  const app = served([callHelper, "Done."], [child], { use });
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  await expectParts(app, chat, [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-drop call_1/call_1 approval-requested",
  ]);
  await answer(chat, true);
  assertEquals([did, chat.reported.at(-1)], [["dropped a"], "text done Done."]);
});

Deno.test("useChat shows a call of a subagent that starts after a pause, because the call before it runs alone", async () => {
  const { tools } = lookAndDrop({ json: true });
  const child = helper("helper", [{ calls: [["order", { what: "tea" }], ["look", { table: "a" }]] }, "Both."], [
    { ...order, parallel: false },
    ...tools,
  ]);
  const app = served([callHelper, "Done."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  const asked = ["step-start", "tool-helper call_1 output-available", "tool-order call_1/call_1 approval-requested"];
  await expectParts(app, chat, [...asked, "tool-look call_1/call_2 output-available"]);
  await answer(chat, true);
  await expectParts(app, chat, [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-order call_1/call_1 output-available",
    "tool-look call_1/call_2 output-available",
    "step-start",
    "text done",
  ]);
});

Deno.test("useChat shows a call that a hook of a subagent has made", async () => {
  const { tools } = lookAndDrop({ json: true });
  const making: Middleware = {
    name: "making",
    async model(ctx, next) {
      if (ctx.turn > 1) return await next();
      return {
        ...reply(""),
        parts: [{ type: "call", id: "made", name: "look", input: { table: "a" } }],
        finish: "calls",
      };
    },
  };
  const child = helper("helper", ["Both."], tools, [making]);
  const app = served([callHelper, "Done."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  assertEquals([chat.error, chat.status], [undefined, "ready"]);
  await expectParts(app, chat, [
    "step-start",
    "tool-helper call_1 output-available",
    "tool-look call_1/made output-available",
    "step-start",
    "text done",
  ]);
});

Deno.test("a session leaves out the oldest calls of a subagent beyond 100,000 characters, and useChat shows their number", async () => {
  const read = tool({
    name: "read",
    description: "Reads",
    input: z.object({ n: z.number() }),
    execute: ({ n }) => `${n}`.repeat(30_000),
  });
  const calls = [1, 2, 3, 4, 5].map((n) => ["read", { n }] as const);
  const app = served([callHelper, "Done."], [helper("helper", [{ calls }, "Read."], [read])]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  assertEquals(chat.reported.length, 9);
  const before = partsOf(chat.lastMessage);
  const notice = { type: "data-notice", data: { text: "Earlier calls of helper that are not stored: 2." } };
  assertEquals(partsOf(await reloaded(app)), [...before.slice(0, 2), notice, ...before.slice(4)]);
  assertEquals((await (await app.request("/sessions/chat")).text()).length < 101_000, true);
});

Deno.test("a session leaves out the oldest calls of a subagent's provider beyond 100,000 characters, also if they have no result", async () => {
  const search = (n: number) => {
    const part = { type: "provider_call", callId: `s${n}`, name: "search", input: `${n}`.repeat(30_000) } as const;
    return { type: "part", part } as const;
  };
  const reads = [[1, 2, 3, 4, 5].map(search), [{ type: "text", text: "Found." }], [{
    type: "finish",
    reason: "stop",
  }]] as const;
  const child = helper("helper", [{ reads }], []);
  const app = served([callHelper, "Done."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  const before = partsOf(chat.lastMessage);
  assertEquals(before.length, 9);
  const notice = { type: "data-notice", data: { text: "Earlier calls of helper that are not stored: 2." } };
  assertEquals(partsOf(await reloaded(app)), [...before.slice(0, 2), notice, ...before.slice(4)]);
  assertEquals((await (await app.request("/sessions/chat")).text()).length < 101_000, true);
});

Deno.test("useChat asks about calls of a subagent and shows them after a reload, also if the model gives them ids with slashes or names of JavaScript", async () => {
  const { did, tools } = lookAndDrop({ json: true });
  const ids = ["__proto__", "constructor", "a/b", "/", "call_1/call_1"];
  const calls = ids.flatMap((id) =>
    [
      { type: "call.start", id, name: "drop" },
      { type: "call.end", id, input: { table: id } },
    ] as const
  );
  const child = helper("helper", [{ reads: [calls, [{ type: "finish", reason: "calls" }]] }, "All."], tools);
  const app = served([callHelper, "Done."], [child]);
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  const dropped = ids.map((id) => `tool-drop call_1/${id.replaceAll("/", "_")}`); // a slash separates the calls of nested subagents
  const helped = ["step-start", "tool-helper call_1 output-available"];
  await expectParts(app, chat, [...helped, ...dropped.map((call) => `${call} approval-requested`)]);
  for (const _ of ids) await answer(chat, true);
  assertEquals(did.toSorted(), ids.map((id) => `dropped ${id}`).toSorted());
  await expectParts(app, chat, [
    ...helped,
    ...dropped.map((call) => `${call} output-available`),
    "step-start",
    "text done",
  ]);
});

Deno.test("useChat shows a session that was stored without the calls of subagents, and continues it", async () => {
  const store = memory();
  const { tools } = lookAndDrop({ json: true });
  const steps = [{ calls: [["look", { table: "a" }], ["drop", { table: "b" }]] }, "Both."] as const;
  const app = served([callHelper, "Done."], [helper("helper", steps, tools)], { store });
  const chat = chatWith(app);
  await chat.sendMessage({ text: "Go" });
  const [id = ""] = await store.list();
  const text = JSON.stringify(await store.load(id), (key, value) => key === "inner" ? undefined : value);
  await store.save(JSON.parse(text));
  const shown = partsOf(await reloaded(app));
  assertEquals(shown.map(({ type, state }) => [type, state]), [
    ["step-start", undefined],
    ["tool-helper", "output-available"],
    ["tool-drop", "approval-requested"],
  ]);
  await answer(chat, true);
  assertEquals([chat.status, chat.reported.at(-1)], ["ready", "text done Done."]);
  assertEquals(partsOf(await reloaded(app)).map(({ type }) => type), [
    "step-start",
    "tool-helper",
    "tool-drop",
    "step-start",
    "text",
  ]);
});

/** Runs an agent whose subagent calls a tool. Returns its messages, and the text of every event. */
async function ranWithHelper(): Promise<{ readonly messages: readonly Message[]; readonly events: string }> {
  const { tools } = lookAndDrop({ json: true });
  const child = helper("helper", [{ calls: [["look", { table: "a" }]] }, "Both."], tools);
  const run = agent({ model: scripted(callHelper, "Done."), tools: [child] }).run("Go");
  const events = JSON.stringify(await Array.fromAsync(run.events));
  return { messages: (await run.result).messages, events };
}

Deno.test("models receive nothing of the calls inside a subagent, and no event contains them a second time", async () => {
  const { messages, events } = await ranWithHelper();
  assertEquals(events.includes(`"inner"`), false);
  const text = JSON.stringify(messages);
  assertStringIncludes(text, `"inner"`);
  const plain: readonly Message[] = JSON.parse(text, (key, value) => key === "inner" ? undefined : value);
  const bodies = async (messages: readonly Message[]) => {
    const models = recordingModels();
    for (const { model } of models) await readAll(model, { messages });
    return models.map(({ sent }) => JSON.stringify(sent()));
  };
  assertEquals(await bodies(messages), await bodies(plain));
  assertEquals(estimateTokens(messages), estimateTokens(plain));
});

Deno.test("other wires do not send the calls that a session keeps of a subagent", async () => {
  const { tools } = lookAndDrop({ json: true });
  const requests = [
    ["/v1/chat/completions", { model: "m", messages: [{ role: "user", content: "Go" }] }],
    ["/v1/responses", { input: "Go" }],
    ["/v1/responses", { input: "Go", stream: true }],
    ["/ag-ui", { threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "Go" }] }],
    ["/runs", { prompt: "Go" }],
  ] as const;
  for (const [path, body] of requests) {
    const child = helper("helper", [{ calls: [["look", { table: "a" }]] }, "Both."], tools);
    const model = scripted(callHelper, "Done.");
    const app = serve(agent({ model, tools: [child] }), { wires: [chatCompletions(), responses(), agUi()] });
    const text = await (await post(app, path, body)).text();
    assertStringIncludes(text, "Done.");
    assertEquals(text.includes(`"inner"`), false);
  }
});

/** Creates random subagents, and returns the outermost one as a tool. They behave the same in each process, and their calls have ids of their own. */
function randomHelper(chance: Chance, name: string, depth = 0): () => AnyTool {
  const { below } = chance;
  const children = depth < 2 ? Array.from({ length: below(3) }, (_, index) => `${name}_${index}`) : [];
  const inner = children.map((child) => randomHelper(chance, child, depth + 1));
  const turns = Array.from({ length: 1 + below(2) }, (_, turn) => {
    const made = Array.from({ length: 1 + below(3) }, (_, index) => {
      const tool = chance.one(["look", "drop", "fail", "order", ...children]);
      const id = `${name}.${turn}.${index}`;
      return { name: tool, id, input: children.includes(tool) ? { prompt: "Help" } : { table: id, what: id } };
    });
    const lost = {
      reads: [[{ type: "call.start", id: "lost", name: "look" }, { type: "call.end", id: "lost", input: {} }]],
    } as const;
    return { calls: { text: "Hm.", calls: made }, lost: below(3) === 0 ? lost : undefined };
  });
  return () => {
    let failed = 0;
    const answer: ScriptedAnswer = ({ messages }) => {
      const turn = turns[messages.filter(({ role }) => role === "assistant").length];
      if (turn?.lost && failed++ % 2 === 0) return turn.lost;
      return turn?.calls ?? `End ${name}.`;
    };
    const { tools } = lookAndDrop({ json: true });
    const fail = tool({
      name: "fail",
      description: "Fails",
      input: z.object({ table: z.string() }),
      execute: () => {
        throw new Error("No.");
      },
    });
    const again: Middleware = {
      name: "again",
      error: (ctx, next) => ctx.source === "model" ? Promise.resolve(tryAgain()) : next(),
    };
    const model = scripted(...Array.from({ length: 50 }, () => answer));
    return asTool(
      agent({
        name,
        description: "Helps",
        model,
        tools: [...tools, fail, { ...order, parallel: false }, ...inner.map((make) => make())],
        use: [again],
      }),
    );
  };
}

Deno.test("useChat shows random subagents after a reload at each pause and at the end as before, in another process too", async () => {
  let pauses = 0;
  for (const seed of seeds(40)) {
    await withSeed(seed, async (seed) => {
      const chance = seeded(seed);
      const names = ["a", "b", "c"].slice(0, 1 + chance.below(3));
      const helpers = names.map((name) => randomHelper(chance, name));
      const first = { calls: names.map((name) => ({ name, id: name, input: { prompt: "Help" } })) };
      const store = memory();
      const process = () => {
        const answer: ScriptedAnswer = ({ messages }) => messages.length > 1 ? "Done." : first;
        return served(Array.from({ length: 9 }, () => answer), helpers.map((make) => make()), { store });
      };
      let app = process();
      let chat = chatWith(app);
      await chat.sendMessage({ text: "Go" });
      for (;;) {
        assertEquals(chat.error, undefined);
        const parts = partsOf(chat.lastMessage);
        assertEquals(partsOf(await reloaded(app)), parts);
        const asked = parts.filter(({ state }) => state === "approval-requested");
        if (asked.length === 0) break;
        pauses++;
        if (chance.below(2) === 0) {
          app = process();
          chat = chatWith(app, await (await app.request("/chat/chat")).json());
        }
        for (const { approval } of asked as { readonly approval: { readonly id: string } }[]) {
          const approved = chance.below(2) === 0;
          await chat.addToolApprovalResponse({ id: approval.id, approved, ...(!approved && { reason: "Too dear" }) });
        }
        await chat.settled();
      }
      assertEquals(partsOf(chat.lastMessage).at(-1), { type: "text", text: "Done.", state: "done" });
    });
  }
  assertEquals(pauses > 20, true);
});
