/**
 * The files of a middleware package that contain its name: its module, its tests and its README. `factory` is the name of the exported function.
 *
 * @module
 */

/** Returns the module of the middleware. */
export function middlewareSource(name: string, factory: string): string {
  return `/**
 * Limits the tool calls of a run.
 *
 * @module
 */
import { type Middleware, skipped, state } from "@jizai/jizai";

/** Options of \`${factory}()\`. */
export interface Options {
  /** The number of calls that one run may make. Default: 20. */
  readonly calls?: number;
}

/** Skips the calls of a run that exceed a limit, and tells the model. */
export function ${factory}({ calls = 20 }: Options = {}): Middleware {
  const used = state("${name}.used", () => 0); // one number for each run, not for each agent
  return {
    name: "${name}",
    interfaceVersion: 1, // that of Jizai's middleware; an agent with another one rejects it by name
    async tool(ctx, next) {
      if (used.update(ctx, (count) => count + 1) > calls) return skipped("There are no calls left in this run.");
      return await next();
    },
  };
}
`;
}

/** Returns the tests of the middleware, one of which runs the example of the README. */
export function middlewareTest(factory: string): string {
  return `import { agent, textOf, tool } from "@jizai/jizai";
import { collect, scripted, testMiddleware } from "@jizai/jizai/testing";
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import * as z from "zod";
import { ${factory} } from "../src/mod.ts";

const ping = tool({ name: "ping", description: "Answers", input: z.object({}), execute: () => "pong" });

test("calls beyond the limit are skipped", async () => {
  const model = scripted({ calls: [["ping", {}], ["ping", {}]] }, "Done.");
  const { events } = await collect(agent({ model, tools: [ping], use: [${factory}({ calls: 1 })] }).run("Go"));
  const results = events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
  assert.deepEqual(results.map((result) => [result.status, textOf(result)]), [
    ["ok", "pong"],
    ["skipped", "There are no calls left in this run."],
  ]);
});

test("each run has its own limit", async () => {
  const model = scripted({ calls: [["ping", {}]] }, "One.", { calls: [["ping", {}]] }, "Two.");
  const assistant = agent({ model, tools: [ping], use: [${factory}({ calls: 1 })] });
  for (const prompt of ["First", "Second"]) {
    const { events } = await collect(assistant.run(prompt));
    const statuses = events.flatMap((event) => event.type === "tool.finished" ? [event.result.status] : []);
    assert.deepEqual(statuses, ["ok"]);
  }
});

test("the middleware obeys the laws of middleware", async () => {
  await testMiddleware(() => ${factory}({ calls: 1 }));
});

test("the example of the README runs", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [, code] = readme.match(/\`\`\`ts\\n([^]*?)\`\`\`/) ?? [];
  assert.ok(code, "expected a ts block in README.md");
  const file = new URL("readme_example.ts", import.meta.url);
  await writeFile(file, code);
  try {
    await import(file.href);
  } finally {
    await rm(file);
  }
});
`;
}

/** Returns the README of the package. */
export function middlewareReadme(name: string, factory: string): string {
  return `# ${name}

A middleware for [Jizai](https://jsr.io/@jizai/jizai): it limits the tool calls of a run.

\`\`\`ts
import { agent, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import assert from "node:assert/strict";
import * as z from "zod";
import { ${factory} } from "${name}";

const ping = tool({ name: "ping", description: "Answers", input: z.object({}), execute: () => "pong" });
const model = scripted({ calls: [["ping", {}], ["ping", {}]] }, "Done.");
const assistant = agent({ model, tools: [ping], use: [${factory}({ calls: 1 })] });

const { messages } = await assistant.run("Go").result;
const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
assert.deepEqual(results.map(({ status }) => status), ["ok", "skipped"]);
\`\`\`

## Development

\`\`\`sh
npm install
npm test              # builds the package, checks its types, and runs its tests and the example above
npm run publish:npm
npm run publish:jsr   # first replace the scope in jsr.json by yours
\`\`\`
`;
}
