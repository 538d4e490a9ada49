import {
  agent,
  type AnyTool,
  type Message,
  type Middleware,
  type ModelEvent,
  serve,
  skip,
  textOf,
  tool,
  tryAgain,
} from "@jizai/jizai";
import { client, type RunState } from "@jizai/jizai/client";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertEquals } from "@std/assert";
import { HttpAgent } from "npm:@ag-ui/client@1.0.0";
import OpenAI from "npm:openai@7.57.0";
import type { UIMessage } from "npm:ai@7.0.173";
import * as z from "zod";
import { Chat, reaching } from "../support/chat.ts";
import { type App } from "../support/requests.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";

/** A random model: attempts that fail at any place, and turns with calls. */
interface Script {
  readonly steps: readonly ScriptedStep[];
  /** The text by which a hook replaces that of a turn. */
  readonly changed: ReadonlyMap<number, string>;
  /** The steps of the subagent `child`, and of `grandchild`, which is a subagent of it. */
  readonly child: readonly ScriptedStep[];
  readonly grandchild: readonly ScriptedStep[];
  /** Whether a hook skips a response whose second attempt fails too. */
  readonly skips: boolean;
}

function scriptBy(chance: Chance): Script {
  const { below } = chance;
  const changed = new Map<number, string>();
  const turns = 1 + below(3);
  const steps = Array.from({ length: turns }, (_, turn) => {
    if (below(4) === 0) changed.set(turn + 1, `Changed ${turn}.`);
    return attemptsBy(chance, `${turn}`, turn + 1 < turns ? ["look", "child", "grandchild"] : []);
  });
  return {
    steps: steps.flat(),
    changed,
    child: attemptsBy(chance, "child", ["grandchild", "look"]).concat({ text: "Helped." }),
    grandchild: attemptsBy(chance, "grandchild", ["look"]).concat({ text: "Looked." }),
    skips: below(3) === 0,
  };
}

function attemptsBy(chance: Chance, name: string, tools: readonly string[]): ScriptedStep[] {
  const failed = Array.from({ length: chance.below(3) }, (_, index) => readsBy(chance, `${name}.${index}`, tools));
  const cut = failed.map((reads) => ({ reads: reads.slice(0, 1 + chance.below(reads.length)) }));
  const text: ModelEvent = { type: "text", text: `End ${name}.` };
  const reason = tools.length > 0 ? "calls" : "stop";
  return [...cut, { reads: [...readsBy(chance, `${name}.end`, tools), [text], [{ type: "finish", reason }]] }];
}

function readsBy(chance: Chance, name: string, tools: readonly string[]): (readonly ModelEvent[])[] {
  const search = { callId: `search ${name}`, name: "web_search" } as const;
  const kinds: readonly (readonly ModelEvent[])[] = [
    [{ type: "reasoning", text: `Hm ${name}. ` }],
    [{ type: "text", text: `Say ${name}. ` }],
    [{ type: "part", part: { type: "source", url: `https://a.example/${name}` } }],
    [{ type: "part", part: { type: "media", mediaType: "image/png", data: btoa(name) } }],
    [{ type: "part", part: { type: "provider_call", ...search, input: { query: name } } }],
    [{ type: "part", part: { type: "refusal", text: `No ${name}.` } }],
  ];
  const isCalling = kinds[4]!;
  const chosen = kinds.filter(() => chance.below(2) === 0);
  const reads = chosen.flatMap((kind) =>
    kind === isCalling && chance.below(3) > 0
      ? [kind, [{ type: "part", part: { type: "provider_result", ...search, status: "ok", output: name } } as const]]
      : [kind]
  );
  const calls = tools.map((tool) => {
    const id = `${tool} ${name}`;
    const input = tool === "look" ? { at: name } : { prompt: "Help" };
    return [{ type: "call.start", id, name: tool }, { type: "call.end", id, input }] as const;
  });
  return [...reads, ...calls, [{ type: "text", text: `Then ${name}. ` }]];
}

function again(skips: boolean): Middleware {
  return {
    name: "again",
    error: async (ctx, next) => skips && ctx.attempt === 2 ? skip() : ctx.attempt < 4 ? tryAgain() : await next(),
  };
}

/** Serves the agent of a script. Each server has a model of its own. */
function servedBy({ steps, changed, child, grandchild, skips }: Script): App {
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({ at: z.string() }),
    execute: ({ at }) => `Saw ${at}`,
  });
  const change: Middleware = {
    name: "change",
    async model(ctx, next) {
      const response = await next();
      const text = changed.get(ctx.turn);
      if (text === undefined) return response;
      const thoughts = response.parts.filter(({ type }) => type === "reasoning");
      const others = response.parts.filter(({ type }) => type !== "reasoning" && type !== "text");
      return { ...response, parts: [...thoughts, { type: "text", text }, ...others] };
    },
  };
  const subagent = (name: string, steps: readonly ScriptedStep[], tools: readonly AnyTool[]) =>
    asTool(agent({ name, description: "Helps", model: scripted(...steps, ...steps), tools, use: [again(skips)] }));
  const tools = [
    look,
    subagent("child", child, [look, subagent("grandchild", grandchild, [look])]),
    subagent("grandchild", grandchild, [look]),
  ];
  const root = agent({ model: scripted(...steps), tools, use: [again(skips), change] });
  const wires = [aiSdkUi(), aiSdkMessages(), agUi(), chatCompletions(), responses()];
  return serve(root, { wires, onClientGone: "detach", onError: () => {} });
}

/** The content of an answer, by kind. A kind that a client does not have is left out. */
interface Content {
  readonly texts?: readonly string[];
  readonly reasoning?: string;
  readonly sources?: readonly string[];
  readonly files?: readonly string[];
  readonly refusals?: readonly string[];
  /** The calls, each with its result. */
  readonly calls?: readonly string[];
  readonly providerCalls?: readonly string[];
}

type Unknown = Readonly<Record<string, unknown>>;

/** Returns the content of parts as the session and the native client have them. */
function contentOf(turns: readonly (readonly Unknown[])[], resultOf: (call: Unknown) => unknown): Required<Content> {
  const all = turns.flat();
  const of = (type: string) => all.filter((part) => part.type === type);
  const textIn = (parts: readonly Unknown[]) => parts.map(({ type, text }) => type === "text" ? text : "").join("");
  const results = of("provider_result");
  return {
    texts: turns.map(textIn).filter((text) => text !== ""),
    reasoning: of("reasoning").map(({ text }) => text).join(""),
    sources: of("source").map(({ url }) => String(url)),
    files: of("media").map(({ data }) => String(data)),
    refusals: of("refusal").map(({ text }) => String(text)),
    calls: of("call").map((call) => `${call.id} ${resultOf(call)}`),
    providerCalls: of("provider_call").map(({ callId }) => {
      const result = results.find((result) => result.callId === callId);
      return `${callId} ${result?.output}`;
    }),
  };
}

/** Returns the content of a session. */
async function sessionContent(app: App, id: string): Promise<Required<Content>> {
  const { messages } = await (await app.request(`/sessions/${id}`)).json() as { messages: readonly Message[] };
  const results = new Map(
    messages.flatMap((message) => message.role === "tool" ? message.results : [])
      .map((result) => [result.callId, textOf(result)]),
  );
  const turns = messages.flatMap((message) => message.role === "assistant" ? [message.parts] : []);
  return contentOf(turns as unknown as Unknown[][], ({ id }) => results.get(String(id)));
}

/** Returns the content that the state of a native client has. */
function stateContent({ messages }: RunState): Required<Content> {
  const turns = messages.flatMap((message) => message.role === "assistant" ? [message.parts] : []);
  return contentOf(turns as unknown as Unknown[][], ({ parts }) => textOf({ parts: parts as never }));
}

Deno.test("a native client has at the end what the session has, also if it reads the run again from any event", async () => {
  for (const seed of seeds(25)) {
    await withSeed(seed, async (seed) => {
      const chance = seeded(seed);
      const app = servedBy(scriptBy(chance));
      const assistant = client("", { fetch: app.request });
      const run = assistant.run({ prompt: "Go" });
      const states: RunState[] = [];
      for await (const _ of run.events) states.push(run.state);
      assertEquals([run.state.status, stateContent(run.state)], [
        "done",
        await sessionContent(app, run.state.session!),
      ]);
      const middle = states[chance.below(states.length - 1)]!;
      assertEquals(await assistant.follow(middle).result(), run.state);
    });
  }
});

/** Returns the parts of a message, without the ids of its sources and thoughts, which name places, and without an empty step at its end. */
function partsOf(message: UIMessage | undefined): readonly object[] {
  const parts = message?.role === "assistant" ? message.parts : [];
  const shown = parts.at(-1)?.type === "step-start" ? parts.slice(0, -1) : parts;
  return shown.map((part) => {
    const { sourceId: _, id: __, ...rest } = part as { sourceId?: string; id?: string };
    return JSON.parse(JSON.stringify(rest));
  });
}

Deno.test("useChat has at the end what it has after a reload, and after it resumes", async () => {
  for (const seed of seeds(25)) {
    await withSeed(seed, async (seed) => {
      const app = servedBy(scriptBy(seeded(seed)));
      const chat = new Chat(app);
      await chat.sendMessage({ text: "Go" });
      const listed = await (await app.request("/chat/chat")).json();
      assertEquals(partsOf(chat.lastMessage), partsOf(listed.at(-1)));
      const reloaded = new Chat(app, { messages: listed });
      await reloaded.resumeStream();
      assertEquals(partsOf(reloaded.lastMessage), partsOf(chat.lastMessage));
      assertEquals(reloaded.messages.length, chat.messages.length);
    });
  }
});

Deno.test("an AG-UI client has at the end what the session has", async () => {
  for (const seed of seeds(25)) {
    await withSeed(seed, async (seed) => {
      const app = servedBy(scriptBy(seeded(seed)));
      const agent = new HttpAgent({ url: "/ag-ui", threadId: "s", fetch: reaching(app) });
      agent.addMessage({ id: "m1", role: "user", content: "Go" });
      const sources: unknown[] = [];
      let before = 0;
      await agent.runAgent({}, {
        onStepStartedEvent: ({ event }) => {
          if (!event.subagentRunId) before = sources.length;
        },
        onCustomEvent: ({ event: { name, value, subagentRunId } }) => {
          if (subagentRunId) return;
          if (name === "discarded") sources.length = before;
          if (name === "source") sources.push(value.url);
        },
      });
      const { texts, reasoning, calls, providerCalls, ...parts } = await sessionContent(app, "s");
      const own = (agent.messages as unknown as Unknown[]).filter(({ subagentRunId }) => !subagentRunId);
      const results = new Map(own.map(({ toolCallId, content }) => [toolCallId, content]));
      const called = own.flatMap(({ toolCalls = [] }) => toolCalls as { id: string }[]).map(({ id }) => id);
      assertEquals({
        texts: own.filter(({ role, content }) => role === "assistant" && content).map(({ content }) => content),
        reasoning: own.filter(({ role }) => role === "reasoning").map(({ content }) => content).join(""),
        calls: called.filter((id) => !id.startsWith("search")).map((id) => `${id} ${results.get(id)}`),
        providerCalls: called.filter((id) => id.startsWith("search"))
          .map((id) => `${id} ${results.has(id) ? JSON.parse(String(results.get(id))) : undefined}`),
      }, { texts, reasoning, calls, providerCalls } as never);
      assertEquals<unknown>(sources, parts.sources);
    });
  }
});

/** Applies the documented rule of a stream of chat completions: `discarded` removes the ends of the texts, and the notice is left out. */
function foldChunks(chunks: readonly OpenAI.ChatCompletionChunk[]): Unknown {
  const texts = { content: "", reasoning_content: "" };
  for (const chunk of chunks) {
    const { discarded } = chunk as { discarded?: Partial<typeof texts> };
    const delta = (chunk.choices[0]?.delta ?? {}) as Partial<typeof texts>;
    for (const name of ["content", "reasoning_content"] as const) {
      const end = discarded?.[name];
      if (end === undefined) texts[name] += delta[name] ?? "";
      else {
        assertEquals(texts[name].endsWith(end), true);
        texts[name] = texts[name].slice(0, -end.length);
      }
    }
  }
  return texts;
}

const request = { model: "any", messages: [{ role: "user" as const, content: "Go" }] };

Deno.test("a client of chat completions has at the end of a stream what the response has that is not streamed", async () => {
  for (const seed of seeds(25)) {
    await withSeed(seed, async (seed) => {
      const script = () => openaiOf(servedBy(scriptBy(seeded(seed))));
      const { choices: [choice] } = await script().chat.completions.create(request);
      const { content, reasoning_content = "", ...parts } = choice!.message as unknown as Unknown;
      const stream = script().chat.completions.stream(request);
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      stream.on("chunk", (chunk) => void chunks.push(chunk));
      const final = (await stream.finalChatCompletion()).choices[0]!;
      const { content: _, reasoning_content: __, parsed: ___, ...streamed } = final.message as unknown as Unknown;
      assertEquals(streamed, parts);
      assertEquals(final.finish_reason, choice?.finish_reason);
      assertEquals(foldChunks(chunks), { content: content ?? "", reasoning_content });
    });
  }
});

/** Returns a response without its ids and times. */
function itemsOf({ output, status }: OpenAI.Responses.Response): unknown {
  const withoutIds = (item: object) => ({ ...item, id: "" });
  const items = output.map((item) => {
    const { parsed: _, ...rest } = item as { parsed?: unknown };
    if (item.type !== "message") return withoutIds(rest);
    const content = item.content.map((part) => {
      const { parsed: _, ...rest } = part as { parsed?: unknown };
      return rest;
    });
    return withoutIds({ ...rest, content });
  });
  return { status, items };
}

Deno.test("a client of Responses has at the end of a stream what the response has that is not streamed", async () => {
  for (const seed of seeds(25)) {
    await withSeed(seed, async (seed) => {
      const script = () => openaiOf(servedBy(scriptBy(seeded(seed))));
      const whole = await script().responses.create({ input: "Go" });
      const stream = script().responses.stream({ input: "Go" });
      assertEquals(itemsOf(await stream.finalResponse()), itemsOf(whole));
    });
  }
});

function openaiOf(app: App) {
  return new OpenAI({ apiKey: "sk-none", baseURL: "http://localhost/v1", fetch: reaching(app), maxRetries: 0 });
}
