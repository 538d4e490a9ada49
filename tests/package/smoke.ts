/**
 * Uses the installed package as an application does, on any runtime. Prints a line per check, and throws at the first that fails.
 *
 * @module
 */
import { agent, type Middleware, serve, tool } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import assert from "node:assert/strict";
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

const checks: Readonly<Record<string, () => Promise<void>>> = {
  async "an agent runs two calls and answers"() {
    const model = scripted({ calls: [["weather", { city: "Kyoto" }], ["weather", { city: "Oslo" }]] }, "Sunny.");
    const run = agent({ model, tools: [weather] }).run("Weather?");
    const results: string[] = [];
    for await (const event of run.events) if (event.type === "tool.finished") results.push(event.result.status);
    const { status, text } = await run.result;
    assert.deepEqual([status, text, ...results], ["done", "Sunny.", "ok", "ok"]);
  },

  async "a served agent streams server-sent events"() {
    const app = serve(agent({ model: scripted("Hello!") }));
    const response = await app.request("/runs", json({ prompt: "Hi" }));
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
    const events = (await response.text()).matchAll(/"type":"(run\.\w+)"/g);
    assert.deepEqual([...events].map(([, type]) => type), ["run.started", "run.finished"]);
  },

  async "the client approves a call of a paused run"() {
    const app = serve(agent({ model: scripted({ calls: [["drop", { table: "users" }]] }, "Gone."), tools: [drop] }));
    const run = client("", { fetch: app.request }).run({ prompt: "Drop the users" });
    const { status, questions } = await run.result();
    assert.deepEqual([status, questions.map(({ tool }) => tool)], ["paused", ["drop"]]);
    const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
    const after = await run.answer(answers).result();
    assert.deepEqual([after.status, after.text], ["done", "Gone."]);
  },

  async "a client of OpenAI completes a chat"() {
    const app = serve(agent({ model: scripted("Hello!") }), { wires: [chatCompletions()] });
    const messages = [{ role: "user", content: "Hi" }];
    const response = await app.request("/v1/chat/completions", json({ model: "agent", messages }));
    const { choices } = await response.json();
    assert.equal(choices[0].message.content, "Hello!");
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
    await assert.rejects(testMiddleware(bad));
  },

  async "every entry loads that needs no optional peer"() {
    const { exports } = JSON.parse(await readManifest());
    for (const entry of Object.keys(exports)) {
      if (!/\/(mcp|otel)\b/.test(entry)) await import(`@jizai/jizai${entry.slice(1)}`);
    }
  },
};

function json(body: unknown): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** Returns the text of the package's `package.json`, which it does not export. */
async function readManifest(): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  return readFile("node_modules/@jizai/jizai/package.json", "utf8");
}

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(`ok ${name}`);
}
