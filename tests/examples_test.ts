import { type Event, serve, textOf } from "@jizai/jizai";
import { points } from "@jizai/jizai/kit";
import { outline } from "@jizai/jizai/testing";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { assistant } from "../examples/assistant/assistant.ts";
import { evaluate } from "../examples/assistant/calculator.ts";
import { chooseModel, embedded } from "../examples/assistant/model.ts";
import { library } from "../examples/assistant/search.ts";
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

/** Sends a prompt to the assistant over HTTP, and reads the stream. */
async function asked(prompt: string) {
  const app = serve(assistant(embedded({ pause: 0 })));
  return { app, ...await read(app, "/runs", { prompt }) };
}

async function read(app: App, path: string, body: unknown) {
  const events = await eventsOf(post(app, path, body));
  const end = events.at(-1);
  return { events, text: end?.type === "run.finished" ? end.text : "", session: first("run.started", events).session };
}

/** Returns the outline of the events, without their texts. */
function brief(events: readonly Event[]): string[] {
  return outline(events).map((line) => line.replace(/ [{*].*/, "").split(" ").slice(0, 3).join(" "));
}

function decisions(events: readonly Event[]): string[] {
  return events.flatMap((event) => event.type === "approval.decided" ? [`${event.decision} by ${event.by}`] : []);
}

const longSum = "(1 + 2) * (3 + 4) / 5 - 6";

Deno.test("the README has at most 250 lines, and its first agent is examples/first_agent", async () => {
  const readme = await Deno.readTextFile("README.md");
  const source = await Deno.readTextFile("examples/first_agent/main.ts");
  assertStringIncludes(readme, source.slice(source.indexOf("import")));
  assertEquals(readme.trimEnd().split("\n").length <= 250, true);
});

Deno.test("the guide to middleware names every point, and every helper that answers at one", async () => {
  const guide = await Deno.readTextFile("examples/guides/your_own_middleware.md");
  const [, table = ""] = guide.match(/## Which point do I want\n([^]*?)\nMore: /) ?? [];
  const answers = await Deno.readTextFile("src/core/results.ts");
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
  const added = "addToolApprovalResponse({ id: part.approval.id, approved: true })"; // the page calls it in a component
  const stop = `fetch("/chat/tab/stream", { method: "DELETE" })`; // the page has a function for it
  assertEquals(lines.filter((line) => !page.includes(line)), [added, stop]);
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

Deno.test("the assistant searches twice in parallel, reads twice in parallel, and quotes", async () => {
  const { events, text } = await asked("Which point do I want for a timeout?");
  assertEquals(brief(events), [
    "run.started",
    "session.opened new",
    "prompt.accepted Which point",
    "turn.started 1",
    "model.started embedded",
    "call.delta call_1",
    "call.ready search_docs call_1",
    "call.delta call_2",
    "call.ready search_docs call_2",
    "model.finished calls",
    "tool.started search_docs call_1",
    "approval.decided call_1 allow",
    "tool.started search_docs call_2",
    "approval.decided call_2 allow",
    "tool.finished call_1 ok",
    "tool.finished call_2 ok",
    "turn.finished 1",
    "turn.started 2",
    "model.started embedded",
    "call.delta call_3",
    "call.ready read_doc call_3",
    "call.delta call_4",
    "call.ready read_doc call_4",
    "model.finished calls",
    "tool.started read_doc call_3",
    "approval.decided call_3 allow",
    "tool.started read_doc call_4",
    "approval.decided call_4 allow",
    "tool.finished call_3 ok",
    "tool.finished call_4 ok",
    "turn.finished 2",
    "turn.started 3",
    "model.started embedded",
    "text.delta",
    "model.finished stop",
    "turn.finished 3",
    "session.closed",
    "run.finished done",
  ]);
  const sources = text.matchAll(/^\*\*.+\*\* \((.+)\)$/gm).map(([, source]) => source).toArray();
  assertEquals(sources, [
    "examples/guides/your_own_middleware.md#which-point-do-i-want",
    "middleware/reliability/timeout.ts#timeout",
  ]);
  assertStringIncludes(text, "> | timing, timeout, cache, lock, and a retry if `next()` rejects | `execute` |");
});

Deno.test("the assistant streams its answer word by word", async () => {
  const { events } = await asked("Hello!");
  const words = events.flatMap((event) => event.type === "text.delta" ? [event.text] : []);
  assertEquals(words.slice(0, 4), ["I", " answer", " questions", " about"]);
});

Deno.test("the assistant reports when it finds nothing", async () => {
  const { events, text } = await asked("Do llamas like bananas?");
  assertEquals(events.flatMap((event) => event.type === "tool.finished" ? [textOf(event.result)] : []), ["[]", "[]"]);
  assertStringIncludes(text, "I found nothing about that");
});

Deno.test("the assistant calculates if its policy allows it", async () => {
  const { events, text } = await asked("What is 12 * (3 + 4)?");
  assertEquals([decisions(events), text], [["allow by policy"], "12 * (3 + 4) = 84"]);
});

Deno.test("the assistant pauses before a long calculation, and continues when it is approved", async () => {
  const { app, session, events } = await asked(`What is ${longSum}?`);
  assertEquals(brief(events), [
    "run.started",
    "session.opened new",
    "prompt.accepted What is",
    "turn.started 1",
    "model.started embedded",
    "call.delta call_1",
    "call.ready calculate call_1",
    "model.finished calls",
    "tool.started calculate call_1",
    "approval.asked call_1 Calculate",
    "session.closed",
    "run.paused Calculate something",
  ]);
  assertEquals(withoutSchemas(first("run.paused", events).questions), [{
    callId: "call_1",
    tool: "calculate",
    input: { expression: longSum },
    questions: ["Calculate something this long?"],
  }]);

  const rest = await read(app, `/sessions/${session}/answers`, { answers: [{ callId: "call_1", type: "approve" }] });
  assertEquals(brief(rest.events), [
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "tool.started calculate call_1",
    "approval.decided call_1 allow",
    "tool.finished call_1 ok",
    "turn.finished 1",
    "turn.started 2",
    "model.started embedded",
    "text.delta (1 +",
    "model.finished stop",
    "turn.finished 2",
    "session.closed",
    "run.finished done (1",
  ]);
  assertEquals([decisions(rest.events), rest.text], [["allow by person"], `${longSum} = -1.8`]);
});

Deno.test("the assistant does not calculate if a person denies it", async () => {
  const { app, session } = await asked(`What is ${longSum}?`);
  const answers = [{ callId: "call_1", type: "deny", reason: "Use your head." }];
  const { events, text } = await read(app, `/sessions/${session}/answers`, { answers });
  assertEquals([decisions(events), text], [
    ["deny by person"],
    `I did not calculate ${longSum}: A person said no: Use your head.`,
  ]);
});

Deno.test("the assistant searches while a calculation waits for a person", async () => {
  const { app, session, events } = await asked(`What is a timeout, and what is ${longSum}?`);
  assertEquals(brief(events).filter((line) => line.startsWith("tool.finished")), [
    "tool.finished call_2 ok",
    "tool.finished call_3 ok",
  ]);
  const { text } = await read(app, `/sessions/${session}/answers`, {
    answers: [{ callId: "call_1", type: "approve" }],
  });
  assertStringIncludes(text, `${longSum} = -1.8\n\n**`);
});

Deno.test("the assistant continues a session", async () => {
  const { app, session } = await asked("What is 1 + 1?");
  const { text } = await read(app, "/runs", { session, prompt: "And 2 + 2?" });
  assertEquals(text, "2 + 2 = 4");
});

Deno.test("the assistant reports the error in a calculation", async () => {
  assertEquals((await asked("What is 1 / 0?")).text, "Cannot calculate 1 / 0: division by zero");
  assertEquals((await asked("(2 + 3")).text, 'Cannot read (2 + 3: expected ")" for the "(" at 1, found the end');
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
    const { text } = await read(serve(assistant(chosen[index]!)), "/runs", { prompt: "Hi" });
    assertEquals(text, `Hello from ${path}`);
  }
});

Deno.test("the assistant's calculator follows operator precedence", () => {
  const values = {
    "1 + 2 * 3": 7,
    "(1 + 2) * 3": 9,
    "8 - 3 - 2": 3,
    "2 ^ 3 ^ 2": 512,
    "-2 ^ 2": -4,
    "2 ^ -1": 0.5,
    "--2": 2,
    "7 % 4 * 2": 6,
    "0.1 + 0.2": 0.3,
    "((((1))))": 1,
  };
  assertEquals(Object.fromEntries(Object.keys(values).map((text) => [text, evaluate(text)])), values);
});

Deno.test("the assistant's calculator reports the position of an error", () => {
  const messages = {
    "": 'Cannot read : expected a number or "(", found the end',
    "2 +": 'Cannot read 2 +: expected a number or "(", found the end',
    "2 * * 3": 'Cannot read 2 * * 3: expected a number or "(", found "*" at 5',
    "1 2": 'Cannot read 1 2: expected an operator, found "2" at 3',
    "alert(1)": 'Cannot read alert(1): expected a number or "(", found "a" at 1',
    "5 % 0": "Cannot calculate 5 % 0: division by zero",
    "9 ^ 999": "Cannot calculate 9 ^ 999: the result is too large",
  };
  for (const [text, message] of Object.entries(messages)) assertThrows(() => evaluate(text), Error, message);
});

Deno.test("the assistant's search finds other forms of a word, and prefers titles", () => {
  const { search } = library([
    { id: "a", place: "guide", title: "Caches", text: "How results are kept." },
    { id: "b", place: "code", title: "retry", text: "Retrying what a cache has not kept, with backoff." },
    { id: "c", place: "code", title: "timeout", text: "Stops what takes too long." },
  ]);
  const found = (query: string, place?: "guide" | "code") => search(query, { place }).map(({ passage }) => passage.id);
  assertEquals(found("what is kept in caching"), ["a", "b"]);
  assertEquals(found("caching", "code"), ["b"]);
  assertEquals(found("retries"), ["b"]);
  assertEquals(found("timeouts for llamas and bananas"), []);
  assertEquals(found("what is it?"), []);
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
