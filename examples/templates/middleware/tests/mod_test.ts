import { agent, textOf, tool } from "@jizai/jizai";
import { collect, scripted, testMiddleware } from "@jizai/jizai/testing";
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import * as z from "zod";
import { myMiddleware } from "../src/mod.ts";

const ping = tool({ name: "ping", description: "Answers", input: z.object({}), execute: () => "pong" });

test("calls beyond the limit are skipped", async () => {
  const model = scripted({ calls: [["ping", {}], ["ping", {}]] }, "Done.");
  const { events } = await collect(agent({ model, tools: [ping], use: [myMiddleware({ calls: 1 })] }).run("Go"));
  const results = events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
  assert.deepEqual(results.map((result) => [result.status, textOf(result)]), [
    ["ok", "pong"],
    ["skipped", "There are no calls left in this run."],
  ]);
});

test("each run has its own limit", async () => {
  const model = scripted({ calls: [["ping", {}]] }, "One.", { calls: [["ping", {}]] }, "Two.");
  const assistant = agent({ model, tools: [ping], use: [myMiddleware({ calls: 1 })] });
  for (const prompt of ["First", "Second"]) {
    const { events } = await collect(assistant.run(prompt));
    const statuses = events.flatMap((event) => event.type === "tool.finished" ? [event.result.status] : []);
    assert.deepEqual(statuses, ["ok"]);
  }
});

test("the middleware obeys the laws of middleware", async () => {
  await testMiddleware(() => myMiddleware({ calls: 1 }));
});

test("the example of the README runs", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [, code] = readme.match(/```ts\n([^]*?)```/) ?? [];
  assert.ok(code, "expected a ts block in README.md");
  const file = new URL("readme_example.ts", import.meta.url);
  await writeFile(file, code);
  try {
    await import(file.href);
  } finally {
    await rm(file);
  }
});
