import { type Middleware, ModelError, text } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { drop, order } from "../support/asking.ts";
import { inBrowser, send, shows } from "./chromium.ts";
import { brackets, open, until, weather } from "./playground_scene.ts";

Deno.test(
  "playground: the empty page names the agent, its model and its tools, and offers prompts",
  inBrowser,
  async () => {
    await using talk = await open({ steps: ["Hello!"], prompts: ["Plan a trip", "Say hello"] });
    const { page } = talk;
    await shows(() => page.locator("#empty h2").textContent(), "planner");
    await shows(() => page.locator("#empty dd >> nth=0").textContent(), "scripted");
    await shows(() => page.locator("#empty .tools li").allTextContents(), ["weather", "order"]);
    await shows(() => page.locator("#empty .tools button >> nth=0").getAttribute("title"), "Forecasts the weather");
    await shows(() => page.locator("#empty .prompts li").allTextContents(), ["Plan a trip", "Say hello"]);
    await page.getByRole("button", { name: "Say hello" }).click();
    await until(page, "done");
    await shows(() => page.locator(".from-you .text").textContent(), "Say hello");
    await shows(() => page.locator("#empty").count(), 0);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.locator("#empty").waitFor();
  },
);

Deno.test("playground: a failure is red, with its code and the id that the server reports", inBrowser, async () => {
  const reported: string[] = [];
  await using talk = await open({
    steps: [{ error: new ModelError("secret detail", { code: "overloaded" }) }],
    onError: (_error, { id }) => void reported.push(id),
  });
  const { page } = talk;
  await send(page, "Hi");
  await until(page, "failed");
  assertEquals(reported.length, 1);
  await shows(() => page.locator(".failure dd").allTextContents(), ["overloaded", ...reported]);
  await shows(() => page.locator(`[role="alert"] .who`).textContent(), "The provider of the model has no capacity");
  const color = `getComputedStyle(document.querySelector(".failure .text")).color`;
  await shows(() => page.evaluate(color), "rgb(179, 38, 30)");
  assert(!(await page.locator("body").textContent() ?? "").includes("secret detail"));
});

Deno.test(
  "playground: a refused request is red, with its code, and the id of an internal error",
  inBrowser,
  async () => {
    await using refused = await open({ owner: () => undefined });
    await send(refused.page, "Hi");
    await until(refused.page, "lost");
    await shows(() => refused.page.locator(".failure dd").allTextContents(), ["unidentified"]);

    const reported: string[] = [];
    await using failed = await open({
      owner: () => {
        throw new Error("secret detail");
      },
      onError: (_error, { id }) => void reported.push(id),
    });
    await send(failed.page, "Hi");
    await until(failed.page, "lost");
    await shows(() => failed.page.locator(".failure dd").allTextContents(), ["internal", ...reported]);
    assert(!(await failed.page.locator("body").textContent() ?? "").includes("secret detail"));
  },
);

Deno.test("playground: the trace nests brackets, in plain words, and says who decided", inBrowser, async () => {
  const outer: Middleware = {
    name: "outer",
    tool: (ctx, next) => ctx.name === "weather" ? next({ input: { city: "Oslo" } }) : next(),
  };
  const cache: Middleware = {
    name: "cache",
    execute: (ctx, next) => ctx.tool.name === "weather" ? Promise.resolve(text("Cold")) : next(),
  };
  const rules = permissions({
    ask: [{ tool: "order", why: "Order it?" }],
    deny: ["drop"],
    allow: ["weather", "order"],
    otherwise: "deny",
  });
  const calls = [["weather", { city: "Rome" }], ["drop", { table: "a" }], ["order", { what: "tea" }]] as const;
  const tools = [weather, drop, order];
  await using talk = await open({ steps: [{ calls }, "Done."], tools, use: [outer, rules, cache] });
  const { page } = talk;
  await send(page, "Hi");
  await until(page, "paused");
  assertEquals(await brackets(page), [
    "session: ‖ paused",
    " prompt",
    "  turn 1",
    "   model scripted: calls",
    "   3 calls at the same time",
    "    weather: ok · allowed by policy",
    "     outer at tool: ✎ changed the input",
    "      permissions at approval: → passed",
    "      cache at execute: ↩ answered",
    "    drop: denied by policy",
    "     outer at tool: → passed",
    "      permissions at approval: ✕ denied",
    "    order",
    "     outer at tool: ‖ paused",
    "      permissions at approval: ? asked",
    "       a person is asked",
  ]);
  const legend = await page.locator(".legend li").allTextContents();
  assertEquals(legend, [
    "→ passed: changed nothing",
    "✎ changed: the input, the result, or tried again",
    "↩ answered: in place of what is inside",
    "✕ denied: the call may not run",
    "? asked: a person decides",
    "‖ paused: until a person answers",
    "! failed: threw an error",
  ]);
  assert(await page.locator(".legend li:last-child .meaning").boundingBox()); // visible
  await page.getByRole("button", { name: "Approve" }).click();
  await until(page, "done");
  assertEquals((await brackets(page)).slice(16), [
    "session: ▶ resumed",
    " turn 1",
    "  order: ok · approved by a person",
    "   outer at tool: → passed",
    "    permissions at approval: ? asked",
    "    cache at execute: → passed",
    " turn 2",
    "  model scripted: stop",
  ]);
  const statuses = await page.locator("#log .status").allTextContents();
  assertEquals(statuses, ["ok · allowed by policy", "denied by policy", "ok · approved by a person"]);
  await page.getByLabel("Hide hooks that passed").check();
  await page.locator("#onion:not(:has(.act.passed))").waitFor();
  assertEquals((await brackets(page)).slice(5, 8), [
    "    weather: ok · allowed by policy",
    "     outer at tool: ✎ changed the input",
    "      cache at execute: ↩ answered",
  ]);
  assertEquals(page.troubles, []);
});

Deno.test("playground: a click on a hook shows what it changed, before and after", inBrowser, async () => {
  const change: Middleware = {
    name: "change",
    tool: async (_, next) => ({ ...await next({ input: { city: "Oslo" } }), ...text("Rain") }),
  };
  const hide = redact({ secrets: ["Rome"] });
  const calls = [["weather", { city: "Rome" }]] as const;
  await using talk = await open({ steps: [{ calls }, "Done."], use: [hide, change] });
  const { page } = talk;
  await send(page, "Rome?");
  await until(page, "done");
  await page.locator("#onion button.name:has-text('change at tool')").click();
  await shows(() => page.locator("#onion [aria-current]").allTextContents(), ["change at tool"]);
  const differences = () => page.locator("#detail .difference").allTextContents();
  await shows(async () => (await differences())[0], '{\n  "city": "[redacted]Oslo"\n}');
  await shows(() => page.locator("#detail .difference del").allTextContents(), ["[redacted]", "Sunny in Oslo"]);
  await shows(() => page.locator("#detail .difference ins").allTextContents(), ["Oslo", "Rain"]);
  await page.locator("#onion button.name:has-text('redact at input')").click();
  await page.locator('#detail .hint:text-is("The difference is masked.")').waitFor();
  await shows(differences, ["user: [redacted]?"]);
  await shows(() => page.locator("#onion [aria-current]").allTextContents(), ["redact at input"]);
  assertEquals(page.troubles, []);
});

Deno.test("playground: a failure quotes the line that the server writes to its terminal", inBrowser, async () => {
  using written = stub(console, "error");
  await using talk = await open({ steps: [{ error: new Error("secret detail") }], onError: "terminal" });
  await send(talk.page, "Hi");
  await until(talk.page, "failed");
  const lines = written.calls.map(({ args }) => String(args[0]));
  const quoted = await talk.page.locator(".failure .hint code").allTextContents();
  assertEquals(quoted.map((line) => `${line}:`), lines);
  assertEquals(lines.length, 1);
});

Deno.test("playground: calls that run alone are not shown as a group", inBrowser, async () => {
  const alone: Middleware = { name: "alone", groups: () => "alone" };
  const calls = [["weather", { city: "Rome" }], ["weather", { city: "Oslo" }]] as const;
  await using talk = await open({ steps: [{ calls }, "Done."], use: [alone] });
  await send(talk.page, "Hi");
  await until(talk.page, "done");
  const lines = await brackets(talk.page);
  assertEquals(lines.slice(3), [
    "   model scripted: calls",
    "   weather: ok · allowed by policy",
    "   weather: ok · allowed by policy",
    "  turn 2",
    "   model scripted: stop",
  ]);
});

Deno.test(
  "playground: a collapsed call shows its arguments, and opens to its input and result",
  inBrowser,
  async () => {
    const calls = [["weather", { city: "Rome", note: "a\nb" }], ["weather", "{ no JSON"]] as const;
    await using talk = await open({ steps: [{ calls }, "Done."] });
    const { page } = talk;
    await send(page, "Hi");
    await until(page, "done");
    assertEquals(await page.locator("#log .arguments").allTextContents(), [
      `city: "Rome", note: "a\\nb"`,
      "{ no JSON",
    ]);
    await shows(() => page.evaluate(`document.querySelector("#log .result").checkVisibility()`), false);
    await page.locator("#log summary >> nth=0").click();
    await page.locator(`#log .result:text-is("Sunny in Rome")`).waitFor();
  },
);

Deno.test("playground: each turn shows its tokens, and its cost only if there are prices", inBrowser, async () => {
  const steps = [
    { text: "Let me see.", calls: [["weather", { city: "Rome" }]], usage: { input: 1_200, output: 50 } },
    { text: "Sunny.", usage: { input: 2_000, output: 10, cached: 1_000 } },
  ] as const;
  const prices = { scripted: { input: 3, output: 15, cached: 0.3 } };
  await using priced = await open({ steps, prices });
  await send(priced.page, "Hi");
  await until(priced.page, "done");
  assertEquals(await priced.page.locator("#log .usage").allTextContents(), [
    "Turn 1 · 1,200 tokens in · 50 out · cost 0.00435",
    "Turn 2 · 2,000 tokens in · 10 out · 1,000 cached · cost 0.00345",
  ]);
  const totals = await priced.page.locator("#totals").textContent() ?? "";
  assert(totals.includes("3,200 tokens in · 60 out · 1,000 cached · cost 0.0078"), totals);

  await using free = await open({ steps, prices: { other: { input: 1, output: 1 } } });
  await send(free.page, "Hi");
  await until(free.page, "done");
  assertEquals(await free.page.locator("#log .usage").allTextContents(), [
    "Turn 1 · 1,200 tokens in · 50 out",
    "Turn 2 · 2,000 tokens in · 10 out · 1,000 cached",
  ]);
});

Deno.test("playground: the runs of the session are listed, each with its trace", inBrowser, async () => {
  await using talk = await open({ steps: [{ calls: [["weather", { city: "Rome" }]] }, "Sunny.", "Bye."] });
  const { page } = talk;
  await send(page, "Weather?");
  await until(page, "done");
  await send(page, "Thanks");
  await page.locator("text=Bye.").waitFor();
  await until(page, "done");
  await shows(() => page.locator("#runs .prompt").allTextContents(), ["Weather?", "Thanks"]);
  await shows(() => page.locator("#runs .status").allTextContents(), ["done", "done"]);
  await shows(async () => (await brackets(page)).length, 4);
  await page.locator("#runs button >> nth=0").click();
  await page.locator(`#runs li:first-child [aria-current="true"]`).waitFor();
  assertEquals(await brackets(page), [
    "session",
    " prompt",
    "  turn 1",
    "   model scripted: calls",
    "   weather: ok · allowed by policy",
    "  turn 2",
    "   model scripted: stop",
  ]);
  await page.reload();
  await shows(() => page.locator("#runs .prompt").allTextContents(), ["Weather?", "Thanks"]);
});

Deno.test(
  "playground: the approval stays in view on a phone, below a long answer, and does not cover the trace",
  inBrowser,
  async () => {
    const long = Array.from({ length: 80 }, (_, line) => `Line ${line}`).join("\n\n");
    const input = { what: "tea", list: Array.from({ length: 60 }, (_, item) => item) };
    await using talk = await open({ steps: [{ text: long, calls: [["order", input]] }, "Done."] });
    const { page } = talk;
    await page.setViewportSize({ width: 390, height: 800 });
    await send(page, "Hi");
    await until(page, "paused");
    const isInView = async (name: string) => {
      const box = await page.getByRole("button", { name, exact: true }).boundingBox();
      return box !== null && box.x >= 0 && box.y >= 0 && box.x + box.width <= 390 && box.y + box.height <= 800;
    };
    const names = ["Approve", "Deny", "Answer instead", "Send"];
    await shows(() => Promise.all(names.map(isInView)), [true, true, true, true]);
    await page.evaluate(`document.querySelector("#log").scrollTop = 0`);
    await shows(() => Promise.all(names.map(isInView)), [true, true, true, true]);
    await page.getByRole("button", { name: "Trace", exact: true }).click();
    await page.locator("#onion").waitFor();
    await shows(() => page.locator(".question").boundingBox(), null);
    await shows(() => page.evaluate(`document.documentElement.scrollWidth <= innerWidth`), true);
    await page.getByRole("button", { name: "The run waits for you: order" }).click();
    await shows(() => Promise.all(names.map(isInView)), [true, true, true, true]);
    await page.getByRole("button", { name: "Approve" }).click();
    await until(page, "done");
  },
);

Deno.test(
  "playground: a click in the trace shows the request to the model, a call with its edit, and the acts of a hook",
  inBrowser,
  async () => {
    const guard: Middleware = { name: "guard", tool: async (_, next) => ({ ...await next(), context: ["Be quick."] }) };
    const steps = [{ text: "Let me see.", calls: [["order", { what: "tea" }]] }, "On its way."] as const;
    await using talk = await open({ steps, use: [guard, redact({ secrets: ["hunter2"] })] });
    const { page } = talk;
    await send(page, "Tea for hunter2");
    await page.getByLabel("Input of order").fill(`{ "what": "coffee" }`);
    await page.getByRole("button", { name: "Approve" }).click();
    await until(page, "done");
    const shown = async (name: string) => {
      await page.locator(`#onion button.name:has-text("${name}") >> nth=-1`).click();
      return await page.locator("#detail pre, #detail .act").allTextContents();
    };
    const request = await shown("model scripted");
    assertEquals(request.slice(0, 3), [
      "Tea for [redacted]",
      `Let me see.\n{"type":"call","id":"call_1","name":"order","input":{"what":"tea"}}`,
      "call_1 ok: Ordered coffee.",
    ]);
    assertEquals(request.at(-1), "On its way.");
    assertEquals(await shown("order"), [`{\n  "what": "tea"\n}`, `{\n  "what": "coffee"\n}`, "Ordered coffee."]);
    assertEquals(await shown("guard at tool"), [
      "✎ changed the result",
      'status: ok\ninput: {\n  "what": "coffee"\n}\ncontext: Be quick.\nOrdered coffee.',
    ]);
    await page.keyboard.press("Escape");
    await shows(() => page.locator("#detail").count(), 0);
  },
);

Deno.test("playground: a run is run again in a session of its own, and compared", inBrowser, async () => {
  const look = { calls: [["weather", { city: "Oslo" }]] } as const;
  await using talk = await open({ steps: ["Hello.", look, "Sunny.", look, "It is sunny."] });
  const { page } = talk;
  await send(page, "Hi");
  await until(page, "done");
  await send(page, "Weather?");
  await page.locator("#log p:has-text('Sunny.')").waitFor();
  await until(page, "done");
  await page.getByRole("button", { name: "Run again and compare" }).click();
  await page.locator("#comparison td:has-text('It is sunny.')").waitFor();
  const cells = await page.locator("#comparison td").allTextContents();
  assertEquals(cells.slice(0, 6), [
    "done",
    "the same",
    `weather { "city": "Oslo" }: ok`,
    "the same",
    "Sunny.",
    "It is sunny.",
  ]);
  await shows(() => page.locator("#runs button").count(), 2);
  assertEquals(page.troubles, []);
});

Deno.test(
  "playground: all runs of a session are run again in one session, and a person is asked again",
  inBrowser,
  async () => {
    const buy = { calls: [["order", { what: "tea" }]] } as const;
    const steps = ["Hello, Ada.", buy, "On its way.", "Hello, Bob.", buy, "It is on its way."] as const;
    await using talk = await open({ steps });
    const { page } = talk;
    await send(page, "Hi");
    await until(page, "done");
    await send(page, "Tea!");
    await until(page, "paused");
    await page.getByRole("button", { name: "Approve" }).click();
    await until(page, "done");
    await page.getByRole("button", { name: "All 2 runs again" }).click();
    await page.locator("aside .question").waitFor();
    await shows(async () => (await page.locator("#comparison td").allTextContents()).slice(0, 2), ["done", "paused"]);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator("#comparison td:has-text('It is on its way.')").waitFor();
    await shows(() => page.locator("aside .question").count(), 0);
    await page.locator("#runs button >> nth=0").click();
    await page.locator("#comparison td:has-text('Hello, Bob.')").waitFor();
    await shows(() => page.locator("#comparison ins").allTextContents(), ["Bob"]);
    assertEquals(page.troubles, []);
  },
);

Deno.test("playground: a tool runs alone, past every guard, and asks no model", inBrowser, async () => {
  const rules = permissions({ deny: ["drop"], allow: ["weather", "order"], otherwise: "deny" });
  const calls = [["weather", { city: "Rome" }]] as const;
  await using talk = await open({ steps: [{ calls }, "Done."], tools: [weather, order, drop], use: [rules] });
  const { page } = talk;
  const result = () => page.locator("#bench .result").allTextContents();
  const run = () => page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator("#empty .tools button:has-text('weather')").click();
  await shows(() => page.getByLabel("Input").inputValue(), '{\n  "city": ""\n}');
  await page.getByLabel("Input").fill("{");
  await run();
  await page.locator("#bench .problem:has-text('The input is not JSON')").waitFor();
  await page.getByLabel("Input").fill('{ "city": "Oslo" }');
  await run();
  await shows(result, ["Sunny in Oslo"]);
  assertEquals((await brackets(page)).slice(1, 4), [
    " prompt",
    "  turn 1",
    "   weather: ok · allowed by policy",
  ]);
  await page.locator("#bench select").selectOption("drop");
  await shows(() => page.getByLabel("Input").inputValue(), '{\n  "table": ""\n}');
  await run();
  await page.locator("#bench .label:has-text('denied by policy')").waitFor();

  await page.keyboard.press("Escape");
  await send(page, "Hi"); // the first answer of the script: no call has asked the model
  await until(page, "done");
  await page.locator("#onion button.name:text-is('weather')").click();
  await page.getByRole("button", { name: "Run alone" }).click();
  await shows(() => page.getByLabel("Input").inputValue(), '{\n  "city": "Rome"\n}');
  await page.getByRole("button", { name: "Close" }).click();
  await shows(() => page.locator("#log .from-you").count(), 1);
  assertEquals(page.troubles, []);
});

Deno.test("playground: a tool that runs alone asks the person, who may change its input", inBrowser, async () => {
  await using talk = await open({});
  const { page } = talk;
  await page.locator("#empty .tools button:has-text('order')").click();
  await page.getByLabel("Input").fill('{ "what": "tea" }');
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByLabel("Input of order").fill('{ "what": "coffee" }');
  await page.getByRole("button", { name: "Approve" }).click();
  await shows(() => page.locator("#bench .result").allTextContents(), ["Ordered coffee."]);
  await page.locator("#bench .label:has-text('Result: ok · approved by a person')").waitFor();
  assertEquals(page.troubles, []);
});
