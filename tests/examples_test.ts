import { type DefaultEnv, type Event, serve, type ServeOptions } from "@jizai/jizai";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { points } from "@jizai/jizai/kit";
import { outline } from "@jizai/jizai/testing";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { assistant, type Settings } from "../examples/assistant/assistant.ts";
import { chooseModel, embedded } from "../examples/assistant/model.ts";
import { prompts } from "../examples/assistant/tour.ts";
import * as auditedCommands from "../examples/hooks/audited_commands.ts";
import * as autoApproveRead from "../examples/hooks/auto_approve_read.ts";
import * as callCounter from "../examples/hooks/call_counter.ts";
import * as commandGuard from "../examples/hooks/command_guard.ts";
import * as emptyPrompt from "../examples/hooks/empty_prompt.ts";
import * as headAndTail from "../examples/hooks/head_and_tail.ts";
import * as jsonValidator from "../examples/hooks/json_validator.ts";
import * as keepGoing from "../examples/hooks/keep_going.ts";
import * as resultPrefix from "../examples/hooks/result_prefix.ts";
import * as secretMasking from "../examples/hooks/secret_masking.ts";
import * as timestamp from "../examples/hooks/timestamp.ts";
import * as toolBlocker from "../examples/hooks/tool_blocker.ts";
import * as workspace from "../examples/workspace/main.ts";
import { shop } from "../examples/shop/shop.ts";
import { type App, eventsOf, first, post } from "./support/requests.ts";
import { list } from "./support/source.ts";
import { messagesApi } from "./support/providers/anthropic.ts";
import { chatCompletions, chatStream } from "./support/providers/openai.ts";
import { withoutSchemas } from "./support/without_schemas.ts";

/** The examples of hooks: the behavior that each shows, and its output. */
const hooks: Readonly<Record<string, Example>> = {
  "audited_commands.ts": {
    shows: "the record contains denials",
    run: auditedCommands.run,
    prints: [
      "prompt: Deploy",
      'bash {"command":"curl http://localhost:8000/health"}: allow, ok',
      'bash {"command":"curl https://example.com/install.sh"}: deny, denied',
      "run: done",
    ],
  },
  "auto_approve_read.ts": {
    shows: "reading needs no approval, and writing waits for a person",
    run: autoApproveRead.run,
    prints: ["Run write?", "Copied."],
  },
  "call_counter.ts": {
    shows: "parallel runs have separate counts",
    run: callCounter.run,
    prints: ["Calls: 1", "Calls: 2"],
  },
  "command_guard.ts": {
    shows: "a dangerous command is denied, the other runs",
    run: commandGuard.run,
    prints: ["Ran ls", "Destructive delete operations are not allowed."],
  },
  "empty_prompt.ts": {
    shows: "an empty prompt is cancelled",
    run: emptyPrompt.run,
    prints: ["cancelled: The prompt is empty.", "done: Hello!"],
  },
  "head_and_tail.ts": {
    shows: "only long output of a command is shortened",
    run: headAndTail.run,
    prints: ["first (8186) [... OMITTED 47723 chars ...] (4091) last", "first (60000) last"],
  },
  "json_validator.ts": {
    shows: "the model corrects an answer that is not JSON",
    run: jsonValidator.run,
    prints: ["Where to?", "{ city: Kyoto }", "Invalid JSON. Please fix and try again.", '{ "city": "Kyoto" }'],
  },
  "keep_going.ts": {
    shows: "the agent continues until every task is done",
    run: keepGoing.run,
    prints: [
      "Write it and test it",
      "Left: 1",
      "I am done.",
      "Please continue with the remaining tasks: test it.",
      "Left: 0",
      "Now I am done.",
    ],
  },
  "result_prefix.ts": {
    shows: "results are marked, failures are not",
    run: resultPrefix.run,
    prints: ["[OK] 2", "Cannot divide by 0"],
  },
  "secret_masking.ts": {
    shows: "no secret reaches the model or the person",
    run: secretMasking.run,
    prints: [
      "key: [redacted]\nauthorization: [redacted]\nregion: tokyo",
      "The key is [redacted].",
    ],
  },
  "timestamp.ts": {
    shows: "each request contains the current time only",
    run: timestamp.run,
    prints: [
      "Take a rest [2026-01-02T03:04:05.000Z]",
      "Take a rest (call) (result) [2026-01-02T03:04:05.000Z]",
    ],
  },
  "tool_blocker.ts": {
    shows: "a blocked tool does not run, the other does",
    run: toolBlocker.run,
    prints: ["ok: Read a.txt.", "denied: The tool delete_file is blocked."],
  },
};

interface Example {
  readonly shows: string;
  readonly run: () => Promise<readonly string[]>;
  readonly prints: readonly string[];
}

for (const [file, { shows, run, prints }] of Object.entries(hooks)) {
  Deno.test(`examples/hooks/${file}: ${shows}`, async () => {
    using _ = new FakeTime("2026-01-02T03:04:05Z");
    assertEquals(await run(), prints);
  });
}

Deno.test("every example of a hook is executed", async () => {
  assertEquals(await list("examples/hooks"), Object.keys(hooks));
});

Deno.test("examples/workspace: an agent corrects files and follows the instructions of their folders", async () => {
  assertEquals(await workspace.run(), [
    "Loaded AGENTS.md.",
    "Went to docs.",
    "Changed README.md.",
    "Changed docs/boil.md.",
    "Loaded docs/AGENTS.md.",
    "Changed docs/boil.md.",
    "README.md: # Kettle\n\nIts colour is red.",
    "docs/boil.md: Fill it, and wait for the colour of the light to change.",
    "It is British now, to the last full stop.",
  ]);
});

/** Serves the tour. */
function touring(options: ServeOptions = {}) {
  return serve<DefaultEnv, Settings>(assistant(embedded({ pause: 0 }), { pace: 0 }), {
    vars: (c) => ({ off: c.req.header("x-off")?.split(",") ?? [] }),
    recoveryVars: () => ({ off: [] }),
    onError: () => {},
    ...options,
  });
}

/** Sends a prompt to the tour over HTTP, and reads the stream. `off` are the names of the middleware that are turned off. */
async function asked(prompt = "", off?: string) {
  const app = touring();
  const events = await eventsOf(app.request("/runs", {
    method: "POST",
    headers: { "content-type": "application/json", ...(off && { "x-off": off }) },
    body: JSON.stringify({ prompt }),
  }));
  const end = events.at(-1);
  return {
    app,
    events,
    text: end?.type === "run.finished" ? end.text : "",
    session: first("run.started", events).session,
  };
}

async function read(app: App, path: string, body: unknown) {
  const events = await eventsOf(post(app, path, body));
  const end = events.at(-1);
  return { events, text: end?.type === "run.finished" ? end.text : "", session: first("run.started", events).session };
}

function decisions(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "approval.decided" ? [`${event.decision} by ${event.by}`] : []);
}

Deno.test("the README has at most 250 lines, and its first agent is examples/first_agent", async () => {
  const readme = await Deno.readTextFile("README.md");
  const source = await Deno.readTextFile("examples/first_agent/main.ts");
  assertStringIncludes(readme, source.slice(source.indexOf("import")));
  assertEquals(readme.trimEnd().split("\n").length <= 250, true);
});

Deno.test("the guide to middleware names every point, and every helper that answers at one", async () => {
  const guide = await Deno.readTextFile("examples/guides/your_own_middleware.md");
  const [, table = ""] = guide.match(/## Which point do I want\n([^]*?)\nMore: /) ?? [];
  const answers = await Deno.readTextFile("src/core/hook_answers.ts");
  const helpers = [...answers.matchAll(/^export function (\w+)/gm)].flatMap(([, name]) =>
    name === "result" ? [] : [`${name}()`] // the function that the others call
  );
  assertEquals(helpers.filter((helper) => !table.includes(helper)), []);
  assertEquals(points.filter((point) => !table.includes(`\`${point}\``)), []);
});

Deno.test("the guide to useChat shows it as the page in examples/use_chat does", async () => {
  const page = await Deno.readTextFile("examples/use_chat/page.jsx");
  const [, shown = ""] = (await Deno.readTextFile("examples/guides/use_chat.md")).match(/```jsx ignore\n([^]*?)```/) ??
    [];
  const lines = shown.split("\n").slice(2).map((line) => line.replace(/\/\/.*|;/g, "").trim()).filter(Boolean);
  const names = "const { messages, sendMessage, addToolApprovalResponse } = useChat({"; // the page uses more of them
  const added = "addToolApprovalResponse({ id: part.approval.id, approved: true })"; // the page calls it in a component
  const stop = `fetch("/chat/tab/stream", { method: "DELETE" })`; // the page has a function for it
  assertEquals(lines.filter((line) => !page.includes(line)), [names, added, stop]);
});

Deno.test("the first agent of the README answers two prompts with tools, from a provider", async () => {
  const bodies: string[] = [];
  const call = {
    index: 0,
    id: "call_a",
    type: "function",
    function: { name: "weather", arguments: '{"city":"Oslo"}' },
  };
  using _key = stub(Deno.env, "get", () => "sk-0123456789");
  using listening = stub(Deno, "addSignalListener", () => {});
  using _ = stub(globalThis, "fetch", (_, init) => {
    bodies.push(String(init?.body));
    const answered = String(init?.body).includes("Sunny in Oslo");
    const frames = answered ? [{ content: "It is sunny." }, "stop", 7] : [{ tool_calls: [call] }, "tool_calls", 7];
    return Promise.resolve(new Response(chatStream(...frames)));
  });
  const { default: app } = await import("../examples/first_agent/main.ts");
  for (const prompt of ["Weather in Oslo?", "And again?"]) {
    assertEquals((await read(app, "/runs", { prompt })).text, "It is sunny.");
  }
  assertEquals(bodies.length, 4);
  const [[signal, onSignal] = []] = listening.calls.map(({ args }) => args);
  assertEquals(signal, "SIGINT");
  onSignal?.();
  assertEquals((await app.request("/runs", { method: "POST" })).status, 503);
});

/** The lines of a run of the tour that its prompt is about. */
function calls(events: readonly Event[]): string[] {
  return outline(events).filter((line) => /^(call\.ready|tool\.finished|approval|run\.(paused|finished))/.test(line));
}

const [parallel, refund, card, denied, flaky, budgeted, gift, long] = prompts.map(({ text }) => text);

Deno.test("the tour looks up four items at the same time", async () => {
  const { events, text } = await asked(parallel);
  const lines = calls(events).filter((line) => !line.startsWith("approval"));
  assertEquals(lines.slice(0, 4), [1, 2, 3, 4].map((call) => `call.ready look_up call_${call}`));
  const order = events.flatMap(({ type }) => /^tool\.(started|finished)$/.test(type) ? [type] : []);
  assertEquals(order, [...Array(4).fill("tool.started"), ...Array(4).fill("tool.finished")]);
  assertStringIncludes(text, "- 12 lanterns, 40 euros each\n- 7 kettles, 55 euros each");
});

Deno.test("the tour asks a person about a refund, and pays the edited amount", async () => {
  const { app, session, events } = await asked(refund);
  assertEquals(withoutSchemas(first("run.paused", events).questions), [{
    callId: "call_1",
    tool: "refund",
    input: { order: "1042", amount: 80 },
    questions: ["Pay this money back?"],
  }]);
  const answers = [{ callId: "call_1", type: "approve", input: { order: "1042", amount: 20 } }];
  const { text } = await read(app, `/sessions/${session}/answers`, { answers });
  assertEquals(text, "Refunded 20 euros to Ada.");
  assertEquals((await asked(refund, "permissions")).text, "Refunded 80 euros to Ada.");
});

Deno.test("the tour masks a card number in the stream, in the result and in the session", async () => {
  const { app, session, events, text } = await asked(card);
  assertEquals(text, "Ada paid 80 euros with the card [redacted]");
  const stored = await (await app.request(`/sessions/${session}`)).text();
  assertEquals(`${JSON.stringify(events)}${stored}`.includes("4111"), false);
  assertEquals((await asked(card, "redact")).text, "Ada paid 80 euros with the card 4111 1111 1111 1111");
});

Deno.test("the tour denies a call by a rule, unless the rules are off", async () => {
  const { events, text } = await asked(denied);
  assertEquals(decisions(events), ["deny by policy"]);
  assertStringIncludes(text, "Customers are never deleted here.");
  assertEquals((await asked(denied, "permissions")).text, "Deleted Ada and all orders.");
});

Deno.test("the tour tries a flaky tool again, unless retry is off", async () => {
  assertEquals((await asked(flaky)).text, "A parcel to Oslo costs 9 euros.");
  assertEquals((await asked(flaky, "retry")).text, "That did not work: shipping_cost failed.");
});

Deno.test("the tour ends a run when its budget is spent, unless the budget is off", async () => {
  const { events, text } = await asked(budgeted);
  const end = first("run.finished", events);
  assertEquals([end.status, text], ["limit", "I have to stop here: 14 calls ran, and then the budget was spent."]);
  const whole = await asked(budgeted, "budget");
  assertEquals(first("run.finished", whole.events).status, "done");
  assertStringIncludes(whole.text, "I have compared all 21 pairs.");
});

Deno.test("the tour shows the calls of a subagent", async () => {
  const { events, text } = await asked(gift);
  const inner = events.flatMap((event) => event.type === "subagent.event" ? [event.event] : []);
  assertEquals(calls(inner).filter((line) => line.startsWith("call.ready")), [
    "call.ready look_up call_1",
    "call.ready look_up call_2",
    "call.ready look_up call_3",
  ]);
  assertEquals(text, "For someone who loves tea, I propose a bowl with a tea: 34 euros together.");
});

Deno.test("the long run of the tour survives the process that began it", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const process = (signal?: AbortSignal) =>
    touring({ store: sqliteStore(database), singleProcess: true, ...(signal && { signal }) });
  const closing = new AbortController();
  const before = process(closing.signal);
  const response = await post(before, "/runs", { prompt: long });
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes(`"shelf":5`)) closing.abort();
  }
  await before.settled();
  const [, run = ""] = text.match(/"run":"([^"]+)"/) ?? [];
  const after = process();
  const { runs, over } = await after.recover();
  await over;
  assertEquals(runs.length, 1);
  const events = await eventsOf(after.request(`/runs/${run}?after=0`));
  const counted = events.flatMap((event) => event.type === "tool.finished" ? [event.call] : []);
  assertEquals(counted, Array.from({ length: 12 }, (_, index) => `call_${index + 1}`));
});

Deno.test("the assistant answers a question about the framework from the guides", async () => {
  const sources = async (prompt: string) => (await asked(prompt)).text.match(/^\*\*\[.+\]\(docs\/(.+)\)\*\*$/m)?.[1];
  assertEquals(await sources("How do I write a middleware?"), "examples/guides/your_own_middleware.md");
  assertEquals(await sources("How do I ask a person before a tool runs?"), "examples/guides/ask_a_person.md");
  assertEquals(await sources("How do I use Postgres?"), "examples/guides/databases.md#postgres");
  assertStringIncludes((await asked("Xyzzy plugh?")).text, "I found nothing about that in the guides.");
});

Deno.test("the assistant streams its answer word by word, and reports its tokens", async () => {
  const { events } = await asked("Hi!");
  const words = events.flatMap((event) => event.type === "text.delta" ? [event.text] : []);
  assertEquals(words.slice(0, 4), ["I", " am", " the", " assistant"]);
  const { usage } = first("run.finished", events);
  assert(usage.input > 0 && usage.output > 50);
});

Deno.test("the assistant uses a provider if its key or its address is set", async () => {
  const apis = [chatCompletions, messagesApi];
  const answers = new Map(apis.map(({ path, textStream }) => [path, textStream("Hello from ", path)]));
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, ({ url }) => {
    return new Response(answers.get(new URL(url).pathname));
  });
  const address = `http://127.0.0.1:${server.addr.port}`;
  const chosen = [
    chooseModel(new Map([["OPENAI_BASE_URL", address], ["OPENAI_MODEL", "llama"], ["ANTHROPIC_API_KEY", "sk-ant"]])),
    chooseModel(new Map([["ANTHROPIC_API_KEY", "sk-ant"], ["ANTHROPIC_BASE_URL", address], ["OPENAI_API_KEY", ""]])),
    chooseModel(new Map([["OPENAI_API_KEY", "sk"]])),
    chooseModel(new Map()),
  ];
  assertEquals(chosen.map(({ id }) => id), ["llama", "claude-sonnet-5-5", "gpt-6.1-terra", "embedded"]);
  for (const [index, { path }] of apis.entries()) {
    const { text } = await read(serve(assistant(chosen[index]!), { vars: () => ({ off: [] }) }), "/runs", {
      prompt: "Hi",
    });
    assertEquals(text, `Hello from ${path}`);
  }
});

Deno.test("the shop runs several calls in parallel, and asks about an order", async () => {
  const app = serve(shop({ pace: 0 }), { vars: () => ({ user: "Ada" }) });
  const prompt = "Count the lanterns and the kettles, deliver 2 hooks, and order a kettle";
  const paused = await read(app, "/runs", { prompt });
  assertEquals(outline(paused.events).filter((line) => /^(call\.ready|tool|approval|run)/.test(line)), [
    "run.started",
    "call.ready count call_1",
    "call.ready count call_2",
    "call.ready deliver call_3",
    "call.ready order call_4",
    "tool.started count call_1",
    "approval.decided call_1 allow policy",
    "tool.started count call_2",
    "approval.decided call_2 allow policy",
    "tool.started deliver call_3",
    "approval.decided call_3 allow policy",
    "tool.started order call_4",
    "approval.asked call_4 Run order?",
    ...[1, 2, 3].flatMap((shelf) => [1, 2, 3].map((call) => `tool.progress call_${call} {"shelf":${shelf}}`)),
    "tool.finished call_1 ok There are 12 lanterns.",
    "tool.finished call_2 ok There are 7 kettles.",
    "tool.finished call_3 ok Delivered 2 hooks to Ada.",
    "run.paused Run order?",
  ]);
  const answers = [{ callId: "call_4", type: "deny", reason: "There are enough." }];
  const { text } = await read(app, `/sessions/${paused.session}/answers`, { answers });
  assertEquals(
    text,
    "There are 12 lanterns. There are 7 kettles. Delivered 2 hooks to Ada. A person said no: There are enough.",
  );
});

Deno.test("the shop describes itself, continues a session, and can be stopped", async () => {
  const app = serve(shop({ pace: 0 }), { vars: () => ({ user: "Ada" }) });
  const { session, text } = await read(app, "/runs", { prompt: "Hello" });
  assertStringIncludes(text, "This shop has lanterns, kettles and hooks.");
  assertEquals(
    (await read(app, "/runs", { session, prompt: "How many hooks are there?" })).text,
    "There are 31 hooks.",
  );

  const handle = shop({ pace: 2 ** 30 }).run({ prompt: "Count the hooks", vars: { user: "Ada" } });
  for await (const { type } of handle.events) if (type === "tool.progress") handle.stop();
  assertEquals((await handle.result).status, "aborted");
});
