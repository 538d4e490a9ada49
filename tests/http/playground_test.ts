import { agent, type Event, type Middleware, serve, type ServeOptions, tool } from "@jizai/jizai";
import { playground } from "@jizai/jizai/playground";
import { scripted } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { Hono } from "hono";
import * as z from "zod";
import { script, sources } from "../../src/playground/bundle.ts";
import { readFrames } from "../../src/playground/page/connection.ts";
import { differenceOf, folded, textOfValue } from "../../src/playground/page/difference.ts";
import { reduce } from "../../src/playground/page/reduce.ts";
import { type TraceNode, traceTree } from "../../src/playground/page/trace_tree.ts";
import { emptyView, type Frame, type View } from "../../src/playground/page/view.ts";
import { order } from "../support/asking.ts";
import { post } from "../support/requests.ts";
import { digestOfSources, filesOfPage } from "../support/page_bundle.ts";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";

const empty: View = { ...emptyView, began: 1_000 };

const app = () => serve(agent({ model: scripted("Hello!") }), { page: playground() });

/** Returns the view after these events, one every 10 milliseconds. */
function viewAfter(events: readonly Event[], view = empty, from = 1_010): View {
  return events.reduce((view, event, index) => reduce(view, { id: view.at + 1, event }, from + 10 * index), view);
}

/** Returns one line for each entry of the conversation. */
function lines({ entries }: View): readonly string[] {
  return entries.map(({ kind, name, text, status }) => [kind, name, status, text].filter((word) => word).join(" | "));
}

/** Returns one line for each span, indented below the span that contains it. */
function tree({ spans }: View, parent = "", depth = 0): readonly string[] {
  return spans.filter((span) => span.parent === parent).flatMap((span) => [
    `${" ".repeat(depth)}${span.name}${span.outcome && `: ${span.outcome}`}${span.to === undefined ? " ..." : ""}`,
    ...tree({ ...empty, spans }, span.key, depth + 1),
  ]);
}

async function happened(run: { readonly events: AsyncIterable<Event> }): Promise<readonly Event[]> {
  return await Array.fromAsync(run.events);
}

Deno.test("playground() returns a page that loads nothing and whose policy allows only its own script and style", async () => {
  const served = app();
  const response = await served.request("/");
  assertEquals([response.status, response.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
  const policy = response.headers.get("content-security-policy") ?? "";
  const [, nonce = ""] = policy.match(/script-src 'nonce-([^']+)'/) ?? [];
  assertEquals(policy.split("; "), [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src https: data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ]);
  const html = await response.text();
  assertEquals(html.match(/nonce="[^"]*"/g), [`nonce="${nonce}"`, `nonce="${nonce}"`]);
  const unsafe = /https?:|\bsrc=|innerHTML|insertAdjacentHTML|document\.write|\beval\b/gi;
  assertEquals(html.replace(script, "").match(unsafe), null);
  const sourcesOfPage = await Promise.all((await filesOfPage()).map((path) => Deno.readTextFile(path)));
  assertEquals(sourcesOfPage.join("\n").match(/innerHTML|insertAdjacentHTML|document\.write|\beval\b/gi), null);
  assertEquals(html.match(/<script/g)?.length, 1);
  const repeated = await (await served.request("/")).text();
  assert(!repeated.includes(nonce));
});

Deno.test("playground() is served only if it is given, also in a mounted app", async () => {
  const without = await serve(agent({ model: scripted() })).request("/");
  assertEquals([without.status, (await without.json()).error.code], [404, "unknown"]);
  const mounted = new Hono().route("/assistant", app());
  assertMatch(await (await mounted.request("/assistant")).text(), /<title>Playground<\/title>/);
  assertEquals((await app().request("/", { method: "HEAD" })).status, 200);
  const posted = await app().request("/", { method: "POST" });
  assertEquals([posted.status, posted.headers.get("allow")], [405, "GET, HEAD"]);
  await posted.body?.cancel();
});

Deno.test("serve() leaves requests and changed values out of a trace unless it has a page, also those of subagents", async () => {
  const hooked: Middleware = { name: "m", prompt: (_, next) => next({ context: ["It is noon."] }) };
  const child = () => agent({ name: "child", model: scripted("Hi."), use: [hooked], trace });
  const details = async (options: Pick<ServeOptions, "page">) => {
    const model = scripted({ calls: [["child", { prompt: "Hello?" }]] }, "Done.");
    const served = serve(agent({ model, tools: [asTool(child())], use: [hooked], trace }), options);
    const events: Event[] = [];
    await readFrames(await post(served, "/runs", { prompt: "Hi" }), ({ event }) => void events.push(event));
    const inner = (event: Event): Event => event.type === "subagent.event" ? inner(event.event) : event;
    return events.map(inner).flatMap((event) => {
      if (event.type === "model.requested") return ["request"];
      return event.type === "hook.acted" ? [event.changes?.map(({ key }) => key).join()] : [];
    });
  };
  assertEquals(await details({}), [undefined, undefined]);
  assertEquals(await details({ page: playground() }), ["request", "request", "context", "request", "context"]);
});

Deno.test("the committed bundle was made from the sources of the page", async () => {
  assertEquals(
    sources,
    await digestOfSources(),
    "Run `deno task playground`, and commit src/playground/bundle.ts",
  );
});

Deno.test("the page shows the conversation, and the run as an onion", async () => {
  const add = tool({
    name: "add",
    description: "Adds",
    input: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => String(a + b),
  });
  const double: Middleware = {
    name: "double",
    tool: (ctx, next) => next({ input: { ...ctx.input as object, b: 4 } }),
    model: (_ctx, next) => next(),
  };
  const model = scripted(
    { reasoning: "Hm.", text: ["Let me ", "see."], calls: [["add", { a: 1, b: 2 }], ["missing", {}]] },
    "It is 5.",
  );
  const view = viewAfter(
    await happened(agent({ model, tools: [add], use: [double], trace }).run("What is 1 + 2?")),
  );
  assertEquals([view.status, view.questions], ["done", []]);
  assertEquals(lines(view), [
    "you | What is 1 + 2?",
    "thought | Hm.",
    "agent | Let me see.",
    "call | add | ok | 5",
    `call | missing | error | There is no tool "missing". The tools are: add`,
    "agent | It is 5.",
  ]);
  assertEquals(tree(view), [
    "session",
    " prompt",
    "  turn 1",
    "   model scripted: calls",
    "    double at model: passed",
    "   add: ok",
    "    double at tool: changed input: ok",
    "   missing: error",
    "    double at tool: changed input: error",
    "  turn 2",
    "   model scripted: stop",
    "    double at model: passed",
  ]);
});

Deno.test("the page shows what a hook changed: words, lines, or whole texts that have little in common", () => {
  const marked = (before: unknown, after: unknown) =>
    differenceOf(textOfValue(before), textOfValue(after)).map(({ kind, text }) =>
      kind === "same" ? text : kind === "removed" ? `[-${text}-]` : `[+${text}+]`
    ).join("");
  assertEquals(marked("Be kind.", "Be very kind."), "Be [+very +]kind.");
  assertEquals(marked("The card is 4111 1111.", "The card is [redacted]."), "The card is [-4111 1111-][+[redacted]+].");
  assertEquals(marked({ city: "Rome" }, { city: "Oslo" }), '{\n  "city": "[-Rome-][+Oslo+]"\n}');
  assertEquals(marked("Sunny, 24 °C", "Sunny, 75 °F"), "Sunny, [-24 °C-][+75 °F+]");
  assertEquals(marked("one", "Zwölf Boxkämpfer"), "[-one-][+Zwölf Boxkämpfer+]");
  assertEquals(marked(undefined, ["It is noon.", "It rains."]), "[+It is noon.\nIt rains.+]");
  assertEquals([marked("", ""), marked("same", "same"), marked(["a"], [])], ["", "same", "[-a-]"]);
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index} of it\n`);
  const changedLines = lines.with(250, "another\n");
  assertEquals(
    marked(lines.join(""), changedLines.join("")),
    lines.with(250, "[-line 250 of it\n-][+another\n+]").join(""),
  );
  const few = folded(differenceOf("a\nb\nc\nd\ne\nf\ng\nold", "a\nb\nc\nd\ne\nf\ng\nnew")).map(({ text }) => text);
  assertEquals(few, ["⋯ 5 lines\nf\ng\n", "old", "new"]);
  const message = (text: string) => ({ role: "user", parts: [{ type: "text", text }] });
  const answer = {
    role: "tool",
    results: [{ callId: "c1", name: "a", status: "ok", parts: [{ type: "text", text: "5" }] }],
  };
  assertEquals(marked([message("Hi"), answer], [message("Hello"), answer]), "user: [-Hi-][+Hello+]\ntool: c1 ok: 5");
  const result = (text: string) => ({ status: "ok", parts: [{ type: "text", text }], context: ["a", "b"] });
  assertEquals(marked(result("1"), result("2")), "status: ok\ncontext: a\nb\n[-1-][+2+]");
  for (
    const odd of [{ role: "tool", results: [5] }, { role: "user", parts: "cut…" }, [null, "[3 more]"], { parts: [1] }]
  ) {
    assertEquals(typeof textOfValue(odd), "string"); // values of careless hooks, and cut ones
  }
});

Deno.test("the page widens the span of a point to include its hooks", () => {
  const view = viewAfter([
    { type: "session.opened", source: "new" },
    { type: "prompt.accepted", prompt: { role: "user", parts: [{ type: "text", text: "Hi" }] } },
    { type: "hook.acted", middleware: "slow", point: "prompt", did: ["passed"], ms: 25 },
    { type: "session.closed" },
  ]);
  assertEquals(view.spans.map(({ name, from, to }) => [name, from, to]), [
    ["session", 5, 40],
    ["prompt", 5, 40],
    ["slow at prompt", 5, 30],
  ]);
});

Deno.test("the page shows a hook around the hooks that finished before it", () => {
  const hook = { type: "hook.acted", point: "execute", call: "c1", did: ["passed"] } as const;
  const { spans } = viewAfter([
    { type: "tool.started", turn: 1, call: "c1", name: "add", batch: "b", index: 0 },
    { ...hook, middleware: "first", ms: 2 },
    { ...hook, middleware: "second", ms: 5 },
    { ...hook, middleware: "both", ms: 21 },
  ]);
  assertEquals(spans.map(({ name, from }) => [name, from]), [
    ["add", 10],
    ["first at execute", 18],
    ["second at execute", 25],
    ["both at execute", 18],
  ]);
});

Deno.test("the page nests hooks that repeat what is inside them", () => {
  const hook = (middleware: string): Event => (
    { type: "hook.acted", point: "model", turn: 1, did: ["passed"], middleware, ms: 0 }
  );
  const { spans } = viewAfter([
    { type: "model.started", turn: 1, model: "m" },
    ...["timeout", "timeout", "retry", "timeout", "retry", "fallback"].map(hook),
  ]);
  const outline = ({ span, children }: TraceNode): readonly unknown[] => [span?.name, ...children.map(outline)];
  const timeout = ["timeout at model"];
  assertEquals(traceTree(spans).map(outline), [
    ["model m", ["fallback at model", ["retry at model", timeout, timeout], ["retry at model", timeout]]],
  ]);
});

Deno.test("the page groups the calls that run at the same time", () => {
  const started = (call: string): Event => ({ type: "tool.started", turn: 1, call, name: call, batch: "b", index: 0 });
  const finished = (call: string): Event => (
    { type: "tool.finished", turn: 1, call, result: { callId: call, name: call, status: "ok", parts: [] } }
  );
  const { spans } = viewAfter([
    { type: "turn.started", turn: 1 },
    started("a"),
    started("b"),
    finished("a"),
    finished("b"),
    started("c"),
    finished("c"),
  ]);
  const outline = ({ span, children }: TraceNode): readonly unknown[] => [span?.name, ...children.map(outline)];
  assertEquals(traceTree(spans).map(outline), [["turn 1", [undefined, ["a"], ["b"]], ["c"]]]);
});

Deno.test("the page asks the person, and does not count the time of a pause", async () => {
  const model = scripted({ calls: [["order", { what: "tea" }]] }, "It is on its way.");
  const assistant = agent({ model, tools: [order], trace });
  const events = await happened(assistant.run({ prompt: "Tea!", session: "s1" }));
  const paused = viewAfter(events);
  assertEquals([paused.status, paused.questions.map(({ tool, input }) => [tool, input])], [
    "paused",
    [["order", { what: "tea" }]],
  ]);
  assertEquals(lines(paused), ["you | Tea!", "call | order | asks you"]);
  const answers = [{ callId: "call_1", type: "approve" }] as const;
  const rest = await happened(assistant.resume({ session: "s1", answers }));
  const stopped = 1_010 + 10 * (events.length - 1);
  const done = viewAfter(rest, paused, stopped + 60_000);
  assertEquals(lines(done), ["you | Tea!", "call | order | ok | Ordered tea.", "agent | It is on its way."]);
  assertEquals([done.status, done.waited, done.questions], ["done", 60_000, []]);
  assertEquals(tree(done), [
    "session: ‖ paused",
    " prompt",
    "  turn 1",
    "   model scripted: calls",
    "   order",
    "    a person is asked",
    "session: ▶ resumed",
    " turn 1",
    "  order: ok",
    " turn 2",
    "  model scripted: stop",
  ]);
  assert(Math.max(...done.spans.map(({ to = 0 }) => to)) < 1_000);
});

Deno.test("the page shows the run of a subagent", async () => {
  const child = agent({ name: "child", model: scripted("It rains."), trace });
  const model = scripted({ calls: [["child", { prompt: "Weather?" }]] }, "Take an umbrella.");
  const view = viewAfter(await happened(agent({ model, tools: [asTool(child)] }).run("Umbrella?")));
  assertEquals(lines(view), [
    "you | Umbrella?",
    "call | child | ok | It rains.",
    "agent | call_1 | It rains.",
    "agent | Take an umbrella.",
  ]);
  assertEquals(tree(view).slice(0, 10), [
    "session",
    " prompt",
    "  turn 1",
    "   model scripted: calls",
    "   child: ok",
    "    session",
    "     prompt",
    "      turn 1",
    "       model scripted: stop",
    "  turn 2",
  ]);
});

Deno.test("the page shows the calls that the provider of the model runs", async () => {
  const at = { callId: "s1", name: "web_search" } as const;
  const reads = [
    [{ type: "part", part: { type: "provider_call", ...at, input: { query: "sun" } } }],
    [{ type: "part", part: { type: "provider_result", ...at, status: "ok", output: ["u"] } }],
    [{ type: "part", part: { type: "provider_call", ...at, callId: "s2", input: {} } }],
    [{ type: "text", text: "Sunny." }, { type: "finish", reason: "length" }],
  ] as const;
  const double: Middleware = { name: "double", model: (_ctx, next) => next() };
  const run = agent({ model: scripted({ reads }), use: [double], trace }).run("Weather?");
  const view = viewAfter(await happened(run));
  assertEquals(lines(view), [
    "you | Weather?",
    'call | web_search | ok | [\n  "u"\n]',
    "call | web_search | at the provider",
    "agent | Sunny.",
  ]);
  assertEquals(tree(view), [
    "session",
    " prompt",
    "  turn 1",
    "   model scripted: length",
    "    web_search: ok",
    "    web_search",
    "    double at model: passed",
  ]);
});

Deno.test("the page removes the text of a model that started over", () => {
  const view = viewAfter([
    { type: "model.started", turn: 1, model: "m" },
    { type: "text.delta", turn: 1, part: 0, text: "Wrong" },
    { type: "model.reset", turn: 1 },
    { type: "text.delta", turn: 1, part: 0, text: "Right!" },
    { type: "model.finished", turn: 1, finish: "stop", usage: { input: 1, output: 1 }, attempts: 2, text: "Right." },
  ]);
  assertEquals([lines(view), tree(view)], [["agent | Right."], ["model m: stop, 2 attempts"]]);
});

Deno.test("the page adds an event once, and shows how a run ended", () => {
  const usage = { input: 1, output: 1 };
  const delta: Frame = { id: 1, event: { type: "text.delta", turn: 1, part: 0, text: "Hi" } };
  const once = reduce(empty, delta, 1_010);
  assertEquals(reduce(once, delta, 1_020), once);
  const ends: readonly (readonly [Event, string, string])[] = [
    [
      { type: "run.failed", error: "e1", message: "It failed.", code: "internal", usage },
      "failed",
      "note | It failed.",
    ],
    [{ type: "run.aborted", reason: "stop", text: "", usage }, "aborted", "note | Stopped: stop"],
    [{ type: "run.finished", status: "limit", text: "", reason: "turns", usage }, "limit", "note | limit: turns"],
  ];
  for (const [event, status, note] of ends) {
    const view = viewAfter([{ type: "turn.started", turn: 1 }, event]);
    assertEquals([view.status, lines(view), tree(view)], [status, [note], ["turn 1"]]);
  }
});

Deno.test("the page reads frames that are split anywhere", async () => {
  const bytes = new TextEncoder().encode(
    `: silence\n\nid: 1\ndata: {"type":"notice","text":"鉤"}\n\nid: 2\ndata: {"type":"session.closed"}\n\n`,
  );
  for (let cut = 0; cut <= bytes.length; cut++) {
    const frames: Frame[] = [];
    const body = ReadableStream.from([bytes.slice(0, cut), bytes.slice(cut)]);
    await readFrames(new Response(body), (frame) => void frames.push(frame));
    assertEquals(frames, [
      { id: 1, event: { type: "notice", text: "鉤" } },
      { id: 2, event: { type: "session.closed" } },
    ]);
  }
});
