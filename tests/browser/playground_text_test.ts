import { tool } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import { inBrowser, send, shows } from "./chromium.ts";
import { brackets, open, until, weather } from "./playground_scene.ts";

/** A script that would run if the page executed what it shows. */
const attack = `<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>`;

Deno.test("playground: answers are shown as Markdown", inBrowser, async () => {
  const text = [
    "# Title",
    "Some **bold** and *soft* text with `code` & a [link](https://example.com/a?b=1&c=2).",
    "",
    "1. one",
    "2. two",
    "   - inner",
    "",
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "",
    "```ts\nconst a = 1 < 2;\n```",
  ].join("\n");
  await using talk = await open({ steps: [text] });
  await send(talk.page, "Hi");
  await until(talk.page, "done");
  assertEquals(
    await talk.page.evaluate(`document.querySelector(".markdown").innerHTML`),
    `<h3>Title</h3><p>Some <strong>bold</strong> and <em>soft</em> text with <code>code</code> &amp; a ` +
      `<a href="https://example.com/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer">link</a>.</p>` +
      `<ol start="1"><li>one</li><li>two<ul><li>inner</li></ul></li></ol>` +
      `<div class="table" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>` +
      `<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>` +
      `<pre class="code" tabindex="0"><code>const a = 1 &lt; 2;</code></pre>`,
  );
  assertEquals(talk.page.troubles, []);
});

Deno.test("playground: HTML, script links and event handlers in an answer stay text", inBrowser, async () => {
  const links = [
    "[a](javascript:window.hacked=1)",
    "[b](JaVaScRiPt:window.hacked=1)",
    "[c](data:text/html,<script>window.hacked=1</script>)",
    "[d](vbscript:hacked)",
    "![e](javascript:window.hacked=1)",
    "<javascript:window.hacked=1>",
  ];
  await using talk = await open({ steps: [[attack, ...links, "<details open ontoggle=hacked=1>"].join("\n\n")] });
  const { page } = talk;
  await send(page, attack);
  await until(page, "done");
  const elements = await page.evaluate(`[...document.querySelectorAll(".markdown *")].map((each) => each.localName)`);
  assertEquals([...new Set(elements as string[])], ["p"]); // names, as the script returns them
  const shown = await page.locator(".markdown").textContent() ?? "";
  for (const text of [attack, "a (javascript:window.hacked=1)"]) assert(shown.includes(text), shown);
  await shows(() => page.locator(".from-you .text").textContent(), attack);
  await shows(() => page.evaluate("window.hacked"), undefined);
  assertEquals(page.troubles, []);
});

Deno.test("playground: names, arguments, results, questions and errors stay text", inBrowser, async () => {
  const echo = tool({
    name: "echo",
    description: attack,
    input: z.object({ text: z.string() }),
    execute: ({ text }) => text,
  });
  const asks = permissions({ ask: [{ tool: "weather", why: attack }], otherwise: "allow" });
  const calls = [["echo", { text: attack, [attack]: 1 }], [attack, { a: attack }], ["weather", {
    city: attack,
  }]] as const;
  await using talk = await open({
    name: `</script>${attack}`,
    prompts: [attack],
    prices: { [attack]: { input: 1, output: 1 } },
    steps: [{ reasoning: attack, calls }, attack],
    tools: [echo, weather],
    use: [asks, { name: attack, model: (_ctx, next) => next() }],
  });
  const { page } = talk;
  await shows(() => page.locator("h1").textContent(), `</script>${attack}`);
  await page.locator(".prompts button").click();
  await until(page, "paused");
  await page.getByRole("button", { name: "Approve" }).click();
  await until(page, "done");
  await shows(async () => (await page.locator("#log .result").allTextContents())[0], attack);
  await shows(async () => (await page.locator("#log .tool").allTextContents())[1], attack);
  assert((await brackets(page)).some((line) => line.includes(`${attack} at model`)));
  await shows(() => page.evaluate(`document.querySelectorAll("img, #root script").length`), 0);
  await shows(() => page.evaluate("window.hacked"), undefined);
  assertEquals(page.troubles, []);
});

Deno.test("playground: the policy of the page blocks HTML and scripts that are added to it", inBrowser, async () => {
  await using talk = await open({});
  const outcomes = await talk.page.evaluate(`(async () => {
    const outcomes = [];
    try {
      document.body.innerHTML += "<img src=x onerror=window.hacked=1>";
    } catch (error) {
      outcomes.push(error.name);
    }
    const button = document.createElement("button");
    button.setAttribute("style", "color: red");
    outcomes.push(button.style.color);
    await fetch("https://example.com/").catch((error) => outcomes.push(error.name));
    outcomes.push(window.hacked);
    return outcomes;
  })()`);
  assertEquals(outcomes, ["TypeError", "", "TypeError", undefined]);
});

Deno.test("playground: an image of an answer is loaded only on click", inBrowser, async () => {
  const requested: string[] = [];
  await using talk = await open({
    steps: ["![A map](https://images.test/map.svg?secret=1) ![b](http://x.test/b.png)"],
  });
  const { page } = talk;
  await page.route("https://images.test/**", async (route) => {
    requested.push("map");
    await route.fulfill({ contentType: "image/svg+xml", body: `<svg xmlns="http://www.w3.org/2000/svg"/>` });
  });
  await send(page, "Show me a map");
  await until(page, "done");
  assertEquals([requested, await page.locator(".markdown img").count()], [[], 0]);
  await page.getByRole("button", { name: "Show image “A map” from images.test" }).click();
  await page.locator(".markdown img").waitFor();
  await page.evaluate(`document.querySelector(".markdown img").decode().catch(() => {})`);
  assertEquals(requested, ["map"]);
  await shows(() => page.locator(".markdown").textContent(), " b (http://x.test/b.png)");
  assertEquals(page.troubles, []);
});
