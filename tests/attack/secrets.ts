/**
 * Attacks on `redact()`: a secret that is split at random offsets over texts, thoughts, results, steering and errors.
 *
 * @module
 */
import {
  agent,
  type AnswerPart,
  type AnyTool,
  type ContentPart,
  memory,
  type Middleware,
  serve,
  text,
  tool,
  ToolError,
} from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { memoryLog } from "@jizai/jizai/session/log";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import * as z from "zod";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

const secret = "hunter2-Kq8ZpW";

/** Splits a text at random offsets. */
function split(value: string, { below }: Chance): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < value.length;) {
    const size = 1 + below(value.length);
    pieces.push(value.slice(at, at + size));
    at += size;
  }
  return pieces;
}

const around = (chance: Chance) =>
  `${chance.one(["", "a ", "hunter2", "hunter2-", "\\", '"'])}${secret}${chance.one(["", " b", "hunter", "\\n"])}`;

function parts(chance: Chance) {
  return split(around(chance), chance).map((piece) => ({ type: "text" as const, text: piece }));
}

/** A tool that leaks the secret in a random way. */
function leaking(chance: Chance): AnyTool {
  const { one } = chance;
  return tool({
    name: "leak",
    description: "Leaks",
    input: z.object({ key: z.string() }),
    ask: chance.below(3) === 0,
    async execute(_, { progress, emit }) {
      await Promise.resolve();
      return one<() => unknown>([
        () => around(chance),
        () => ({ deep: [{ key: around(chance) }] }),
        () => ({ type: "result", status: "ok", parts: parts(chance) }),
        () => ({ type: "result", status: "ok", parts: [{ type: "text", text: "x" }], person: around(chance) }),
        () => ({ type: "result", status: "ok", parts: [], context: split(around(chance), chance) }),
        () => ({ type: "result", status: "ok", parts: [], artifacts: [{ uri: `https://x/${secret}`, name: secret }] }),
        () => (progress({ done: around(chance) }), "done"),
        () => (emit({ type: "notice", text: around(chance) }), "done"),
        () => (emit({ type: "data", name: "d", data: { [secret.slice(0, 3)]: [around(chance)] } }), "done"),
        () => {
          throw new ToolError(around(chance));
        },
        () => {
          throw new Error(around(chance));
        },
      ])();
    },
  });
}

/** A middleware inside of `redact()` that leaks the secret. */
function careless(chance: Chance): Middleware {
  return chance.one<() => Middleware>([
    () => ({ name: "none" }),
    () => ({ name: "context", turn: (ctx, next) => next({ context: [...ctx.context, around(chance)] }) }),
    () => ({ name: "reason", approval: () => Promise.resolve({ type: "deny", reason: around(chance) }) }),
    () => ({
      name: "question",
      approval: () => Promise.resolve({ type: "ask", questions: split(around(chance), chance) }),
    }),
    () => ({ name: "answer", tool: async (_, next) => (await next(), text(around(chance))) }),
    () => ({
      name: "pause",
      stop: ({ run }, next) => run.answers.length > 0 ? next() : Promise.reject(run.pause(around(chance))),
    }),
    () => ({ name: "stop", stop: () => Promise.resolve({ type: "pause", question: around(chance) }) }),
    () => ({ name: "notice", prompt: (ctx, next) => (ctx.emit({ type: "notice", text: around(chance) }), next()) }),
  ])();
}

function step(chance: Chance): ScriptedStep {
  const { below } = chance;
  const calls = below(2) === 0 ? [] : [["leak", { key: around(chance) }] as const];
  if (below(3) > 0) {
    return {
      text: split(around(chance), chance),
      ...(below(2) === 0 && { reasoning: split(around(chance), chance) }),
      calls,
    };
  }
  const reads = split(around(chance), chance).flatMap((piece) => [
    [{ type: "text", text: piece } as const],
    [{ type: "reasoning", text: "hm" } as const],
  ]);
  return { reads: [...reads, [{ type: "finish", reason: "stop", usage: { input: 1, output: 1 } }]] };
}

const prompts = {
  "/runs": (prompt: string) => ({ prompt }),
  "/ag-ui": (prompt: string) => ({
    threadId: "s1",
    runId: "r1",
    messages: [{ id: "m", role: "user", content: prompt }],
    tools: [],
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
    messages: [{ role: "user", content: prompt }],
  }),
  "/v1/responses": (prompt: string) => ({ model: "agent", stream: true, input: prompt }),
};

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

async function leakInto(chance: Chance): Promise<void> {
  const store = memory();
  const model = scripted(...Array.from({ length: 8 }, () => step(chance)));
  const use = [redact({ secrets: [secret] }), careless(chance)];
  const attacked = agent({ model, tools: [leaking(chance)], use, limits: { turns: 4 } });
  const sealed = resumeTokens({ keys: [{ id: "k", secret: "a secret of at least thirty-two bytes" }] });
  const [path, bodyOf] = chance.one(Object.entries(prompts) as [[string, (prompt: string) => object]]);
  const app = serve(attacked, { store, log: memoryLog(), wires: [agUi(), aiSdkUi(), chatCompletions(), responses()] });
  const response = await app.request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(bodyOf(around(chance))),
  });
  const body = await response.text();
  expectClean(`the frames of ${path}`, body, shown(body));
  for (const id of await store.list()) {
    const session = await store.load(id);
    const { messages = [], ...rest } = session ?? {};
    expectClean("the store", JSON.stringify(rest), ...messages.map((message) => JSON.stringify(message)));
    const texts = messages.map((message) => {
      const parts: readonly (AnswerPart | ContentPart)[] = "parts" in message
        ? message.parts
        : message.results.flatMap(({ parts }) => parts);
      return parts.map((part) => part.type === "text" ? part.text : "").join("");
    });
    expectClean("the joined texts of a message", ...texts);
    expectClean("GET /sessions", await (await app.request(`/sessions/${encodeURIComponent(id)}`)).text());
    if (session?.run) {
      expectClean("the resume token", JSON.stringify(await sealed.seal(session).then(sealed.open).catch(() => ({}))));
    }
  }
  expectClean("the requests of the model", ...model.requests.map((request) => JSON.stringify(request.messages)));
}

/** Leaks a secret in random ways. Fails if an output contains it. */
export const secrets: Attack = {
  name: "secrets",
  async attempt(chance) {
    await leakInto(chance);
    return 1;
  },
};
