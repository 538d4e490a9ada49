import { agent, memory, serve, textOf, tool } from "@jizai/jizai";
import { logger } from "@jizai/jizai/middleware/logger";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { playground } from "@jizai/jizai/playground";
import { assert, assertEquals } from "@std/assert";
import { Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { assistant } from "../../examples/assistant/assistant.ts";
import { embedded } from "../../examples/assistant/model.ts";
import { prompts, switches } from "../../examples/assistant/tour.ts";
import { order } from "../support/asking.ts";
import { post } from "../support/requests.ts";
import { inBrowser, type Page, send, shows, visit } from "./chromium.ts";
import { trace } from "@jizai/jizai/trace";

/** A tool that waits until it is released or stopped. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({ who: z.string() }),
    execute: async ({ who }, { signal }) => {
      await new Promise<void>((resolve, reject) => {
        promise.then(resolve);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return `${who} is there.`;
    },
  });
  return { wait, open: resolve };
}

/** A connection of the page that begins a run. It can be cut. */
function connection() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const before: MiddlewareHandler = async (c, next) => {
    await next();
    const { body } = c.res;
    if (c.req.method !== "POST" || !body) return;
    const open = new TransformStream<Uint8Array, Uint8Array>({
      start(controller) {
        promise.then(() => controller.error(new Error("The cable is cut")));
      },
    });
    c.res = new Response(body.pipeThrough(open), c.res);
  };
  return { before, cut: resolve };
}

/** Calls `then` after the response to a request whose path ends with `path`. */
function after(path: string, then: () => void): MiddlewareHandler {
  return async ({ req }, next) => {
    await next();
    if (req.path.endsWith(path)) then();
  };
}

/** Opens a page for an agent with this script. `at` is the path where the agent is mounted, `before` the middleware in front of it. */
async function talking(
  { steps, tools = [order], at = "", before = (_, next) => next() }: {
    readonly steps: readonly ScriptedAnswer[];
    readonly tools?: readonly (typeof order | ReturnType<typeof gate>["wait"])[];
    readonly at?: string;
    readonly before?: MiddlewareHandler;
  },
) {
  const assistant = agent({ model: scripted(...steps), tools, use: [logger(() => {})], trace });
  const served = serve(assistant, { page: playground(), onClientGone: "detach" });
  return await visit(new Hono().use(before).route(at, served), at || "/");
}

async function until(page: Page, state: string): Promise<void> {
  await page.locator(`#state:text-is("${state}")`).waitFor();
}

/** Returns the texts of the transcript, without the tokens of the turns. */
async function texts(page: Page): Promise<string[]> {
  return await page.evaluate(`[...document.querySelectorAll("#log > li")].map((entry) => {
    const copy = entry.cloneNode(true);
    copy.querySelector(".usage")?.remove();
    return copy.textContent;
  })`) as string[]; // the texts, as the script returns them
}

Deno.test("playground: a person chats with an agent, and sees the run", inBrowser, async () => {
  await using talk = await talking({ steps: ["<b>Hello</b> <script>alert(1)</script>", "Again."], at: "/assistant" });
  const { page } = talk;
  await send(page, "Hi");
  await until(page, "done");
  await shows(() => texts(page), ["YouHi", "Agent<b>Hello</b> <script>alert(1)</script>"]);
  const names = await page.locator("#onion .name").allTextContents();
  assertEquals(names, [
    "session",
    "logger at session",
    "logger at input",
    "prompt",
    "logger at prompt",
    "turn 1",
    "logger at turn",
    "model scripted",
    "logger at model",
    "logger at stop",
  ]);
  await send(page, "And again");
  await page.locator("text=Again.").waitFor();
  await until(page, "done");
  await shows(async () => (await texts(page)).length, 4);
  await page.getByRole("button", { name: "New conversation" }).click();
  await shows(() => texts(page), []);
  assertEquals(page.troubles, []);
});

Deno.test(
  "playground: a person approves an edited input, denies, and replies in place of a tool",
  inBrowser,
  async () => {
    const asks = { calls: [["order", { what: "tea" }]] } as const;
    await using talk = await talking({ steps: [asks, "One.", asks, "Two.", asks, "Three."] });
    const { page } = talk;

    await send(page, "Change it");
    const given = page.getByLabel("Input of order");
    await given.waitFor();
    await given.fill("{ no JSON");
    await page.getByRole("button", { name: "Approve" }).click();
    await until(page, "paused");
    await given.fill(`{ "what": "coffee" }`);
    await page.getByRole("button", { name: "Approve" }).click();
    await until(page, "done");

    await send(page, "Deny it");
    await page.getByLabel("Reason to deny, or an answer in its place").fill("Too late.");
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    await until(page, "done");

    await send(page, "Answer it");
    await page.getByLabel("Reason to deny, or an answer in its place").fill("There is tea.");
    await page.getByRole("button", { name: "Answer instead" }).click();
    await until(page, "done");

    const results = await page.locator("#log .result").allTextContents();
    assertEquals(results, ["Ordered coffee.", "A person said no: Too late.", "There is tea."]);
    assertEquals(page.troubles, []);
  },
);

Deno.test("playground: a page that reloads during a run continues it", inBrowser, async () => {
  const { wait, open } = gate();
  const calls = [["wait", { who: "Ada" }], ["wait", { who: "Bob" }]] as const;
  await using talk = await talking({ steps: [{ text: "Let me see.", calls }, "Both are there."], tools: [wait] });
  const { page } = talk;
  await send(page, "Who is there?");
  await page.locator("#onion .call >> nth=1").waitFor();
  await page.reload();
  await until(page, "running");
  await shows(async () => (await texts(page)).length, 4);
  open();
  await until(page, "done");
  assertEquals((await texts(page)).slice(0, 2), ["YouWho is there?", "AgentLet me see."]);
  await shows(() => page.locator("#log .result").allTextContents(), ["Ada is there.", "Bob is there."]);
  const bars = await page.evaluate(`[...document.querySelectorAll("#onion .call > .row .bar")].map((bar) => {
    const { left, right } = bar.getBoundingClientRect();
    return [left, right];
  })`) as [number, number][]; // the script returns numbers
  const [[, endOfFirst], [startOfSecond]] = [bars[0] ?? [0, 0], bars[1] ?? [0, 0]];
  assert(startOfSecond < endOfFirst, "The calls are not side by side");
  assertEquals(page.troubles, []);
});

Deno.test("playground: a page whose connection is cut requests the rest", inBrowser, async () => {
  const { wait, open } = gate();
  const steps = [{ calls: [["wait", { who: "Ada" }]] } as const, "She is there."];
  const { before, cut } = connection();
  await using talk = await talking({ steps, tools: [wait], before });
  const { page } = talk;
  await send(page, "Who is there?");
  await page.locator("#log .call").waitFor();
  cut();
  await until(page, "reconnecting");
  open();
  await until(page, "done");
  await shows(async () => (await texts(page)).at(-1), "AgentShe is there.");
  await shows(() => page.locator("#log .result").allTextContents(), ["Ada is there."]);
});

Deno.test("playground: a page that was offline receives the rest", inBrowser, async () => {
  const { wait, open } = gate();
  await using talk = await talking({ steps: [{ calls: [["wait", { who: "Ada" }]] }, "She is there."], tools: [wait] });
  const { page } = talk;
  await send(page, "Who is there?");
  await page.locator("#onion .call >> nth=0").waitFor();
  await page.context().setOffline(true);
  await page.reload().catch(() => {}); // the reload fails, because nothing is cached
  await page.context().setOffline(false);
  open();
  await page.reload();
  await until(page, "done");
  await shows(async () => (await texts(page)).at(-1), "AgentShe is there.");
});

Deno.test("playground: a person steers a run, makes it finish, and stops it", inBrowser, async () => {
  const first = gate();
  await using talk = await talking({
    steps: [{ calls: [["wait", { who: "Ada" }]] }, ({ messages }) => JSON.stringify(messages.at(-1)?.role) ?? ""],
    tools: [first.wait],
    before: after("/messages", first.open),
  });
  const { page } = talk;
  await send(page, "Who is there?");
  await page.locator("#onion .call >> nth=0").waitFor();
  await send(page, "Be quick");
  await until(page, "done");
  await shows(async () => (await texts(page)).slice(2), ["YouBe quick", `Agent"user"`]);

  const second = gate();
  await using another = await talking({
    steps: [{ calls: [["wait", { who: "Bob" }]] }, "Enough."],
    tools: [second.wait],
    before: after("/finish", second.open),
  });
  await send(another.page, "Who is there?");
  await another.page.locator("#onion .call >> nth=0").waitFor();
  await another.page.getByRole("button", { name: "Finish" }).click();
  await until(another.page, "done");

  await using third = await talking({ steps: [{ calls: [["order", { what: "tea" }]] }] });
  await send(third.page, "Tea");
  await until(third.page, "paused");
  await third.page.getByRole("button", { name: "Stop" }).click();
  await until(third.page, "aborted");
  await shows(async () => (await texts(third.page)).at(-1), "NoteStopped: stop");
  assertEquals([...page.troubles, ...another.page.troubles, ...third.page.troubles], []);
});

Deno.test(
  "playground: every control is reachable by keyboard, on a phone, in light and dark mode",
  inBrowser,
  async () => {
    await using talk = await talking({ steps: [{ calls: [["order", { what: "tea" }]] }, "On its way."] });
    const { page } = talk;
    await page.setViewportSize({ width: 360, height: 740 });
    await page.keyboard.type("Tea");
    await page.keyboard.press("Enter");
    await until(page, "paused");
    const focused = () => page.evaluate(`document.activeElement.textContent`);
    for (let tabs = 0; await focused() !== "Approve" && tabs < 20; tabs++) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await until(page, "done");
    await shows(() => page.evaluate(`document.documentElement.scrollWidth <= innerWidth`), true);
    const grounds: unknown[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      grounds.push(await page.evaluate(`getComputedStyle(document.body).backgroundColor`));
    }
    assertEquals(grounds, ["rgb(251, 250, 247)", "rgb(23, 24, 26)"]);
    assertEquals(page.troubles, []);
  },
);

Deno.test(
  "playground: an approval counts for the run that the page shows, not for a later one with the same call",
  inBrowser,
  async () => {
    const did: string[] = [];
    const pay = tool({
      name: "pay",
      description: "Pays",
      input: z.object({ amount: z.number() }),
      ask: true,
      execute({ amount }) {
        did.push(`paid ${amount}`);
        return "Paid.";
      },
    });
    const call = (amount: number) => ({ calls: [{ id: "call_1", name: "pay", input: { amount } }] });
    const assistant = agent({ model: scripted(call(1), call(1_000), "Unreached."), tools: [pay] });
    const app = serve(assistant, { page: playground(), store: memory(), session: () => "s" });
    await using talk = await visit(app);
    const { page } = talk;
    await send(page, "Pay 1");
    await until(page, "paused");
    const { run } = await (await app.request("/sessions/s")).json();
    await post(app, `/runs/${run.id}/stop?session=s&rollback`, {});
    while ("run" in await (await app.request("/sessions/s")).json()); // the stop is answered before the run has ended
    await (await post(app, "/runs", { prompt: "Pay 1,000" })).text();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator("text=it is not paused").waitFor();
    assertEquals(did, []);
  },
);

/** Opens a page on a server that can be started again, without its sessions. */
async function restarting(...scripts: readonly (readonly ScriptedAnswer[])[]) {
  const models = scripts.map((steps) => scripted(...steps));
  const [first, ...later] = models.map((model) =>
    serve(agent({ model, tools: [order], trace }), { page: playground(), onClientGone: "detach" })
  );
  let app = first!;
  const visiting = await visit({ fetch: (request) => app.fetch(request) });
  return {
    ...visiting,
    models,
    restart() {
      app = later.shift()!;
    },
  };
}

Deno.test("playground: after a restart of the server, a conversation goes on in a new session", inBrowser, async () => {
  await using talk = await restarting(["Hello, Ada."], ["You are Ada."]);
  const { page } = talk;
  await send(page, "I am Ada");
  await until(page, "done");
  talk.restart();
  await send(page, "Who am I?");
  await page.locator("text=The server was started again").waitFor();
  await shows(() => page.getByLabel("Message").inputValue(), "Who am I?");
  await page.keyboard.press("Enter");
  await until(page, "done");
  const shown = await texts(page);
  assertEquals([shown.length, shown.slice(3)], [5, ["YouWho am I?", "AgentYou are Ada."]]);
  const sent = talk.models[1]!.requests[0]!.messages.map(({ role, ...message }) =>
    "parts" in message ? [role, textOf(message)] : [role]
  );
  assertEquals(sent, [["user", "I am Ada"], ["assistant", "Hello, Ada."], ["user", "Who am I?"]]);
});

Deno.test("playground: a page that reloads after a restart of the server goes on", inBrowser, async () => {
  await using talk = await restarting([{ calls: [["order", { what: "tea" }]] }], ["Tea, then."]);
  const { page } = talk;
  await send(page, "Tea");
  await until(page, "paused");
  talk.restart();
  await page.reload();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator("text=The server was started again").waitFor();
  await shows(() => page.locator(".question").count(), 0);
  await page.reload();
  await send(page, "Again");
  await until(page, "done");
  await shows(async () => (await texts(page)).slice(-2), ["YouAgain", "AgentTea, then."]);
});

Deno.test("playground: a message that the server did not receive is put back", inBrowser, async () => {
  await using talk = await talking({ steps: ["Hello."] });
  const { page } = talk;
  await page.context().setOffline(true);
  await send(page, "Hi");
  await until(page, "lost");
  await shows(() => page.getByLabel("Message").inputValue(), "Hi");
  await page.context().setOffline(false);
  await page.keyboard.press("Enter");
  await until(page, "done");
});

Deno.test("playground: a refused edit stays in its card, with the reason below it", inBrowser, async () => {
  await using talk = await talking({ steps: [{ calls: [["order", { what: "tea" }]] }, "Done."] });
  const { page } = talk;
  await send(page, "Tea");
  const given = page.getByLabel("Input of order");
  await given.waitFor();
  await given.fill(`{ "what": 5 }`);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(".question [role=alert]:has-text('its input is wrong')").waitFor();
  await shows(() => given.inputValue(), `{ "what": 5 }`);
  await given.fill(`{ "what": "coffee" }`);
  await page.getByRole("button", { name: "Approve" }).click();
  await until(page, "done");
  await shows(() => page.locator("#log .result").allTextContents(), ["Ordered coffee."]);
});

Deno.test("playground: a person takes the tour, and turns a middleware off", inBrowser, async () => {
  const app = serve(assistant(embedded({ pause: 0 }), { pace: 0, trace }), {
    page: playground({ prompts, switches }),
    vars: (c) => ({ off: c.req.header("x-off")?.split(",") ?? [] }),
    onClientGone: "detach",
  });
  await using talk = await visit(app);
  const { page } = talk;
  await page.locator(".prompts button:has-text('Delete the customer Ada')").click();
  await until(page, "done");
  await shows(() => page.locator("#log .look").allTextContents(), [prompts[3]?.note]);
  await shows(() => page.locator("#log .result").allTextContents(), ["Customers are never deleted here."]);
  await page.locator(".tour summary").click();
  await page.getByLabel("permissions").click();
  await page.locator(".prompts button:has-text('Delete the customer Ada')").click();
  await page.locator("#log p:has-text('Deleted Ada and all orders.')").waitFor();
  await send(page, "How do I ask a person before a tool runs?");
  const link = page.locator("#log .markdown a >> nth=0");
  await link.waitFor();
  await shows(async () => (await link.getAttribute("href"))?.endsWith("/docs/examples/guides/ask_a_person.md"), true);
  assertEquals(page.troubles, []);
});
