import { assertEquals } from "@std/assert";
import {
  agent,
  allow,
  continueWith,
  type Event,
  mapText,
  type Message,
  type Middleware,
  type RunResult,
  state,
  text,
  textOf,
} from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { export_hooks, type ExportOptions } from "@jizai/jizai/middleware/export_hooks";
import { human } from "@jizai/jizai/middleware/human";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { scripted } from "@jizai/jizai/model/scripted";
import { call, drop, weather } from "../../support/batch.ts";
import { warnings } from "../../support/rpc.ts";
import { lines } from "../../support/transcript_lines.ts";

/** Middleware, exported to PicoClaw and run by `rpc_hooks()`. */
function throughRpc(make: () => readonly Middleware[], options: ExportOptions = {}): Middleware {
  const { rpc } = export_hooks(make(), options);
  const intercept = ["before_llm", "before_tool", "approve_tool"];
  return rpc_hooks({ processes: { exported: { enabled: true, transport: "http", url: "https://x", intercept } } }, {
    async fetch(_, { body }) {
      const answer = await rpc(JSON.parse(String(body)));
      return answer ? Response.json(answer) : new Response();
    },
  });
}

/** Middleware, exported to Claude and run by `claude_hooks()`. */
function throughClaude(make: () => readonly Middleware[], options: ExportOptions = {}): Middleware {
  const command: HookCallback = (input) => export_hooks(make(), options).command(input); // another process for each event
  const events = [
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SessionStart",
    "Stop",
  ];
  return claude_hooks(Object.fromEntries(events.map((event) => [event, [{ hooks: [command] }]])), {
    dialect: "claude",
  });
}

const calls = [call("a"), call("b"), call("c", { name: "drop" }), call("d", { name: "drop" })];

/** Returns the outcome of a run, without the prefix that the other systems add to each denial. */
async function runThrough(use: readonly Middleware[], prompt = "Hi") {
  const model = scripted({ text: "Let me see, hunter2.", calls }, "Done, hunter2.", "Done again.");
  const tools = [
    weather(({ city }) => {
      if (city === "b") throw new Error("no b");
      return `sun in ${city}, hunter2 ${"x".repeat(50)}`;
    }),
    drop(),
  ];
  const run = agent({ model, tools, use }).run(prompt);
  const events: Event[] = await Array.fromAsync(run.events);
  const result: RunResult = await run.result;
  const reported = (messages: readonly Message[]) =>
    lines(messages).map((line) => line.replace(/Tool execution denied by (approval )?hook: /, ""));
  return {
    transcript: reported(result.messages),
    status: result.status,
    asked: result.questions.map(({ questions }) => questions.length > 0),
    requests: model.requests.map(({ messages, instructions }) => [instructions, ...reported(messages)]),
    warned: warnings(events),
  };
}

type Outcome = Partial<Awaited<ReturnType<typeof runThrough>>>;

/** Tests that middleware behaves the same through another system, except for the given differences. */
function same(
  name: string,
  make: () => readonly Middleware[],
  { claude = {}, rpc = {} }: { readonly claude?: Outcome | false; readonly rpc?: Outcome | false } = {},
) {
  if (rpc) {
    Deno.test(`Export: ${name} is the same through PicoClaw`, async () => {
      assertEquals(await runThrough([throughRpc(make)]), { ...await runThrough(make()), ...rpc });
    });
  }
  if (claude) {
    Deno.test(`Export: ${name} is the same through Claude`, async () => {
      assertEquals(await runThrough([throughClaude(make)]), { ...await runThrough(make()), ...claude });
    });
  }
}

const denies = () => permissions({ deny: [{ tool: "drop", why: "Nothing is dropped." }] });

same("permissions that deny", () => [denies()]);
same("permissions that deny by input", () => [
  denies(),
  permissions({ deny: [{ tool: "*", when: (input) => JSON.stringify(input).includes('"a"') }] }),
]);
same("redact", () => [redact({ secrets: ["hunter2"], patterns: [] }), denies()], { claude: false });
same("redact, if only results contain a secret", () => [
  {
    name: "results",
    tool: async (_, next) => mapText(await next(), (text) => text.replaceAll("hunter2", "[redacted]")),
  },
  denies(),
]);
same("truncate", () => [truncate({ limit: 40, head: 20, tail: 10 }), denies()]);
same(
  "a person who denies",
  () => [human(() => ({ allow: false, reason: "Not today." })), permissions({ ask: ["*"] })],
);
same("a person who approves", () => [human(() => true), permissions({ ask: ["weather"], deny: ["drop"] })]);
same("a guard that fails", () => [{ name: "broken", approval: () => Promise.reject(new Error("secret")) }], {
  rpc: { warned: [] },
  claude: { warned: [] },
});
same("a hook that rewrites inputs", () => [
  denies(),
  { name: "oslo", tool: (ctx, next) => ctx.name === "weather" ? next({ input: { city: "oslo" } }) : next() },
]);
same("a hook that answers in place of the tool", () => [
  denies(),
  { name: "cache", tool: async (ctx, next) => ctx.name === "weather" ? text("cached") : await next() },
], { claude: false });
same("a hook that adds context", () => [
  denies(),
  {
    name: "beside",
    tool: async (ctx, next) => {
      const result = await next();
      return ctx.name === "weather" ? { ...result, context: ["mind the rain"] } : result;
    },
  },
], { rpc: false });
same("a hook that changes requests and responses", () => [
  denies(),
  {
    name: "loud",
    async model(ctx, next) {
      const response = await next({ request: { instructions: `${ctx.request.instructions} Be loud.`.trim() } });
      return mapText(response, (text) => text.toUpperCase());
    },
  },
], { claude: false });
same("a check of the answer", () => [
  denies(),
  {
    name: "check",
    stop: async (ctx, next) => textOf(ctx.message).includes("again") ? await next() : continueWith("Once more."),
  },
], { rpc: false });
same("context of a session and a prompt", () => [
  denies(),
  {
    name: "told",
    session: (_, next) => next({ context: ["It is Monday."] }),
    prompt: (ctx, next) => next({ context: [...ctx.context, `You said ${textOf(ctx.prompt)}.`] }),
  },
], { rpc: false });

Deno.test("Export: a decision without an equivalent is a refusal with an explanation", async () => {
  const edits: Middleware = {
    name: "edits",
    approval: (ctx) =>
      Promise.resolve(ctx.name === "weather" ? allow({ input: { city: "oslo" } }) : { type: "deny", reason: "no" }),
  };
  const rpc = await runThrough([throughRpc(() => [edits])]);
  assertEquals(rpc.transcript.slice(3, 5), Array(2).fill('denied It is only allowed with {"city":"oslo"}'));
  const claude = await runThrough([throughClaude(() => [edits])]);
  assertEquals(claude.transcript.slice(3, 5).map((line) => line.slice(0, 14)), ["ok sun in oslo", "ok sun in oslo"]);
  const asks = () => [permissions({ ask: [{ tool: "*", why: "May it?" }] })];
  assertEquals((await runThrough([throughRpc(asks)])).transcript.slice(3), [
    ...Array(4).fill("denied May it?"),
    "assistant Done, hunter2.",
  ]);
  assertEquals((await runThrough([throughClaude(asks)])).status, "paused");
  const renames: Middleware = { name: "renames", tool: (_, next) => next({ name: "weather" }) };
  const renamed = await runThrough([throughClaude(() => [renames])]);
  assertEquals(renamed.transcript[5], "denied It is only allowed as weather");
  const rewrites: Middleware = {
    name: "rewrites",
    prompt: (_, next) => next({ prompt: { role: "user", parts: [{ type: "text", text: "Ho" }] } }),
  };
  const rewritten = await runThrough([throughClaude(() => [rewrites])]);
  assertEquals([rewritten.status, rewritten.transcript], ["cancelled", []]);
  const cache: Middleware = { name: "cache", tool: () => Promise.resolve(text("cached")) };
  assertEquals((await runThrough([throughClaude(() => [cache])])).transcript.slice(3, 5), [
    "denied cached",
    "denied cached",
  ]);
  const beside: Middleware = {
    name: "beside",
    tool: async (_, next) => ({ ...await next(), context: ["mind the rain"] }),
  };
  assertEquals(
    (await runThrough([throughRpc(() => [beside, denies()])])).transcript[4],
    "error weather failed.\n\nmind the rain",
  );
});

Deno.test("Export: ends and pauses of the run pass through the other system", async () => {
  const at = (name: string, how: "end" | "fail" | "undo" | "pause"): Middleware => ({
    name,
    tool({ run }) {
      if (how === "pause") throw run.pause("Sure?");
      throw run.end("enough", { as: how === "fail" ? "failed" : "done", rollback: how === "undo" });
    },
  });
  assertEquals((await runThrough([throughRpc(() => [at("x", "fail")])])).status, "failed");
  const undone = await runThrough([throughRpc(() => [at("x", "undo")])]);
  assertEquals([undone.status, undone.transcript], ["cancelled", []]);
  assertEquals((await runThrough([throughRpc(() => [at("x", "pause")])])).transcript.slice(3, 4), ["denied Sure?"]);
  assertEquals((await runThrough([throughClaude(() => [at("x", "end")])])).status, "done");
  const paused = await runThrough([throughClaude(() => [at("x", "pause")])]);
  assertEquals([paused.status, paused.asked], ["paused", [true]]);
});

Deno.test("Export: state of runs and sessions is kept through PicoClaw", async () => {
  const inRun = state("run", () => 0);
  const inSession = state("session", () => 0, { lifetime: "session" });
  const seen: string[] = [];
  const counter: Middleware = {
    name: "counter",
    tool(ctx, next) {
      seen.push(`${inRun.update(ctx, (n) => n + 1)} ${inSession.update(ctx, (n) => n + 1)}`);
      return next();
    },
  };
  const hooks = throughRpc(() => [counter]);
  const assistant = agent({
    model: scripted({ calls: [call("a"), call("b")] }, "1", { calls: [call("a")] }, "2"),
    tools: [weather()],
    use: [hooks],
  });
  await assistant.run({ prompt: "Hi", session: "s" }).result;
  await assistant.run({ prompt: "Ho", session: "s" }).result;
  assertEquals(seen, ["1 1", "2 2", "1 3"]);
});
