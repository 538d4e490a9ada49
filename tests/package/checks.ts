/**
 * Checks that use the installed package as an application does. They need nothing but the package, so that they run on any runtime.
 *
 * @module
 */
import { agent, type Middleware, serve, tool } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import * as z from "zod";

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Sunny in ${city}`,
});

const drop = tool({
  name: "drop",
  description: "Drops a table",
  input: z.object({ table: z.string() }),
  ask: true,
  execute: ({ table }) => `Dropped ${table}`,
});

/** The checks, by name. Each throws an `Error` if it fails. */
export const checks: Readonly<Record<string, () => Promise<void>>> = {
  async "an agent runs two calls and answers"() {
    const model = scripted({ calls: [["weather", { city: "Kyoto" }], ["weather", { city: "Oslo" }]] }, "Sunny.");
    const run = agent({ model, tools: [weather] }).run("Weather?");
    const results: string[] = [];
    for await (const event of run.events) if (event.type === "tool.finished") results.push(event.result.status);
    const { status, text } = await run.result;
    equal([status, text, ...results], ["done", "Sunny.", "ok", "ok"]);
  },

  async "a served agent streams server-sent events"() {
    const app = serve(agent({ model: scripted("Hello!") }));
    const response = await app.request("/runs", json({ prompt: "Hi" }));
    equal(response.headers.get("content-type")?.startsWith("text/event-stream"), true);
    const events = (await response.text()).matchAll(/"type":"(run\.\w+)"/g);
    equal([...events].map(([, type]) => type), ["run.started", "run.finished"]);
  },

  async "the client approves a call of a paused run"() {
    const app = serve(agent({ model: scripted({ calls: [["drop", { table: "users" }]] }, "Gone."), tools: [drop] }));
    const run = client("", { fetch: app.request }).run({ prompt: "Drop the users" });
    const { status, questions } = await run.result();
    equal([status, questions.map(({ tool }) => tool)], ["paused", ["drop"]]);
    const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
    const after = await run.answer(answers).result();
    equal([after.status, after.text], ["done", "Gone."]);
  },

  async "timeout() ends a call, and the agent answers"() {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const slow = tool({
      name: "slow",
      description: "Waits until it is cancelled",
      input: z.object({}),
      execute: (_input, { signal }) =>
        new Promise<string>((_, reject) => {
          signal.addEventListener("abort", () => {
            resolve(signal.reason.name);
            reject(signal.reason);
          });
        }),
    });
    const model = scripted({ calls: [["slow", {}]] }, "It takes too long.");
    const { status, messages } = await agent({ model, tools: [slow], use: [timeout(10)] }).run("Go").result;
    const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
    equal([status, await promise, ...results.map(({ status }) => status)], ["done", "TimeoutError", "timeout"]);
  },

  async "the log of a server lets a client read a run that it began in the background"() {
    const app = serve(agent({ model: scripted("Hello!") }), { onClientGone: "detach" });
    const server = client("", { fetch: app.request });
    const { state } = await server.start({ prompt: "Hi" });
    const first = await server.follow(state).result();
    const second = await server.follow(state).result(); // all of it again, after the end
    equal([first.status, first.text, second.text], ["done", "Hello!", "Hello!"]);
  },

  async "a client of OpenAI completes a chat"() {
    const app = serve(agent({ model: scripted("Hello!") }), { wires: [chatCompletions()] });
    const messages = [{ role: "user", content: "Hi" }];
    const response = await app.request("/v1/chat/completions", json({ model: "agent", messages }));
    const { choices } = await response.json();
    equal(choices[0].message.content, "Hello!");
  },

  async "testMiddleware() accepts a middleware, and rejects one that loses the result"() {
    await testMiddleware((): Middleware => ({ name: "good", tool: (_ctx, next) => next() }));
    const bad = (): Middleware => ({
      name: "bad",
      async prompt(_ctx, next) {
        const answer = await next();
        return { ...answer, text: "lost" };
      },
      async tool(_ctx, next) {
        await next().catch(() => {});
        return next();
      },
    });
    const outcome = await testMiddleware(bad).then(() => "accepted", (error) => error.name);
    equal(outcome, "Error");
  },
};

function json(body: unknown): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** Throws an `Error` unless two JSON values are equal. */
function equal(actual: unknown, expected: unknown): void {
  const [is, should] = [actual, expected].map((value) => JSON.stringify(value));
  if (is !== should) throw new Error(`expected ${should}, got ${is}`);
}

/** Runs the checks, and returns a line for each. */
export async function run(): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    lines.push(await check().then(() => `ok ${name}`, (error) => `FAILED ${name}: ${error}`));
  }
  return lines;
}
