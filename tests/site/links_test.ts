import { assertEquals } from "@std/assert";
import { posix } from "node:path";
import { sections } from "../../examples/guides/site.ts";
import { exportsOf } from "../support/source.ts";
import { brokenIn } from "./links.ts";
import { linked, linksIn, titleOf } from "./pages.ts";
import { streamPicture } from "./pictures.ts";

Deno.test("the link checker finds missing files and missing anchors", () => {
  const page = (body: string) => `<html><body>${body}</body></html>`;
  const texts = new Map([["a.html", page(`<h2 id="top">A</h2>`)], ["b/c.html", page("")], ["logo.png", ""]]);
  const broken = (body: string) => brokenIn("b/c.html", page(body), texts);
  assertEquals(
    broken(`<a href="../a.html#top">A</a> <img src="/logo.png"> <a class="x" href="https://x.org">X</a>`),
    [],
  );
  assertEquals(broken(`<a href="../a.html#end">A</a>`), ["b/c.html: ../a.html#end"]);
  assertEquals(broken(`<a href="d.html">D</a> <img src="/none.png">`), ["b/c.html: d.html", "b/c.html: /none.png"]);
});

Deno.test("links of a page lead to pages, and those in code stay", () => {
  const pages = new Map([["src/http/README.md", "manual/http"], ["mod.ts", "reference/jizai"]]);
  const attachments: string[] = [];
  const page = (markdown: string) => {
    const draft = { source: "examples/guides/concepts/a.md", path: "concepts/a", title: "", description: "", markdown };
    return linked(draft, pages, (path) => attachments.push(path)).markdown;
  };
  assertEquals(page("[HTTP](../../../src/http/README.md#routes)"), "[HTTP](../manual/http.md#routes)");
  assertEquals(page("[`agent()`](../../../mod.ts#agent)"), "[`agent()`](../reference/jizai.md#agent)");
  assertEquals(page("[`agent()`](/mod.ts#agent)"), "[`agent()`](../reference/jizai.md#agent)");
  assertEquals(page("`[a](b.md)` [x](https://x.org)"), "`[a](b.md)` [x](https://x.org)");
  assertEquals(page("```\n[a](b.md)\n```"), "```\n[a](b.md)\n```");
  assertEquals(page("[main](../../node/main.ts)"), "[main](../source/examples/node/main.ts.txt)");
  assertEquals(attachments, ["examples/node/main.ts"]);
  assertEquals(linksIn("[`a`](b.md) and [c](mailto:d)"), ["b.md"]);
});

Deno.test("the description of a page is its first sentence", () => {
  const page = "---\nlayout: doc\n---\n\n# Title\n\nA [link](b.md) of `code`. More.\n\nEnd.";
  assertEquals(titleOf(page), { title: "Title", description: "A link of code." });
});

Deno.test("the picture of the stream shows the events of today: run `deno task pictures`", async () => {
  assertEquals(await Deno.readTextFile("examples/guides/stream.svg"), await streamPicture());
});

Deno.test("links in Markdown lead to files, headings and exported symbols", async () => {
  const pages = ["README.md", ...sections.flatMap(({ files = [] }) => files)];
  const broken = await Promise.all(pages.map(async (page) => {
    const targets = linksIn(await Deno.readTextFile(page));
    const wrong = await Promise.all(
      targets.map(async (target) => await leads(page, target) ? [] : [`${page}: ${target}`]),
    );
    return wrong.flat();
  }));
  assertEquals(broken.flat(), []);
});

/** Returns true if a link of a page leads to a file or a folder, and its anchor to a heading or an export of the file. */
async function leads(page: string, target: string): Promise<boolean> {
  const [file = "", anchor] = target.split("#");
  const path = file === "" ? page : posix.join(posix.dirname(page), file);
  const text = await Deno.readTextFile(path).catch(() => undefined);
  if (text === undefined) return anchor === undefined && await Deno.stat(path).then(() => true, () => false);
  if (anchor === undefined) return true;
  if (path.endsWith(".ts")) return (await exportsOf({ path, text })).includes(anchor);
  const headings = text.matchAll(/^#+ (.+)$/gm).map(([, title = ""]) =>
    title.toLowerCase().replace(/[^\w\s-]/g, "").trim().replaceAll(" ", "-")
  );
  return [...headings].includes(anchor);
}
