import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  addUsage,
  agent,
  type Event,
  mapText,
  memory,
  type Message,
  type Middleware,
  type Model,
  ModelError,
  type ModelRequest,
  textOf,
  tryAgain,
  user,
} from "@jizai/jizai";
import { budget } from "@jizai/jizai/middleware/budget";
import { compact, compaction, type SummaryOptions } from "@jizai/jizai/middleware/compaction";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { retry } from "@jizai/jizai/middleware/retry";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { estimateTokens } from "../../src/core/lib/text.ts";
import { repairTranscript } from "../../src/core/transcript.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { history, look, short, someTranscript } from "../support/long.ts";

const heading = "compaction This is a summary of what came before, in its place:\n\n";

/** Returns the lines of a compaction. */
const compactions = (events: readonly Event[]) =>
  eventLines(events).filter((line) => line.startsWith("compact.finished")).map((line) =>
    line.slice("compact.finished ".length)
  );

/** Runs a conversation of five messages into a compaction by the model of the run. */
async function play(steps: readonly ScriptedAnswer[], use: readonly Middleware[] = [compaction({ at: 400, keep: 0 })]) {
  const model = scripted(...steps);
  const errors: unknown[] = [];
  const run = agent({ model, use }).run({
    messages: [...history, user("Now")],
    onError: (error) => errors.push(error),
  });
  const events = await eventsOfRun(run);
  return { ...await run.result, model, errors, events, compactions: compactions(events) };
}

Deno.test("compaction() replaces the middle of the transcript with a summary by the model of the run", async () => {
  const summary = { text: ["They said ", "this and that.\n"], usage: { input: 300, output: 20 } };
  const { model: { requests }, messages, usage, events } = await play([summary, "Done."]);
  assertEquals(short(messages), ["user First", `${heading}They said this and that.`, "user Now", "assistant Done."]);
  assertEquals(usage, { input: 301, output: 21 });
  const [first] = requests;
  assertEquals(requests.length, 2);
  assertEquals([first?.tools, first?.options], [[], {}]);
  assertEquals(
    first?.messages.map((message) => message.role === "user" && textOf(message).replaceAll(/ x+/g, "")),
    ["<conversation>\n[assistant] One\n\n[person] Second\n\n[assistant] Two\n</conversation>"],
  );
  assert(first?.instructions.startsWith("Summarize the conversation"));
  assertEquals(eventLines(events).slice(0, 9), [
    "run.started run session false",
    "session.opened new",
    "prompt.accepted",
    "turn.started 1",
    "compact.started auto",
    "compact.finished auto compacted 441 143",
    "model.started 1 scripted",
    "text.delta 1 0 Done.",
    "model.finished 1 stop 1",
  ]);
});

Deno.test("compaction() sends calls, results and files to the summarizer, and no reasoning", async () => {
  const messages: Message[] = [
    user("Look"),
    user("It is noon.", "prompt"),
    {
      role: "assistant",
      parts: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "I look." },
        { type: "call", id: "a", name: "look", input: { at: "a" } },
        { type: "call", id: "b", name: "paint", input: {} },
      ],
    },
    {
      role: "tool",
      results: [
        { callId: "a", name: "look", status: "error", parts: [{ type: "text", text: "It is dark." }] },
        { callId: "b", name: "paint", status: "ok", parts: [{ type: "media", mediaType: "image/png", data: "AAAA" }] },
      ],
    },
    user("Go on.", "stop"),
    user("Now"),
  ];
  const model = scripted("Summary.", "Done.");
  await agent({ model, use: [compaction({ at: 30, keep: 0 })] }).run({ messages }).result;
  const [reported] = model.requests[0]?.messages ?? [];
  assertEquals(reported?.role === "user" && textOf(reported).split("\n\n"), [
    "<conversation>\n[assistant] I look.",
    '[assistant calls look] {"at":"a"}',
    "[assistant calls paint] {}",
    "[look: error] It is dark.",
    "[paint: ok] (a file of type image/png)",
    "[stop] Go on.\n</conversation>",
  ]);
});

Deno.test("compaction() keeps the last tokens, and calls with their results", async () => {
  const kept = async (keep: number) => {
    const call = (at: string) => ({ calls: [["look", { at }]] }) as const;
    const model = scripted(...["a", "b", "c", "d", "e", "f", "g"].map(call), "Done.");
    const use = [compaction({ at: 400, keep, summarize: () => Promise.resolve("Seen.") })];
    const run = agent({ model, tools: [look], use }).run("Look");
    await run.result;
    return model.requests.slice(6).map(({ messages }) => short(messages).length);
  };
  assertEquals(await kept(0), [4, 6]); // the prompt, the summary, and a call with its result; and then one more message
  assertEquals(await kept(120), [4, 6]);
  assertEquals(await kept(160), [6, 8]);
});

Deno.test("compaction() summarizes with a model or a function", async () => {
  const other = scripted("By another.");
  const model = await play(["Done."], [compaction({ at: 400, keep: 0, summarize: other })]);
  assertEquals(short(model.messages)[1], `${heading}By another.`);
  assertEquals([other.requests.length, other.requests[0]?.model, model.model.requests.length], [1, other, 1]);

  const asked: unknown[] = [];
  const summarize = (messages: readonly Message[], { instructions, signal }: SummaryOptions) => {
    asked.push([short(messages), instructions, signal.aborted]);
    return Promise.resolve("By hand.");
  };
  const mind: Middleware = { compact: (_, next) => next({ instructions: "Mind the names." }) };
  const byHand = await play(["Done."], [mind, compaction({ at: 400, keep: 0, summarize })]);
  assertEquals(short(byHand.messages)[1], `${heading}By hand.`);
  assertEquals(asked, [[["assistant One", "user Second", "assistant Two"], "Mind the names.", false]]);
});

Deno.test("compaction() sends the instructions of hooks and of agent.compact() to the summarizer", async () => {
  const store = memory();
  await store.save({ id: "s", version: 0, messages: history });
  const mind: Middleware = {
    compact: ({ instructions }, next) => next({ instructions: `${instructions} And the dates.` }),
  };
  const model = scripted("Summary.");
  const assistant = agent({ model, use: [mind, compaction({ keep: 0 })] });
  const { messages } = await compact(assistant, { session: "s", store, instructions: "The names." }).result;
  assert(model.requests[0]?.instructions.endsWith("\n\nMind this too: The names. And the dates."));
  assertEquals(short(messages), ["user First", `${heading}Summary.`, "user Second", "assistant Two"]);
});

Deno.test("compaction() includes an earlier summary in the next one", async () => {
  const seen: string[][] = [];
  let count = 0;
  const summarize = (messages: readonly Message[]) => {
    seen.push(short(messages));
    return Promise.resolve(`Summary ${++count}.`);
  };
  const answers = Array.from({ length: 6 }, (_, index) => `Answer ${index + 1} ${"x".repeat(400)}`);
  const assistant = agent({ model: scripted(...answers), use: [compaction({ at: 250, keep: 0, summarize })] });
  const prompts = ["A", "B", "C", "D", "E", "F"];
  let messages: readonly Message[] = [];
  for (const prompt of prompts) ({ messages } = await assistant.run({ session: "s", prompt }).result);
  assertEquals(seen, [
    ["assistant Answer 1", "user B", "assistant Answer 2", "user C", "assistant Answer 3"],
    [`${heading}Summary 1.`, "user D", "assistant Answer 4", "user E", "assistant Answer 5"],
  ]);
  assertEquals(short(messages), [
    "user A",
    `${heading}Summary 2.`,
    "user F",
    "assistant Answer 6",
  ]);
});

Deno.test("compaction() summarizes a long transcript in parts that fit", async () => {
  for (const size of [400, 4_000, 40_000]) {
    const text = "Words, 言葉 и слова. ".repeat(size / 20);
    const messages = [
      user("First"),
      ...Array.from({ length: 40 }, (_, index): Message => {
        return index % 2 === 0 ? { role: "assistant", parts: [{ type: "text", text }] } : user(text);
      }),
      user("Now"),
    ];
    const summarize = scripted(...Array.from({ length: 60 }, (_, index) => `Summary ${index} ${"x".repeat(800)}`));
    const tooLarge = new ModelError("Too long", { overflow: true });
    const run = agent({
      model: scripted({ error: tooLarge }, "Done."),
      use: [compaction({ at: 1e9, keep: 0, summarize })],
    })
      .run({ messages });
    const before = estimateTokens(messages);
    const { messages: after, status } = await run.result;
    const { requests } = summarize;
    assertEquals([status, after.length], ["done", 4]);
    const most = Math.max(1_000, before / 2);
    for (const { messages, instructions } of requests) {
      assert(
        estimateTokens([...messages, user(instructions)]) <= most + 250,
        `${size}: ${estimateTokens(messages)} of ${most}`,
      );
    }
    assertEquals(requests.length > 1, true);
    for (const [index, { messages: [message] }] of requests.entries()) {
      const earlier = message?.role === "user" && textOf(message).match(/Summary (\d+)/)?.[1];
      assertEquals(earlier, index === 0 ? undefined : `${index - 1}`);
    }
  }
});

Deno.test("compaction() shortens a message that fits no request", async () => {
  const huge = `START ${"🔥".repeat(20_000)} END`;
  const messages = [user("First"), { role: "assistant", parts: [{ type: "text", text: huge }] } as const, user("Now")];
  const summarize = scripted("Summary.");
  await agent({ model: scripted("Done."), use: [compaction({ at: 2_000, keep: 0, summarize })] }).run({ messages })
    .result;
  const [message] = summarize.requests[0]?.messages ?? [];
  const summaryText = message?.role === "user" ? textOf(message) : "";
  assert(estimateTokens([user(summaryText)]) <= 2_050);
  assert(summaryText.isWellFormed());
  assert(/START 🔥+.?\n\[\d+ characters left out\]\n.?🔥+ END/u.test(summaryText), summaryText.slice(0, 100));
});

Deno.test("compaction() shortens a summary that is as long as the conversation", async () => {
  const text = "言葉 words ".repeat(2_000);
  const messages: Message[] = [
    user("First"),
    { role: "assistant", parts: [{ type: "text", text }] },
    user("Now"),
  ];
  for (const summarize of [scripted(text), () => Promise.resolve(text)]) {
    const model = scripted("Done.");
    const use = [compaction({ at: 4_000, keep: 0, summarize })];
    const { messages: after } = await agent({ model, use }).run({ messages }).result;
    const [, summary] = short(after);
    assertEquals([after.length, estimateTokens(after) < 1_100], [4, true]);
    assert(
      /^compaction This is .* in its place:\n\n言葉.*\n\[\d+ characters left out\]\n.*words ?$/s.test(summary ?? ""),
    );
  }
});

Deno.test("compaction() declines without a request if there are too few messages", async () => {
  const never = () => Promise.reject(new Error("never"));
  const big = user("x".repeat(2_000));
  const decline = async (messages: readonly Message[]) => {
    const use = [compaction({ at: 400, keep: 100, summarize: never })];
    const run = agent({ model: scripted("Done."), use }).run({ messages });
    const lines = compactions(await eventsOfRun(run));
    return [(await run.result).status, ...lines.map((line) => line.replace(/\d+ \d+ /, ""))];
  };
  const declined = ["done", "auto declined There are too few messages to summarize."];
  assertEquals(await decline([big]), declined);
  assertEquals(
    await decline([big, { role: "assistant", parts: [{ type: "text", text: "Yes?" }] }, user("Now")]),
    declined,
  );
});

Deno.test("a summary that failed, was cut or was stopped leaves the transcript as it is", async () => {
  const failures: ScriptedAnswer[] = [
    { error: new ModelError("Overloaded", { recoverable: true }) },
    { text: "Half of it", error: new Error("cut") },
    { reads: [[{ type: "text", text: "Half of it" }]] },
    { text: "" },
    { reasoning: "I had better not." },
    { error: new ModelError("Too long", { overflow: true }) },
    { text: "Half of it", finish: "length" },
    { text: "Half of it", finish: "filter" },
    { text: "I cannot.", finish: "refusal" },
    { text: " \n" },
  ];
  for (const failure of failures) {
    const { status, messages, compactions, errors, events } = await play([failure, "Done."]);
    assertEquals([status, compactions, errors.length], ["done", ["auto failed 441 441"], 1]);
    assertEquals(short(messages), [...short(history), "user Now", "assistant Done."]);
    assertEquals(events.filter(({ type }) => type === "warning"), []);
  }
});

const overloaded = { error: new ModelError("Overloaded", { recoverable: true, status: 529 }) };
const tooLarge = { error: new ModelError("Too long", { overflow: true }) };

Deno.test("a failed summary is tried again at the next turn, until the provider refuses the transcript", async () => {
  const call = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted(call, call, tooLarge, "Done.");
  const summarize = scripted(overloaded, overloaded, overloaded, overloaded);
  const use = [compaction({ at: 400, keep: 0, summarize })];
  const run = agent({ model, tools: [look], use }).run({ messages: [...history, user("Now")], onError: () => {} });
  const events = await eventsOfRun(run);
  assertEquals(eventLines(events).filter((line) => /^(turn.started|compact.finished|warning)/.test(line)), [
    "turn.started 1",
    "compact.finished auto failed 441 441",
    "turn.started 2",
    "compact.finished auto failed 511 511",
    "turn.started 3",
    "compact.finished auto failed 580 580",
    "warning transcript.trimmed The compaction failed, so the oldest messages were left out. compact",
    "compact.finished overflow failed 580 186",
  ]);
  assertEquals(model.requests.slice(0, 3).map(({ messages }) => short(messages).slice(0, 4)), [
    short(history),
    short(history),
    short(history),
  ]);
  const { status, messages } = await run.result;
  assertEquals([status, short(messages).at(0), short(messages).includes("assistant One")], [
    "done",
    "user First",
    false,
  ]);
});

Deno.test("a failed summary leaves out the oldest messages once the transcript exceeds limits.context", async () => {
  const call = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted(call, call, call, "Done.");
  const use = [compaction({ at: 400, keep: 0, summarize: () => Promise.reject(new Error("down")) })];
  const run = agent({ model, tools: [look], use, limits: { context: 600 } })
    .run({ messages: [...history, user("Now")], onError: () => {} });
  const events = await eventsOfRun(run);
  assertEquals(compactions(events), [
    "auto failed 441 441",
    "auto failed 511 511",
    "auto failed 580 580",
    "auto failed 649 186",
  ]);
  assertEquals(events.flatMap((event) => event.type === "warning" ? [event.code] : []), ["transcript.trimmed"]);
});

Deno.test("a summary that succeeds after one that failed replaces the conversation", async () => {
  const call = { calls: [["look", { at: "a" }]] } as const;
  const summarize = scripted(overloaded, "They talked.");
  const use = [compaction({ at: 400, keep: 0, summarize })];
  const run = agent({ model: scripted(call, "Done."), tools: [look], use }).run({
    messages: [...history, user("Now")],
    onError: () => {},
  });
  assertEquals(compactions(await eventsOfRun(run)).map((line) => line.replace(/[\d ]+$/, "")), [
    "auto failed",
    "auto compacted",
  ]);
  assertEquals(short((await run.result).messages)[1], `${heading}They talked.`);
});

Deno.test("a function that returns no text leaves the transcript as it is", async () => {
  for (const text of ["", " ", undefined as unknown as string]) {
    const use = [compaction({ at: 400, keep: 0, summarize: () => Promise.resolve(text) })];
    const { errors, messages, compactions } = await play(["Done."], use);
    assertEquals(errors.map(String), ["TypeError: Cannot summarize: `summarize` returned no text"]);
    assertEquals([short(messages).length, compactions], [6, ["auto failed 441 441"]]);
  }
});

Deno.test("compact() fails if its summary fails, and the transcript stays as it is", async () => {
  const store = memory();
  await store.save({ id: "s", version: 0, messages: history });
  for (const failure of [overloaded, { text: "Half", finish: "length" } as const]) {
    const assistant = agent({ model: scripted(failure), use: [compaction({ at: 400, keep: 0 })] });
    const { status } = await compact(assistant, { session: "s", store, onError: () => {} }).result;
    assertEquals([status, (await store.load("s"))?.messages], ["failed", history]);
  }
});

Deno.test("requests for a summary pass retry() and fallback()", async () => {
  using time = new FakeTime();
  const model = scripted(overloaded, overloaded, "They talked.", "Done.");
  const run = agent({ model, use: [retry(), compaction({ at: 400, keep: 0 })] }).run({
    messages: [...history, user("Now")],
    onError: () => {},
  });
  const { messages } = await advanceUntilSettled(time, run.result);
  assertEquals(short(messages), ["user First", `${heading}They talked.`, "user Now", "assistant Done."]);

  const other = scripted("They met.");
  const use = [fallback([other]), compaction({ at: 400, keep: 0, summarize: scripted(overloaded) })];
  const second = await agent({ model: scripted("Done."), use }).run({
    messages: [...history, user("Now")],
    onError: () => {},
  }).result;
  assertEquals(short(second.messages)[1], `${heading}They met.`);
});

Deno.test("retry() repeats a request for a summary that is cut, since clients receive nothing of it", async () => {
  using time = new FakeTime();
  const cut = { text: "Half of", error: new ModelError("cut", { recoverable: true }) };
  const model = scripted(cut, "They talked.", "Done.");
  const run = agent({ model, use: [retry(), compaction({ at: 400, keep: 0 })] }).run({
    messages: [...history, user("Now")],
    onError: () => {},
  });
  const events = await advanceUntilSettled(time, eventsOfRun(run));
  assertEquals(eventLines(events).filter((line) => /^(text|model)/.test(line)), [
    "model.started 1 scripted",
    "text.delta 1 0 Done.",
    "model.finished 1 stop 1",
  ]);
});

Deno.test("timeout() bounds a request for a summary that hangs, and the run goes on", async () => {
  using time = new FakeTime();
  const hanging: Model = {
    id: "hanging",
    async *stream(_, { signal }) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield [];
    },
  };
  const use = [timeout({ model: 5_000 }), compaction({ at: 400, keep: 0, summarize: hanging })];
  const run = agent({ model: scripted("Done."), use }).run({ messages: [...history, user("Now")], onError: () => {} });
  const { result } = run;
  await time.tickAsync(5_000);
  const { status, messages } = await result;
  assertEquals([status, short(messages).length], ["done", 6]);
});

Deno.test("budget() sends no request for a summary that does not fit, and the last answer is that of the model", async () => {
  const summarize = scripted("Never.");
  const use = [budget({ tokens: 1_300 }), compaction({ at: 400, keep: 0, summarize })];
  const run = agent({ model: scripted("Last."), use }).run({ messages: [...history, user("Now")], onError: () => {} });
  const { status, text } = await run.result;
  assertEquals([status, text, summarize.requests.length], ["limit", "Last.", 0]);
});

Deno.test("model hooks see requests for a summary with their purpose, and clients see nothing of the responses", async () => {
  const seen: unknown[] = [];
  const watch: Middleware = {
    async model(ctx, next) {
      const { purpose, turn, attempt, request: { tools, options } } = ctx;
      ctx.emit({ type: "text.delta", turn, part: 0, text: "shown" });
      const response = await next();
      seen.push([purpose, turn, attempt, tools.length, options, textOf(response)]);
      return response;
    },
  };
  const mask: Middleware = {
    model: async (ctx, next) =>
      ctx.purpose === "turn" ? await next() : mapText(await next(), (text) => text.replace("secret", "***")),
  };
  const { messages, events } = await play(
    [{ text: "A secret.", calls: [["look", {}]], reasoning: "Hm." }, "Done."],
    [watch, mask, compaction({ at: 400, keep: 0 })],
  );
  assertEquals(seen, [["summary", 1, 1, 0, {}, "A ***."], ["turn", 1, 1, 0, {}, "Done."]]);
  assertEquals(short(messages)[1], `${heading}A ***.`);
  assertEquals(eventLines(events).filter((line) => /^(text|reasoning|call|model)/.test(line)), [
    "model.started 1 scripted",
    "text.delta 1 0 shown",
    "text.delta 1 0 Done.",
    "model.finished 1 stop 1 Done.",
  ]);
});

Deno.test("a request for a summary that is too large is not compacted itself", async () => {
  const summarize = scripted(tooLarge, tooLarge);
  const use = [compaction({ at: 400, keep: 0, summarize })];
  const run = agent({ model: scripted(tooLarge, "Done."), use }).run({
    messages: [...history, user("Now")],
    onError: () => {},
  });
  const events = await eventsOfRun(run);
  assertEquals(compactions(events), ["auto failed 441 441", "overflow failed 441 117"]);
  assertEquals([(await run.result).status, summarize.requests.length], ["done", 2]);
});

Deno.test("hooks that shape the conversation leave requests for a summary as they are", async () => {
  const asked: string[] = [];
  const specialist = { name: "billing", description: "Bills", instructions: "You bill." };
  const answer = (text: string) => (request: ModelRequest) => {
    asked.push(`${request.instructions.slice(0, 26)}, ${request.tools.length} tools`);
    return text;
  };
  const summarize = scripted(answer(""), answer("They talked."));
  const transfer = { calls: [["transfer", { agent: "billing" }]] } as const;
  const use = [handoff([specialist]), toolSearch({ keep: ["transfer"] }), compaction({ at: 400, keep: 0, summarize })];
  const model = scripted(transfer, "Done.");
  await agent({ model, tools: [look], use }).run({ messages: [...history, user("Now")], onError: () => {} }).result;
  assertEquals(asked, ["Summarize the conversation, 0 tools", "Summarize the conversation, 0 tools"]);
  assertEquals(model.requests.map(({ instructions }) => instructions), ["", "You bill."]);
});

Deno.test("the tokens of a failed compaction count for the run and for budget()", async () => {
  const messages = [...Array.from({ length: 8 }, () => history).flat(), user("Now")];
  const usage = { input: 300, output: 20 };
  const counted = async (...summaries: readonly ScriptedAnswer[]) => {
    const spend = budget({ tokens: 10_000 });
    const left: number[] = [];
    const note: Middleware = { stop: (ctx, next) => (left.push(spend.left(ctx).tokens), next()) };
    const use = [spend, note, compaction({ at: 1_000, keep: 0, summarize: scripted(...summaries) })];
    const run = agent({ model: scripted("Done."), use }).run({ messages, onError: () => {} });
    const [line] = compactions(await eventsOfRun(run));
    const result = await run.result;
    return [line?.split(" ")[1], result.usage, left];
  };
  const summary = { text: "Summary.", usage };
  assertEquals(await counted(summary, { text: "", usage }), ["failed", { input: 601, output: 41 }, [9_358]]);
  assertEquals(await counted(summary, { error: new Error("down") }), ["failed", { input: 301, output: 21 }, [9_678]]);
  assertEquals(await counted({ error: new Error("down") }), ["failed", { input: 1, output: 1 }, [9_998]]);
});

Deno.test("the tokens of a compaction count for the run and for budget() if an outer hook fails after it", async () => {
  const messages = [...Array.from({ length: 8 }, () => history).flat(), user("Now")];
  const spend = budget({ tokens: 10_000 });
  const left: number[] = [];
  const note: Middleware = { stop: (ctx, next) => (left.push(spend.left(ctx).tokens), next()) };
  const failing: Middleware = {
    async compact(_, next) {
      await next();
      throw new Error("down");
    },
  };
  const summary = { text: "Summary.", usage: { input: 100, output: 10 } };
  const summarize = scripted(...Array.from({ length: 8 }, () => summary));
  const use = [spend, note, failing, compaction({ at: 1_000, keep: 0, summarize })];
  const { usage } = await agent({ model: scripted("Done."), use }).run({ messages, onError: () => {} }).result;
  const summaries = summarize.requests.length;
  assert(summaries > 1, "there are several parts");
  assertEquals(usage, { input: 100 * summaries + 1, output: 10 * summaries + 1 });
  assertEquals(left, [10_000 - 110 * summaries - 2]);
});

Deno.test("the tokens that a hook adds to those of compaction() count once for the run and for budget()", async () => {
  const spend = budget({ tokens: 10_000 });
  const left: number[] = [];
  const note: Middleware = { stop: (ctx, next) => (left.push(spend.left(ctx).tokens), next()) };
  const adding: Middleware = {
    async compact(_, next) {
      const result = await next();
      const usage = { input: 30, output: 3 };
      return { ...result, usage: result.usage ? addUsage(result.usage, usage) : usage };
    },
  };
  const summary = { text: "Summary.", usage: { input: 300, output: 20 } };
  const { usage } = await play([summary, "Done."], [spend, note, adding, compaction({ at: 400, keep: 0 })]);
  assertEquals([usage, left], [{ input: 331, output: 24 }, [9_645]]);
});

Deno.test("the tokens of a compaction that is tried again count once for each attempt", async () => {
  const messages = [...Array.from({ length: 8 }, () => history).flat(), user("Now")];
  const summary = { text: "Summary.", usage: { input: 100, output: 10 } };
  const summarize = scripted(summary, { error: new Error("down") }, ...Array.from({ length: 8 }, () => summary));
  const again: Middleware = {
    error: ({ source }, next) => source === "compact" ? Promise.resolve(tryAgain()) : next(),
  };
  const use = [again, compaction({ at: 1_000, keep: 0, summarize })];
  const { usage } = await agent({ model: scripted("Done."), use }).run({ messages, onError: () => {} }).result;
  const summaries = summarize.requests.length - 1; // the second request failed
  assertEquals(usage, { input: 100 * summaries + 1, output: 10 * summaries + 1 });
});

Deno.test("a stopped compaction leaves the transcript unchanged", async () => {
  const stopping = async (summarize: (stop: () => void) => Parameters<typeof compaction>[0]) => {
    const controller = new AbortController();
    const { signal } = controller;
    const use = [compaction({ at: 400, keep: 0, ...summarize(() => controller.abort()) })];
    const { status, messages } = await agent({ model: scripted(), use })
      .run({ messages: [...history, user("Now")], signal }).result;
    assertEquals([status, short(messages)], ["aborted", [...short(history), "user Now"]]);
  };
  await stopping((stop) => ({ summarize: scripted({ text: "Summary.", before: stop }) }));
  await stopping((stop) => ({
    summarize: scripted({
      reads: (function* () {
        yield [{ type: "text", text: "Half" }];
        stop();
        yield [{ type: "finish", reason: "stop" }];
      })(),
    }),
  }));
  await stopping((stop) => ({ summarize: (_, { signal }) => (stop(), Promise.reject(signal.reason)) }));
  await stopping((stop) => ({ summarize: () => (stop(), Promise.resolve("Late.")) }));
});

Deno.test("a compaction that is stopped between two parts does not start the next", async () => {
  const controller = new AbortController();
  let parts = 0;
  const summarize = () => {
    parts++;
    controller.abort();
    return Promise.resolve("Late.");
  };
  const messages = [...Array.from({ length: 8 }, () => history).flat(), user("Now")];
  const use = [compaction({ at: 1_000, keep: 0, summarize })];
  const { status } = await agent({ model: scripted(), use }).run({ messages, signal: controller.signal }).result;
  assertEquals([status, parts], ["aborted", 1]);
});

Deno.test("compaction() uses a lower limits.context, and otherwise sets it", async () => {
  const limits: unknown[] = [];
  const see: Middleware = { prompt: (ctx, next) => (limits.push(ctx.run.limits.context), next()) };
  for (const context of [Infinity, 300, 500]) {
    await agent({ model: scripted("Done."), use: [compaction({ at: 400 }), see], limits: { context } }).run("Hi")
      .result;
  }
  await agent({ model: scripted("Done."), use: [compaction(), see] }).run("Hi").result;
  assertEquals(limits, [400, 300, 400, 100_000]);
});

Deno.test("an outer hook can extend the result of compaction()", async () => {
  const add: Middleware = {
    async compact(_, next) {
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      return { ...compaction, messages: [...compaction.messages, user("Mind the names.", "adder")] };
    },
  };
  const { messages, usage } = await play(["Summary.", "Done."], [add, compaction({ at: 400, keep: 0 })]);
  assertEquals(short(messages).slice(2), ["user Now", "adder Mind the names.", "assistant Done."]);
  assertEquals(usage, { input: 2, output: 2 });
});

Deno.test("compaction() keeps every transcript valid, with its beginning and its end", async () => {
  for (let seed = 0; seed < 200; seed++) {
    const given = [...someTranscript(seed), user(`Now ${seed}`)];
    const at = 50 + seed * 10;
    const model = scripted("Done.");
    const use = [compaction({ at, keep: seed % at, summarize: () => Promise.resolve(`Summary ${seed}`) })];
    const events = await eventsOfRun(agent({ model, use }).run({ messages: given }));
    assertEquals(events.filter(({ type }) => type === "warning"), [], `seed ${seed}`);
    const sent = model.requests[0]?.messages ?? [];
    assertEquals(repairTranscript(sent).problems, []);
    assertEquals(sent.at(-1), given.at(-1), `seed ${seed}`);
    const verbatim = sent.filter((message) => given.includes(message));
    assertEquals(verbatim, given.filter((message) => sent.includes(message)), `seed ${seed}`); // in the original order
    const done = events.some((event) => event.type === "compact.finished" && event.status === "compacted");
    assertEquals(sent.length - verbatim.length, done ? 1 : 0, `seed ${seed}`);
  }
});

Deno.test("compaction() is rare, and requests keep a common prefix", async () => {
  const call = { calls: [["look", { at: "a" }]] } as const;
  const model = scripted(...Array.from({ length: 200 }, () => call), "Done.");
  const use = [compaction({ at: 1_000, summarize: () => Promise.resolve("Seen. ".repeat(50)) })];
  const run = agent({ model, tools: [look], use, limits: { turns: 201 } }).run("Look");
  const events = await eventsOfRun(run);
  let anew = 0;
  for (const [index, { messages }] of model.requests.entries()) {
    const before = model.requests[index - 1]?.messages ?? [];
    assertEquals(messages[0], model.requests[0]?.messages[0]);
    if (before.some((message, at) => message !== messages[at])) anew++;
    assert(estimateTokens(messages) <= 1_100);
  }
  assertEquals(anew, compactions(events).length);
  assert(anew <= 24, `compacted ${anew} times, of 66 tokens in each of 200 turns`);
});

Deno.test("compaction() throws for invalid sizes", () => {
  for (const at of [0, -1, NaN]) {
    assertThrows(
      () => compaction({ at }),
      RangeError,
      `Cannot create compaction(): \`at\` is ${at} and \`keep\` is ${at / 4}; expected 0 <= keep < at`,
    );
  }
  for (const keep of [-1, 100, NaN]) {
    assertThrows(
      () => compaction({ at: 100, keep }),
      RangeError,
      `Cannot create compaction(): \`at\` is 100 and \`keep\` is ${keep}; expected 0 <= keep < at`,
    );
  }
});

Deno.test("compaction() may take as long as the run", async () => {
  using time = new FakeTime();
  const slow: Model = {
    id: "slow",
    async *stream() {
      await new Promise((resolve) => setTimeout(resolve, 400_000));
      yield [{ type: "text", text: "They talked." }, { type: "finish", reason: "stop" }];
    },
  };
  const use = [compaction({ at: 400, keep: 0, summarize: slow })];
  const errors: unknown[] = [];
  const { result } = agent({ model: scripted("Done."), use, limits: { time: 600_000 } })
    .run({ messages: [...history, user("Now")], onError: (error) => errors.push(error) });
  await time.tickAsync(500_000);
  assertEquals([short((await result).messages), errors], [
    ["user First", `${heading}They talked.`, "user Now", "assistant Done."],
    [],
  ]);
});

Deno.test("compaction() asks once for a summary, and ignores calls in the answer", async () => {
  const both = await play([{ text: "They talked.", calls: [["look", {}]] }, "Done."]);
  assertEquals(short(both.messages), ["user First", `${heading}They talked.`, "user Now", "assistant Done."]);
  const { errors, model } = await play([{ calls: [["look", {}]] }, "Done."]);
  assertEquals(errors.map(String), ["ModelError: Cannot summarize: scripted answered with no text"]);
  assertEquals(model.requests.length, 2);
});
