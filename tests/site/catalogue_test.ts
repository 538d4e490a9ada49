import { assertEquals, assertStringIncludes } from "@std/assert";
import { cataloguePage, created } from "./catalogue.ts";
import { type Declaration, type DocModule, symbolText } from "./reference.ts";
import { plainPage } from "./texts.ts";

/** Returns true for a module that is a part of a middleware, such as `mcp/stdio`, a function for one, or an observer of a server. */
const isPart = (name: string) => /\/|^(terminal|server_metrics)$/.test(name);

Deno.test("the catalogue creates each middleware that deno.json exports", async () => {
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  const names = Object.keys(config.exports).filter((name) => name.startsWith("./middleware/"))
    .map((name) => name.slice("./middleware/".length));
  assertEquals(Object.keys(created).toSorted(), names.filter((name) => !isPart(name)).toSorted());
  const skill = await Deno.readTextFile("examples/guides/SKILL.md");
  assertEquals(names.filter((name) => !isPart(name) && !new RegExp(`\\b${name}\\b`).test(skill)), []);
  for (const [name, create] of Object.entries(created)) {
    assertEquals(typeof (create() as { name?: unknown }).name, "string", name); // a middleware has a name
  }
});

const location = { filename: "file:///a.ts", line: 1 };
const keyword = (repr: string) => ({ kind: "keyword", repr, value: repr });
const options: Declaration = {
  kind: "interface",
  location,
  jsDoc: { doc: "Options of `retry()`. See {@linkcode retry}, and Map<string>." },
  def: { properties: [{ name: "attempts", readonly: true, optional: true, tsType: keyword("number") }] },
};
const factory: Declaration = {
  kind: "function",
  location,
  jsDoc: { doc: "Repeats." },
  def: {
    params: [{
      kind: "assign",
      left: { kind: "identifier", name: "options", tsType: { kind: "typeRef", value: { typeName: "RetryOptions" } } },
    }],
    returnType: { kind: "typeRef", value: { typeName: "Middleware" } },
  },
};
const module: DocModule = {
  name: "@jizai/jizai/middleware/retry",
  file: "middleware/reliability/retry.ts",
  doc: "Repeats failed requests.",
  symbols: [{ name: "RetryOptions", declarations: [options] }, { name: "retry", declarations: [factory] }],
};

Deno.test("a page of the catalogue has the points, the order, the options and the cost", () => {
  const { path, markdown } = cataloguePage(module, 0.72);
  assertEquals(path, "middleware/retry");
  assertStringIncludes(markdown, "| Points | [`model`](/examples/guides/concepts/onion.md#model), [`execute`]");
  assertStringIncludes(markdown, "| Options | [`RetryOptions`](#RetryOptions) |");
  assertStringIncludes(markdown, "| Cost | 0.7 KB in a bundle, minified and compressed |");
  assertStringIncludes(markdown, "function retry(options?: RetryOptions): Middleware");
});

Deno.test("a symbol of the reference has its signature, its docblock and its members", () => {
  const text = symbolText({ name: "RetryOptions", declarations: [options] }, new Set(["retry", "RetryOptions"]));
  assertEquals(
    text,
    [
      "## RetryOptions {#RetryOptions}",
      "Options of `retry()`. See [`retry`](#retry), and Map&lt;string>.",
      "```ts ignore\ninterface RetryOptions\n```",
      "- `readonly attempts?: number`",
    ].join("\n\n"),
  );
});

Deno.test("the Markdown beside a page has no part that only browsers show", () => {
  const markdown =
    `---\naside: false\n---\n\n# A {#page}\n\n<div class="onion">\n<svg></svg>\n</div>\n\nMap&lt;string>\n`;
  assertEquals(plainPage({ title: "A", path: "a", description: "", markdown }), "# A\n\nMap<string>\n");
});
