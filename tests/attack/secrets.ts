/**
 * Attacks on `redact()`: a secret that is split at random offsets over texts, thoughts, results, steering and errors.
 *
 * @module
 */
import {
  agent,
  type AnswerPart,
  type ContentPart,
  memory,
  type Middleware,
  type PersonAnswer,
  type Question,
  serve,
  type Store,
} from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import { audit } from "@jizai/jizai/middleware/audit";
import { logger } from "@jizai/jizai/middleware/logger";
import { otel } from "@jizai/jizai/middleware/otel";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { placeOf } from "../../src/core/journal.ts";
import { maskable, maskings } from "../support/masked_texts.ts";
import { recorder } from "../support/recorder.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";
import { around, careless, leaking, secret, type Steer, step } from "./leaks.ts";

/** The bodies of prompts, by path. `/runs?` is a prompt with history. */
const prompts = {
  "/runs": (prompt: string) => ({ prompt }),
  "/runs?": (prompt: string) => ({
    messages: [prompt, "Go"].map((text) => ({ role: "user", parts: [{ type: "text", text }] })),
  }),
  "/ag-ui": (prompt: string) => ({
    threadId: "s1",
    runId: "r1",
    messages: [{ id: "m", role: "user", content: prompt }],
    tools: [toolOf(prompt)],
    context: [],
    state: {},
  }),
  "/chat": (prompt: string) => ({
    id: "s1",
    messages: [{ id: "m", role: "user", parts: [{ type: "text", text: prompt }] }],
  }),
  "/v1/chat/completions": (prompt: string) => ({
    model: "agent",
    stream: true,
    messages: [{ role: "user", content: prompt }, { role: "assistant", content: prompt }, {
      role: "user",
      content: prompt,
    }],
    tools: [{ type: "function", function: toolOf(prompt) }],
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: schemaOf(prompt) } },
  }),
  "/v1/responses": (prompt: string) => ({
    model: "agent",
    stream: true,
    input: prompt,
    tools: [{ type: "function", ...toolOf(prompt) }],
    text: { format: { type: "json_schema", name: "answer", schema: schemaOf(prompt) } },
  }),
};

/** Returns a JSON Schema that contains a text as a key, a value and a description. */
function schemaOf(text: string): object {
  return { type: "object", description: text, properties: { [text]: { enum: [text] } } };
}

/** Returns a tool of a client that contains a text. */
function toolOf(text: string): object {
  return { name: "paint", description: text, parameters: schemaOf(text) };
}

/** Joins the text of all deltas, which a client shows as one text. */
function shown(body: string): string {
  const frames = body.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
  return frames.map((frame) => {
    const { type, text, delta, choices } = frame;
    if (type === "text.delta") return text;
    if (typeof delta === "string") return delta;
    return choices?.[0]?.delta?.content ?? "";
  }).join("");
}

function expectClean(where: string, ...texts: readonly string[]): void {
  for (const each of texts) {
    expect(
      !each.includes(secret),
      () =>
        `the secret is in ${where}: ${each.slice(Math.max(0, each.indexOf(secret) - 300), each.indexOf(secret) + 100)}`,
    );
  }
}

/** A store that remembers the appends and posts that contained the secret. It does not throw: the engine would try again. */
function watchedStore(): { readonly store: Store; readonly leaked: string[] } {
  const { journal } = memory();
  const leaked: string[] = [];
  const watch = (stored: unknown) => {
    const text = JSON.stringify(stored);
    if (text.includes(secret)) leaked.push(text);
  };
  const store = durable({
    ...journal,
    append: (key, append) => (watch(append), journal.append(key, append)),
    post: (key, post) => (watch(post), journal.post(key, post)),
  });
  return { store, leaked };
}

/** A middleware right inside of `redact()` that remembers the secrets that it receives. */
function inner(received: string[]): Middleware {
  const remember = (value: unknown) => void received.push(JSON.stringify(value));
  return {
    name: "inner",
    input(ctx, next) {
      remember(ctx.messages);
      return next();
    },
    prompt(ctx, next) {
      remember(ctx.prompt);
      return next();
    },
    model(ctx, next) {
      const { messages, instructions, tools, options: { output } } = ctx.request;
      remember([messages, instructions, tools, output]);
      return next();
    },
    tool(ctx, next) {
      remember([ctx.name, ctx.input]);
      return next();
    },
  };
}

/** A middleware outside of `redact()`, whose changes a trace shows. */
function outer(chance: Chance): Middleware {
  return {
    name: "outer",
    session: (ctx, next) =>
      next({ context: [...ctx.context, around(chance)], settings: { instructions: around(chance) } }),
    input: (ctx, next) => next({ messages: ctx.messages }),
  };
}

/** A random agent that leaks the secret, and everything that it writes elsewhere. */
function target(chance: Chance, steer: Steer) {
  const written: string[] = [];
  const steps = () => scripted(...Array.from({ length: 8 }, () => step(chance)));
  const model = steps();
  const helperModel = steps();
  const traced = chance.below(2) === 0 && { trace };
  const tools = [leaking(chance, steer)];
  const helper = agent({ name: "helper", model: helperModel, tools, limits: { turns: 2 }, ...traced });
  const hidden = redact({ secrets: [secret] });
  const spans = recorder();
  const records = audit((line) => void written.push(line), { mask: hidden.mask });
  const lines = logger((line) => written.push(JSON.stringify(line)));
  const inside = [inner(written), records, lines, otel(spans.api, { content: hidden.mask }), careless(chance)];
  const use = [...chance.one([[], [outer(chance)]]), hidden, ...inside];
  const attacked = agent({
    model,
    tools: [leaking(chance, steer), asTool(helper, { description: around(chance) })],
    use,
    instructions: around(chance),
    limits: { turns: 4 },
    ...traced,
  });
  return { attacked, models: [model, helperModel], written, spans };
}

function answerOf({ callId }: Question, chance: Chance): PersonAnswer {
  if (callId === undefined) return { type: "reply", text: around(chance) };
  return chance.one<PersonAnswer>([
    { type: "approve", callId },
    { type: "approve", callId, input: { key: around(chance) } },
    { type: "approve", callId, always: "input" },
    { type: "deny", callId, reason: around(chance) },
    { type: "reply", callId, text: around(chance) },
  ]);
}

async function leakInto(chance: Chance): Promise<void> {
  const { store, leaked } = watchedStore();
  const facts: ServerFact[] = [];
  const steer: Steer = async (run, text) => {
    const to = chance.one([app, elsewhere]);
    written.push(await (await post(`/runs/${run}/messages`, { text }, to)).text());
  };
  const { attacked, models, written, spans } = target(chance, steer);
  const sealed = resumeTokens({ keys: [{ id: "k", secret: "a secret of at least thirty-two bytes" }] });
  const [path, bodyOf] = chance.one(Object.entries(prompts) as [[string, (prompt: string) => object]]);
  const wires = [agUi(), aiSdkUi(), aiSdkMessages(), chatCompletions(), responses()];
  const page = () => new Response(); // clients receive the whole trace
  const options = { store, wires, page, onError: () => {}, observe: (fact: ServerFact) => void facts.push(fact) };
  const [app, elsewhere] = [serve(attacked, options), serve(attacked, options)]; // as two processes
  const post = (to: string, body: unknown, server = app) =>
    server.request(to, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const body = await (await post(path, bodyOf(around(chance)))).text();
  expectClean(`the frames of ${path}`, body, shown(body));
  for (const id of await store.list()) {
    let session = await store.load(id);
    for (let leg = 0; leg < 3 && session?.run?.exit?.status === "paused"; leg++) {
      expectClean("the resume token", JSON.stringify(await sealed.seal(session).then(sealed.open).catch(() => ({}))));
      const answers = (session.run.exit.questions ?? []).map((question) => answerOf(question, chance));
      const text = await (await post(`/sessions/${encodeURIComponent(id)}/answers`, { answers })).text();
      expectClean("the frames of a resumed run", text, shown(text));
      session = await store.load(id);
    }
    const { messages = [] } = session ?? {};
    const texts = messages.map((message) => {
      const parts: readonly (AnswerPart | ContentPart)[] = "parts" in message
        ? message.parts
        : message.results.flatMap(({ parts }) => parts);
      return parts.map((part) => part.type === "text" ? part.text : "").join("");
    });
    expectClean("the joined texts of a message", ...texts);
    expectClean("GET /sessions", await (await app.request(`/sessions/${encodeURIComponent(id)}`)).text());
    expectClean("GET /chat", await (await app.request(`/chat/${encodeURIComponent(id)}`)).text());
    const place = session?.last && placeOf(session.last.run);
    if (place) expectClean("the stored events", JSON.stringify(await store.journal.read(place.key, place.run, 0)));
  }
  const requests = models.flatMap((model) => model.requests);
  expectClean(
    "the requests of the models",
    ...requests.map(({ messages, instructions, tools, options: { output } }) =>
      JSON.stringify([messages, instructions, tools, output])
    ),
  );
  expectClean("a record of the store", ...leaked);
  expectClean("what inner hooks receive, the lines of audit() and logger(), and the answers to messages", ...written);
  expectClean("the facts of the servers", JSON.stringify(facts));
  expectClean("the spans", JSON.stringify(spans.spans.map(({ name, attributes }) => [name, attributes])));
}

/** Masks a text of glued secrets. Fails if masking it twice differs, or if its deltas are not its final text. */
async function maskTwice(chance: Chance): Promise<void> {
  const options = chance.one(maskings);
  const text = maskable(chance, 30);
  const { mask } = redact(options);
  const masked = mask(text);
  expect(mask(masked) === masked, () => `masking twice changes ${JSON.stringify(text)}`);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += pieces.at(-1)?.length ?? 0) {
    pieces.push(text.slice(at, at + 1 + chance.below(20)));
  }
  const run = agent({ model: scripted({ text: pieces }), use: [redact(options)] }).run("Go");
  let deltas = "";
  for await (const event of run.events) if (event.type === "text.delta") deltas += event.text;
  expect(deltas === masked, () => `the deltas of ${JSON.stringify(pieces)} are ${JSON.stringify([deltas, masked])}`);
  expect((await run.result).text === masked, () => `the final text of ${JSON.stringify(pieces)} differs`);
}

/** Leaks a secret in random ways. Fails if an output contains it. */
export const secrets: Attack = {
  name: "secrets",
  async attempt(chance) {
    await leakInto(chance);
    await maskTwice(chance);
    return 2;
  },
};
