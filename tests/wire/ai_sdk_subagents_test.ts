import {
  agent,
  type AnyTool,
  type Event,
  memory,
  type Middleware,
  serve,
  type ServeOptions,
  tool,
  tryAgain,
} from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
  validateUIMessages,
} from "npm:ai@7.0.173";
import * as z from "zod";
import { lookAndDrop } from "../support/asking.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";
import { Chat } from "../support/chat.ts";
import type { App } from "../support/requests.ts";

type Parent = Omit<Parameters<typeof agent>[0], "model" | "tools">;

/** Serves an agent with these tools. */
function served(steps: readonly ScriptedAnswer[], tools: readonly AnyTool[], options: ServeOptions & Parent = {}): App {
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

/** Creates random subagents, and returns the outermost one as a tool. They behave the same in each process, and their calls have ids of their own. */
function randomHelper(chance: Chance, name: string, depth = 0): () => AnyTool {
  const { below } = chance;
  const children = depth < 2 ? Array.from({ length: below(3) }, (_, index) => `${name}_${index}`) : [];
  const inner = children.map((child) => randomHelper(chance, child, depth + 1));
  const turns = Array.from({ length: 1 + below(2) }, (_, turn) => {
    const made = Array.from({ length: 1 + below(3) }, (_, index) => {
      const tool = chance.one(["look", "drop", "fail", ...children]);
      const id = `${name}.${turn}.${index}`;
      return { name: tool, id, input: children.includes(tool) ? { prompt: "Help" } : { table: id } };
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
        tools: [...tools, fail, ...inner.map((make) => make())],
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
