import { assert, assertEquals } from "@std/assert";
import { hopsToStart } from "./bench/kit/hops.ts";
import { median } from "./bench/kit/stopwatch.ts";
import {
  exportsOf,
  filesIn,
  type Import,
  importsOf,
  isNamed,
  linesOfFiles,
  list,
  type Node,
  partialCopies,
  type Pattern,
  places,
  read,
  type Source,
  unexplainedCasts,
} from "./support/source.ts";

/** The rooms of `src`, and the rooms that each may import. */
const rooms = {
  protocol: [],
  client: ["protocol"],
  stream: ["protocol"],
  model: ["protocol", "stream"],
  core: ["protocol", "stream", "model"],
  session: ["protocol", "stream", "model", "core"],
  wire: ["protocol", "stream", "model", "core"],
  http: ["protocol", "stream", "model", "core", "session", "wire"],
  playground: ["protocol", "core"],
  testing: ["protocol", "stream", "model", "core", "session", "wire", "http"],
  cli: ["protocol", "client", "core", "session", "testing"],
} satisfies Record<string, readonly string[]>;

const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
const exported = new Map<string, string>(Object.entries(config.exports));

const mod = await read("mod.ts");
const src = await read("src");
const middleware = await read("middleware");
const examples = await read("examples");
const library = [...mod, ...src, ...middleware];

/** Tests that no source breaks a rule, and that all samples, `path: text`, break it. */
function rule(
  name: string,
  sources: readonly Source[],
  broken: (source: Source) => readonly string[],
  samples: Readonly<Record<string, string>>,
) {
  Deno.test(name, () => {
    for (const [path, text] of Object.entries(samples)) {
      assert(broken({ path, text }).length > 0, `The rule does not see: ${text}`);
    }
    assertEquals(sources.flatMap(broken), []);
  });
}

/** A rule that forbids all matches of a pattern. */
function banned(name: string, sources: readonly Source[], pattern: Pattern, ...samples: readonly string[]) {
  const named = samples.map((text, index) => [`src/core/sample_${index}.ts`, text]);
  rule(name, sources, (source) => places(source, pattern), Object.fromEntries(named));
}

/** A rule that forbids the imports for which `wrong` returns true. */
function imports(
  name: string,
  sources: readonly Source[],
  wrong: (target: string, from: string) => boolean,
  samples: Readonly<Record<string, string>>,
) {
  const broken = (source: Source) =>
    importsOf(source).filter(({ target }) => wrong(target, source.path))
      .map(({ specifier }) => `${source.path} imports ${specifier}`);
  rule(name, sources, broken, samples);
}

/** Returns what `node` is a member of, such as `ctx` of `ctx.run.state`. */
function rootOf(node: Node): Node {
  return node.type === "MemberExpression" ? rootOf(node.object) : node;
}

function isMember(node: Node, object: string, property: string): boolean {
  return node.type === "MemberExpression" && isNamed(node.object, new RegExp(`^${object}$`)) &&
    isNamed(node.property, new RegExp(`^${property}$`));
}

function isRace(node: Node): boolean {
  return node.type === "CallExpression" && isMember(node.callee, "Promise", "race");
}

/** Whether an ancestor of `node` passes a test. */
function isIn(node: Node, test: (ancestor: Node) => boolean): boolean {
  return node.type !== "Program" && "parent" in node && (test(node.parent) || isIn(node.parent, test));
}

function isCast({ type }: Node): boolean {
  return type === "TSAsExpression" || type === "TSTypeAssertion";
}

function isEmptyCollection(node: Node | null | undefined): boolean {
  return node?.type === "NewExpression" && isNamed(node.callee, /^(Map|Set)$/) && node.arguments.length === 0;
}

const room = (path: string) => path.match(/^src\/(\w+)\//)?.[1] ?? path;
const isMiddleware = (path: string) => path.startsWith("middleware/");
const isBare = (target: string) => !/^(mod\.ts$|src\/|middleware\/|examples\/|tests\/)/.test(target);
const isAdapter = ({ path }: Source) =>
  /\/(cli|command_hooks|directory|deno_kv|process|stdio|terminal|transcript)(\/|\.ts$)/.test(path);

/** Returns the import cycles of runtime imports as lists of modules. Types may import each other. */
function circles(sources: readonly Source[]): string[][] {
  const needs = new Map(sources.map((source) => [
    source.path,
    importsOf(source).flatMap(({ target, ofTypes }) => ofTypes ? [] : [target]),
  ]));
  const done = new Set<string>();
  const found: string[][] = [];
  function visit(path: string, route: readonly string[]): void {
    if (route.includes(path)) found.push([...route.slice(route.indexOf(path)), path]);
    else if (!done.has(path)) { for (const next of needs.get(path) ?? []) visit(next, [...route, path]); }
    done.add(path);
  }
  for (const path of needs.keys()) visit(path, []);
  return found;
}

Deno.test("no module imports itself through others, except for types", () => {
  const [a, b, c] = ["a", "b", "c"].map((name) => `src/core/${name}.ts`);
  assert(a && b && c);
  const sample = [
    { path: a, text: `import { b } from "./b.ts";` },
    { path: b, text: `import { type A, a } from "./a.ts"; import type { C } from "./c.ts";` },
    { path: c, text: `import { type A } from "./a.ts"; import type { B } from "./b.ts";` },
  ];
  assertEquals(circles(sample), [[a, b, a]]);
  assertEquals(circles(sample.slice(1)), []);
  assertEquals(circles(library), []);
});

Deno.test("every form of import is found", () => {
  const text = `
    // import "./comment.ts"; 自在鉤
    const quoted = 'import "./string.ts"', template = \`import "./template.ts"\`;
    import type { A } from "./type.ts";
    import b, { type C as c } from "zod";
    import * as d from "../model/all.ts";
    import "./effect.ts";
    export { e as f } from "./named.ts";
    export type * from "./every.ts";
    export { c };
    type G = import("./in_type.ts").G;
    const h = await import("./lazy.ts");
  `;
  const seen = importsOf({ path: "src/core/sample.ts", text })
    .map(({ target, names, passedOn }) => [target, names.join(), passedOn]);
  assertEquals(seen, [
    ["src/core/type.ts", "A", false],
    ["zod", "default,C", true],
    ["src/model/all.ts", "*", false],
    ["src/core/effect.ts", "", false],
    ["src/core/named.ts", "e", true],
    ["src/core/every.ts", "*", true],
    ["src/core/in_type.ts", "*", false],
    ["src/core/lazy.ts", "*", false],
  ]);
});

imports("the rooms of src import one way", src, (target, from) => {
  const allowed: readonly string[] | undefined = Object.entries(rooms).find(([name]) => name === room(from))?.[1];
  return !allowed || (!isBare(target) && room(target) !== room(from) && !allowed.includes(room(target)));
}, {
  "src/core/upward.ts": `import type { App } from "../http/app.ts";`,
  "src/session/across.ts": `await import("../wire/sse.ts");`,
  "src/wire/outward.ts": `export * from "../../mod.ts";`,
  "src/elsewhere/room.ts": `import "../core/agent/agent.ts";`,
});

imports("src never imports middleware", [...mod, ...src], (target) => target.startsWith("middleware/"), {
  "src/testing/mod.ts": `import { retry } from "../../middleware/retry.ts";`,
});

/** The files that `deno.json` exports, without middleware: a third party can import these. */
const published = new Set([...exported.values()].map((path) => path.slice(2)).filter((path) => !isMiddleware(path)));

imports("a middleware imports only what the package exports", middleware, (target, from) => {
  const own = from.match(/^middleware\/\w+\/\w+\//)?.[0];
  const usesNode = target.startsWith("node:") && isAdapter({ path: from, text: "" });
  const speaksMcp = own === "middleware/tools/mcp/" && target.startsWith("@modelcontextprotocol/client");
  const tracesCalls = own === "middleware/observability/otel/" && target === "@opentelemetry/api";
  const foreign = "middleware/foreign_hooks/";
  const workspace = "middleware/tools/workspace/";
  const checksAnswers = from.startsWith(foreign) || from.startsWith(workspace);
  const searches = from.startsWith(workspace) && target === "re2js";
  const builtOn = from.startsWith(foreign) && target.startsWith(foreign);
  return !(own && target.startsWith(own)) && !speaksMcp && !tracesCalls && !builtOn &&
    !(checksAnswers && target === "zod") &&
    !searches && !usesNode && !published.has(target);
}, {
  "middleware/limits/one.ts": `import { two } from "./two.ts";`,
  "middleware/limits/internal.ts": `import { onionOf } from "../../src/core/onion.ts";`,
  "middleware/limits/schema.ts": `import * as z from "zod";`,
  "middleware/limits/search.ts": `import { RE2JS } from "re2js";`,
  "middleware/limits/client.ts": `import { Client } from "@modelcontextprotocol/client";`,
  "middleware/limits/roundabout.ts": `import { agent } from "@jizai/jizai";`,
});

/** The folders of the systems whose hooks are run, and the other folders that each of them may import. */
const systems: Readonly<Record<string, readonly string[]>> = {
  claude: ["kit", "copilot"],
  copilot: ["kit"],
  kit: [],
  mods: ["kit"],
  picoclaw: ["kit"],
  yoi: ["kit"],
};

/** Returns the system that a file is about; undefined for a file elsewhere. */
function systemOf(path: string): string | undefined {
  return path.match(/^middleware\/foreign_hooks\/(\w+)\//)?.[1];
}

imports("the systems of foreign hooks share the kit and import one way", middleware, (target, from) => {
  const [own, other] = [systemOf(from), systemOf(target)];
  return own !== undefined && other !== undefined && own !== other && !systems[own]?.includes(other);
}, {
  "middleware/foreign_hooks/kit/upward.ts": `import { events } from "../claude/events.ts";`,
  "middleware/foreign_hooks/copilot/back.ts": `import { events } from "../claude/events.ts";`,
  "middleware/foreign_hooks/yoi/across.ts": `import { hookNames } from "../copilot/outputs.ts";`,
});

rule(
  "the client takes nothing but types, brand(), expectNames() and emittedForm() from elsewhere",
  src.filter(({ path }) => room(path) === "client"),
  (source) => {
    const isAllowed = ({ target, ofTypes }: Import) =>
      ofTypes || room(target) === "client" ||
      ["src/protocol/brand.ts", "src/protocol/shape.ts", "src/protocol/question.ts"].includes(target);
    return importsOf(source).filter((found) => !isAllowed(found))
      .map(({ specifier }) => `${source.path} imports ${specifier}`);
  },
  {
    "src/client/sum.ts": `import { addUsage } from "../protocol/message.ts";`,
    "src/client/both.ts": `import { type Usage, addUsage } from "../protocol/message.ts";`,
    "src/client/bare.ts": `import * as z from "zod";`,
  },
);

imports("only src/http imports Hono", library, (target, from) => /^hono\b/.test(target) && room(from) !== "http", {
  "src/wire/native.ts": `import { streamSSE } from "hono/streaming";`,
});

imports("the library reaches itself by path, not by name", library, (target) => target.startsWith(config.name), {
  "src/core/self.ts": `import { agent } from "${config.name}";`,
});

imports("only an adapter imports from Node", library.filter((source) => !isAdapter(source)), (target) => {
  return target.startsWith("node:");
}, { "src/core/ids.ts": `import { randomUUID } from "node:crypto";` });

rule("Zod is imported as a namespace, which leaves out what is not used", [...library, ...examples], (source) => {
  return importsOf(source).filter(({ target, names }) => /^zod\b/.test(target) && names.join() !== "*")
    .map(({ names }) => `${source.path} imports { ${names} } from "zod"`);
}, { "examples/chat/main.ts": `import { z } from "zod";` });

rule("only a public entry passes on what it imports", library, (source) => {
  const isEntry = [...exported.values()].includes(`./${source.path}`);
  return isEntry ? [] : importsOf(source).filter(({ passedOn }) => passedOn)
    .map(({ specifier }) => `${source.path} passes on ${specifier}`);
}, {
  "src/core/mod.ts": `export * from "./agent.ts";`,
  "src/core/agent.ts": `import { run } from "./run.ts"; export { run };`,
});

banned(
  "only an adapter names Deno",
  library.filter((source) => !isAdapter(source)),
  { nodes: { Identifier: ({ name }) => name === "Deno" }, text: /Deno/ },
  "Deno.exit(1);",
  "type Store = Deno.Kv;",
  "globalThis.Deno;",
);

banned(
  "the library writes to the console only where the defaults of onError and logger() do",
  library.filter(({ path }) => !["src/core/events.ts", "middleware/observability/logger.ts"].includes(path)),
  { nodes: { Identifier: ({ name }) => name === "console" }, text: /console/ },
  `console.log("hello");`,
  "const { warn } = console;",
);

banned(
  "nothing writes to its context",
  [...library, ...examples],
  {
    nodes: {
      AssignmentExpression: ({ left }) => left.type === "MemberExpression" && isNamed(rootOf(left), /^ctx$/),
    },
    text: /ctx/,
  },
  "ctx.input = {};",
  "ctx.run.state = {};",
);

banned(
  "no module keeps mutable state",
  library,
  {
    nodes: {
      VariableDeclaration: ({ parent, kind, declarations }) =>
        /^(Program|ExportNamedDeclaration)$/.test(parent.type) &&
        (kind === "let" || declarations.some(({ init }) => isEmptyCollection(init))),
    },
    text: /^(export )?let\b|new (Map|Set)\b/m,
  },
  "let count = 0;",
  "export let last: string | undefined;",
  "const cache = new Map<string, string>();",
);

banned(
  "no failure is swallowed by an empty catch",
  library,
  { nodes: { CatchClause: ({ body }) => body.body.length === 0 }, text: /catch/ },
  "try { run(); } catch { /* never mind */ }",
);

banned(
  "a race is not a timeout",
  library,
  {
    nodes: { Identifier: (node) => isNamed(node, /^(setTimeout|timeout)$/) && isIn(node, isRace) },
    text: /race/,
  },
  "await Promise.race([work, new Promise((done) => setTimeout(done, 5))]);",
  "await Promise.race([work, timeout]);",
);

banned(
  "the library uses nothing that Node 22 lacks",
  library,
  {
    nodes: {
      MemberExpression: (node) =>
        isMember(node, "Promise", "try") || isMember(node, "RegExp", "escape") || isMember(node, "Error", "isError"),
      VariableDeclaration: ({ kind }) => kind.endsWith("using"),
    },
    text: /Promise\.try|RegExp\.escape|Error\.isError|\busing\b/,
  },
  "Promise.try(run);",
  "RegExp.escape(name);",
  "Error.isError(error);",
  "using file = open();",
);

banned(
  "no enums, namespaces or decorators",
  library,
  {
    nodes: { TSEnumDeclaration: () => true, TSModuleDeclaration: () => true, Decorator: () => true },
    text: /\benum\b|\b(namespace|module|global)\b[^;]*\{|^\s*@\w/m,
  },
  "enum Status { Done }",
  "namespace Core {}",
  "@sealed class Run {}",
);

banned(
  "no type is forced by two casts",
  library,
  {
    nodes: { TSAsExpression: ({ parent }) => isCast(parent), TSTypeAssertion: ({ parent }) => isCast(parent) },
    text: /\bas\b|<\w/,
  },
  "const user = body as unknown as User;",
);

rule(
  "src/core has no partial copy of another module's type",
  src.filter(({ path }) => path.startsWith("src/core/")),
  partialCopies,
  {
    "src/core/sample.ts": 'function end({ reason }: Pick<AbortContext, "reason">) {}',
    "src/core/other.ts": 'type Failed = Pick<Extract<Event, { type: "run.failed" }>, "code">;',
  },
);

rule("a cast says why", library, unexplainedCasts, {
  "src/core/cast.ts": "// parsed\nconst a = 1;\nconst user = body as User;\n",
});

const madeWith = /^(create|with(?!GracePeriod|Retries))[A-Z]|^Base[A-Z]|(Manager|Impl)$/;

banned(
  "names say what a thing is, not what it is made with",
  library,
  {
    nodes: {
      FunctionDeclaration: ({ id }) => isNamed(id, madeWith),
      ClassDeclaration: ({ id }) => isNamed(id, madeWith),
      TSInterfaceDeclaration: ({ id }) => isNamed(id, madeWith),
      TSTypeAliasDeclaration: ({ id }) => isNamed(id, madeWith),
    },
    text: /(create|with|Base)[A-Z]|Manager|Impl/,
  },
  "function createAgent() {}",
  "export class SessionManager {}",
  "interface BaseTool {}",
);

Deno.test("the top level contains only known files and folders", async () => {
  const files = [".gitignore", "LICENSE", "README.md", "deno.json", "deno.lock", "mod.ts"];
  const folders = [".ci", ".git", "examples", "middleware", "src", "tests"];
  const ignored = (await Deno.readTextFile(".gitignore")).trim().split("\n")
    .map((line) => new RegExp(`^${line.replace(/\/$/, "").replaceAll(".", "\\.").replaceAll("*", ".*")}$`));
  const strays = (await list("."))
    .filter((name) => ![...files, ...folders].includes(name) && !ignored.some((pattern) => pattern.test(name)));
  assertEquals(strays, []);
});

Deno.test("src contains only the rooms", async () => {
  assertEquals((await list("src")).filter((name) => !(name in rooms)), []);
});

Deno.test("tests mirror src and middleware", async () => {
  const own = [
    "README.md",
    "architecture_test.ts",
    "attack",
    "bench",
    "browser",
    "examples_test.ts",
    "language_test.ts",
    "messages.ts",
    "middleware",
    "package",
    "platforms",
    "servers",
    "site",
    "support",
    "traps.ts",
    "types",
    "types_test.ts",
  ];
  assertEquals((await list("tests")).filter((name) => !(name in rooms) && !own.includes(name)), []);
});

Deno.test("file names are in snake_case and describe the content", async () => {
  const sources = [...library, ...examples, ...await read("tests")];
  const named = /^[a-z0-9]+(_[a-z0-9]+)*(\.d)?\.ts$/;
  const vague = /^(utils?|helpers?|common|shared|misc|index)\b/;
  const names = sources.map(({ path }) => ({ path, name: path.replace(/.*\//, "") }));
  assertEquals(names.filter(({ name }) => !named.test(name) || vague.test(name)), []);
});

Deno.test("src and middleware have at most 390 files, of at most 550 lines, and half of them at least 120", async () => {
  const lines = await linesOfFiles();
  assert(lines.size <= 390, `there are ${lines.size} files; join those that are always read together`);
  assertEquals([...lines].filter(([, count]) => count > 550), []);
  const middle = median([...lines.values()]);
  assert(middle >= 120, `the median is ${middle} lines; join the files that are always read together`);
});

Deno.test("every middleware is exported under its own name, and other files only as parts of one", () => {
  const nameOf = (path: string) =>
    path.replace(/^middleware\/(foreign_hooks\/)?\w+/, "./middleware").replace(/(\/mod)?\.ts$/, "");
  const found = [...exported].filter(([name]) => name.startsWith("./middleware/"));
  assertEquals(found.filter(([name, path]) => name !== nameOf(path.slice(2))), []);
  const own = middleware.map(({ path }) => path).filter((path) =>
    systemOf(path) === undefined
      ? /^middleware\/\w+\/\w+(\/mod)?\.ts$/.test(path)
      : /^middleware\/foreign_hooks\/(\w+\/\w+_hooks|mods\/mods)\.ts$/.test(path) // the other files beside it are its parts
  );
  assertEquals(own.filter((path) => exported.get(nameOf(path)) !== `./${path}`), []);
  const parts = found.map(([name]) => name).filter((name) => !own.some((path) => nameOf(path) === name));
  assertEquals(parts.filter((name) => !own.some((path) => name.startsWith(`${nameOf(path)}/`))), []);
});

Deno.test("every export is a file", () => {
  const files = new Set(library.map(({ path }) => `./${path}`));
  assertEquals([...exported.values()].filter((path) => !files.has(path)), []);
});

Deno.test("mod.ts exports at most 150 names, and each name once", async () => {
  const names = (await Promise.all(mod.map(exportsOf))).flat();
  assertEquals(names.toSorted(), [...new Set(names)].toSorted());
  assert(names.includes("agent") && names.includes("RunResult"), "a name of mod.ts was not found");
  assert(names.length <= 150, `mod.ts exports ${names.length} names; export what only the engine needs from /engine`);
});

/** Returns the files that the tables of a page name: one at the start of each row. */
function filesInRows(page: string): readonly string[] {
  return Array.from(page.matchAll(/^\| `([\w/]+\.tsx?)` *\|/gm), ([, path = ""]) => path);
}

/** Returns the TypeScript files in a folder, by their paths from there. */
async function sourcesIn(folder: string): Promise<readonly string[]> {
  const paths = await filesIn(folder);
  return paths.filter((path) => /\.tsx?$/.test(path)).map((path) => path.slice(folder.length + 1));
}

Deno.test("the page of a room names each of its files in one row, and says what it decides", async () => {
  assertEquals(filesInRows("| `a.ts` | it |\n| `b/c.tsx`   | it |\n| it | `d.ts` |\n"), ["a.ts", "b/c.tsx"]);
  for (const folder of [...Object.keys(rooms).map((name) => `src/${name}`), "middleware/foreign_hooks"]) {
    const rows = filesInRows(await Deno.readTextFile(`${folder}/README.md`));
    assertEquals(rows.toSorted(), (await sourcesIn(folder)).toSorted(), `${folder}/README.md`);
  }
  const rows = filesInRows(await Deno.readTextFile("middleware/README.md"));
  const parts = (await sourcesIn("middleware")).filter((path) => /^(?!foreign_hooks)\w+\/\w+\//.test(path));
  assertEquals(rows.toSorted(), parts.toSorted());
});

Deno.test("every source file that a page names exists", async () => {
  const files = (await Promise.all(["src", "middleware", "tests", "examples"].map(filesIn))).flat();
  const missing = (page: string) =>
    Array.from(page.matchAll(/`([\w/]+\.tsx?)`/g), ([, path]) => path)
      .filter((path) => !files.some((file) => `/${file}`.endsWith(`/${path}`)));
  assertEquals(missing("`core/agent.ts`, `core/no_agent.ts`"), ["core/no_agent.ts"]);
  for (const path of files.filter((path) => path.endsWith("README.md") && !path.startsWith("examples/templates/"))) {
    assertEquals(missing(await Deno.readTextFile(path)), [], path);
  }
});

Deno.test("every dependency is declared with its version, and a link replaces one of JSR", async () => {
  const imports = Object.entries<string>(config.imports);
  assertEquals(imports.filter(([name, target]) => !new RegExp(`^(npm|jsr):${name}@\\^?\\d`).test(target)), []);
  const folders: readonly string[] = config.links ?? []; // none, to use the originals
  const links = await Promise.all(
    folders.map(async (path) => JSON.parse(await Deno.readTextFile(`${path}/deno.json`))),
  );
  const replaced = links.map(({ name, version }) => [config.imports[name], `jsr:${name}@^${parseInt(version)}`]);
  assertEquals(replaced.filter(([declared, linked]) => declared !== linked), []);
});

Deno.test("the lock names no registry", async () => {
  assertEquals((await Deno.readTextFile("deno.lock")).match(/\w+:\/\/[^"]*/g), null);
});

Deno.test("from a route of a server to the start of its run there are at most six hops", async () => {
  for (const [request, functions] of await hopsToStart()) {
    assertEquals([functions.at(0), functions.at(-1)], ["handleRequest http/request_path.ts", "start core/start.ts"]);
    assert(functions.length <= 7, `${request}: ${functions.join(", ")}`);
  }
});
