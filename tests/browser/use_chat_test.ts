import { agent, serve, tool } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import * as z from "zod";
import { order } from "../support/asking.ts";
import { inBrowser, type Locator, type Page, send, visit } from "./chromium.ts";

/** Bundles the script of a page with the packages of its folder, and this one. Without a lock, so that only these tests download them. */
async function bundled(folder: string): Promise<Uint8Array<ArrayBuffer>> {
  const cwd = await Deno.makeTempDir();
  try {
    const manifest = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
    delete manifest.dependencies["@jizai/jizai"];
    const client = new URL("../../src/client/mod.ts", import.meta.url).href;
    await Deno.copyFile(`${folder}/page.jsx`, `${cwd}/page.jsx`);
    await Deno.writeTextFile(`${cwd}/package.json`, JSON.stringify(manifest));
    await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports: { "@jizai/jizai/client": client } }));
    const args = ["bundle", "--no-lock", "--node-modules-dir=none", "--quiet", "--platform", "browser", "page.jsx"];
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd }).output();
    if (!success) throw new Error(`Cannot bundle ${folder}: ${new TextDecoder().decode(stderr)}`);
    return stdout;
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
}

const script = inBrowser.ignore ? "" : await bundled("examples/use_chat");
const html =
  `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/page.js"></script>`;

/** Opens the page for an agent with this script. */
async function talking(...steps: readonly ScriptedAnswer[]) {
  let gate = Promise.withResolvers<void>();
  let connection = new AbortController();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({ who: z.string() }),
    execute: async ({ who }) => {
      await gate.promise;
      return `${who} is there.`;
    },
  });
  const assistant = agent({ model: scripted(...steps), tools: [order, wait] });
  const served = serve(assistant, { wires: [aiSdkUi(), aiSdkMessages()], onClientGone: "detach" });
  const app = new Hono()
    .get("/", (c) => c.html(html))
    .get("/page.js", (c) => c.body(script, 200, { "content-type": "text/javascript" }))
    .use(async (c, next) => {
      await next();
      if (c.res.body) c.res = new Response(c.res.body.pipeThrough(new TransformStream(), connection), c.res);
    })
    .route("", served);
  const visiting = await visit(app);
  const { page } = visiting;
  return {
    page,
    get troubles(): readonly string[] {
      const expected = ["Download the React DevTools", "404 (Not Found)"]; // a new chat does not exist on the server yet
      return page.troubles.filter((trouble) => !expected.some((each) => trouble.includes(each)));
    },
    /** Releases the tool. */
    release() {
      gate.resolve();
      gate = Promise.withResolvers();
    },
    /** Takes the page offline. Open responses are cut too, since Chromium would keep them. */
    async goOffline() {
      await page.context().setOffline(true);
      connection.abort();
      connection = new AbortController();
    },
    async goOnline() {
      await page.context().setOffline(false);
    },
    [Symbol.asyncDispose]: () => visiting[Symbol.asyncDispose](),
  };
}

function button(page: Page, name: "Approve" | "Deny" | "Stop" | "Regenerate"): Locator {
  return page.getByRole("button", { name });
}

/** Waits until `last` is the last text of the page and the chat is in this state. Returns the texts of the page. */
async function shown(page: Page, last: string, state = "ready"): Promise<string[]> {
  await page.locator(`li:last-child:text-is(${JSON.stringify(last)})`).waitFor();
  await page.locator(`output:text-is("${state}")`).waitFor();
  return await page.locator("li").allTextContents();
}

const waiting = `tool-wait input-available {"who":"Ada"}`;
const waited = `tool-wait output-available {"who":"Ada"} Ada is there.`;
const ordered = `tool-order output-available {"what":"tea"} Ordered tea.`;
const waits = { calls: [["wait", { who: "Ada" }]] } as const;
const asks = { calls: [["order", { what: "tea" }]] } as const;

Deno.test("useChat: a person chats with an agent", inBrowser, async () => {
  await using talk = await talking("<b>Hello</b>", "Again.");
  const { page } = talk;
  await send(page, "Hi");
  await shown(page, "assistant: <b>Hello</b>");
  await send(page, "And again");
  assertEquals(await shown(page, "assistant: Again."), [
    "user: Hi",
    "assistant: <b>Hello</b>",
    "user: And again",
    "assistant: Again.",
  ]);
  assertEquals(talk.troubles, []);
});

Deno.test("useChat: a person approves a call, and denies another", inBrowser, async () => {
  await using talk = await talking(asks, "On its way.", asks, "A pity.");
  const { page } = talk;
  await send(page, "Tea");
  await button(page, "Approve").click();
  await shown(page, "assistant: On its way.");
  await send(page, "More");
  await button(page, "Deny").click();
  assertEquals(await shown(page, "assistant: A pity."), [
    "user: Tea",
    ordered,
    "assistant: On its way.",
    "user: More",
    `tool-order output-denied {"what":"tea"}`,
    "assistant: A pity.",
  ]);
  assertEquals(talk.troubles, []);
});

Deno.test(
  "useChat: a page that reloads continues during an answer, at a question, and after its answer",
  inBrowser,
  async () => {
    await using talk = await talking({ text: "Let me see.", ...waits }, asks, waits, "On its way.");
    const { page } = talk;
    const before = ["user: Tea, if she is there", "assistant: Let me see."];
    await send(page, "Tea, if she is there");
    await shown(page, waiting, "streaming");
    await page.reload();
    assertEquals(await shown(page, waiting, "streaming"), [...before, waiting]);
    talk.release();
    await button(page, "Approve").waitFor();
    await page.reload();
    await button(page, "Approve").click();
    assertEquals(await shown(page, waiting, "streaming"), [...before, waited, ordered, waiting]);
    await page.reload();
    assertEquals(await shown(page, waiting, "streaming"), [...before, waited, ordered, waiting]);
    talk.release();
    const after = [...before, waited, ordered, waited, "assistant: On its way."];
    assertEquals(await shown(page, "assistant: On its way."), after);
    await page.reload();
    assertEquals(await shown(page, "assistant: On its way."), after);
    assertEquals(talk.troubles, []);
  },
);

Deno.test(
  "useChat: a page that was offline receives the rest, and its lost answer is asked again",
  inBrowser,
  async () => {
    await using talk = await talking({ text: "Let me see.", ...waits }, asks, "On its way.");
    const { page } = talk;
    await send(page, "Tea, if she is there");
    await shown(page, waiting, "streaming");
    await talk.goOffline();
    await shown(page, waiting, "error");
    talk.release();
    await talk.goOnline();
    await button(page, "Approve").waitFor();
    await talk.goOffline();
    await button(page, "Approve").click();
    await shown(page, `tool-order approval-responded {"what":"tea"}`, "error");
    await talk.goOnline();
    await button(page, "Approve").click();
    assertEquals(await shown(page, "assistant: On its way."), [
      "user: Tea, if she is there",
      "assistant: Let me see.",
      waited,
      ordered,
      "assistant: On its way.",
    ]);
  },
);

Deno.test("useChat: Stop stops the run, and the next message is answered", inBrowser, async () => {
  await using talk = await talking({ text: "Let me see.", ...waits }, "Hello.");
  const { page } = talk;
  await send(page, "Who is there?");
  await shown(page, waiting, "streaming");
  await button(page, "Stop").click();
  await send(page, "Never mind");
  const after = await shown(page, "assistant: Hello.");
  assertEquals(after.slice(-2), ["user: Never mind", "assistant: Hello."]);
  await page.reload();
  assertEquals((await shown(page, "assistant: Hello.")).slice(-2), ["user: Never mind", "assistant: Hello."]);
  assertEquals(talk.troubles, []);
});

Deno.test("useChat: Regenerate replaces the last answer, also after a reload", inBrowser, async () => {
  await using talk = await talking("One.", "Two.", "Three.");
  const { page } = talk;
  await send(page, "Hi");
  await shown(page, "assistant: One.");
  await button(page, "Regenerate").click();
  assertEquals(await shown(page, "assistant: Two."), ["user: Hi", "assistant: Two."]);
  await page.reload();
  assertEquals(await shown(page, "assistant: Two."), ["user: Hi", "assistant: Two."]);
  await button(page, "Regenerate").click();
  assertEquals(await shown(page, "assistant: Three."), ["user: Hi", "assistant: Three."]);
  assertEquals(talk.troubles, []);
});
