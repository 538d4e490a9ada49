/**
 * A package with a middleware, for npm and JSR.
 *
 * @module
 */
import { json, node, type Project, type Template, tsconfig } from "./template.ts";

const commands = ["npm install", "npm test"];

/** Returns the name of the factory: `my-middleware` exports `myMiddleware`. */
function factoryOf(name: string): string {
  return name.replace(/-+(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function source(name: string, factory: string): string {
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

function testSource(factory: string): string {
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

function readme(name: string, factory: string): string {
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

const workflow = `name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        node: [22, 24]
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with:
          node-version: \${{ matrix.node }}
      - run: npm install
      - run: npm test
`;

const license = `MIT License

Copyright (c) the authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`;

/** Returns the \`package.json\`. The package needs Jizai as a peer, so that an app has one copy of it. */
function manifest({ name, range, tarball }: Project): string {
  return json({
    name,
    version: "0.1.0",
    description: "A middleware for Jizai: limits the tool calls of a run",
    keywords: ["agent", "jizai", "middleware"],
    license: "MIT",
    type: "module",
    exports: { ".": { types: "./dist/mod.d.ts", default: "./dist/mod.js" } },
    files: ["dist"],
    sideEffects: false,
    engines: { node: ">=22" },
    scripts: {
      build: "tsc --project tsconfig.build.json",
      test: `npm run build && tsc && ${node} --test`,
      prepublishOnly: "npm test",
      "publish:npm": "npm publish --access public",
      "publish:jsr": "npx -y jsr publish",
    },
    peerDependencies: { "@jizai/jizai": range },
    devDependencies: {
      "@jizai/jizai": tarball === undefined ? range : `file:${tarball}`,
      "@types/node": "^22.18.0",
      hono: "^4.13.19",
      typescript: "^7.0.2",
      zod: "^4.4.0",
    },
  });
}

/** A package with a middleware: its test, an executed README example, CI, and scripts that publish to npm and JSR. */
export const middlewarePackage: Template = {
  title: "a middleware, as a package for npm and JSR",
  commands,
  files(project) {
    const { name, range } = project;
    const factory = factoryOf(name);
    return {
      ".github/workflows/test.yml": workflow,
      ".gitignore": "node_modules/\ndist/\n*.tgz\ntests/readme_example.ts\n",
      LICENSE: license,
      "README.md": readme(name, factory),
      "jsr.json": json({
        name: `@your-scope/${name}`,
        version: "0.1.0",
        license: "MIT",
        exports: "./src/mod.ts",
        imports: { "@jizai/jizai": `jsr:@jizai/jizai@${range}` },
        publish: { include: ["LICENSE", "README.md", "jsr.json", "src"] },
      }),
      "package.json": manifest(project),
      "src/mod.ts": source(name, factory),
      "tests/mod.test.ts": testSource(factory),
      "tsconfig.build.json": json({
        extends: "./tsconfig.json",
        compilerOptions: {
          noEmit: false,
          declaration: true,
          outDir: "dist",
          rewriteRelativeImportExtensions: true,
          rootDir: "src",
        },
        include: ["src"],
      }),
      "tsconfig.json": tsconfig(["src", "tests"], { erasableSyntaxOnly: undefined }), // JSR would check dependencies with it
    };
  },
};
