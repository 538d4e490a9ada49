import { waitingMessages } from "../../src/core/steering.ts";
import { assertEquals, assertRejects } from "@std/assert";
import {
  agent,
  type Event,
  type Limits,
  type Middleware,
  type RunHandle,
  type Session,
  SessionError,
  state,
  text,
  tool,
  type ToolResult,
  user,
} from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { lines } from "../support/transcript_lines.ts";

/** An agent with a tool that acts on its own run. */
function agentOf(
  model: ScriptedModel,
  { act = () => {}, limits = {}, use = [] }: {
    readonly act?: (what: string, run: RunHandle<unknown>) => void | Promise<void> | ToolResult;
    readonly limits?: Partial<Limits>;
    readonly use?: readonly Middleware[];
  } = {},
) {
  const ran: string[] = [];
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({ what: z.string() }),
    execute: async ({ what }): Promise<string | ToolResult> => {
      ran.push(what);
      return await act(what, run) ?? `did ${what}`;
    },
  });
  const { store, saved } = recordingStore();
  const assistant = agent({ model, tools: [work], limits, use });
  const run: RunHandle<unknown> = assistant.run({ prompt: "Go", session: "s", store });
  return { run, ran, saved };
}

const working = (...works: readonly string[]) => ({ calls: works.map((what) => ["work", { what }] as const) });

const injected = (events: readonly Event[]) =>
  events.flatMap((event) => event.type === "steering.injected" ? [lines(event.messages)] : []);

/** Whether a message waits for the session's run. */
function hasWaiting({ run }: Session): boolean {
  return waitingMessages(run?.state ?? []).length > 0;
}

Deno.test("a message sent while calls run is inserted after their results", async () => {
  const model = scripted(working("a", "b"), "Yes, red.");
  const { run } = agentOf(model, { act: (what, run) => what === "a" ? run.send("Make it red") : undefined });
  const events = await Array.fromAsync(run.events);
  const { status, messages } = await run.result;
  assertEquals([status, lines(messages)], ["done", [
    "user Go",
    "call work work",
    "ok did a",
    "ok did b",
    "user Make it red",
    "assistant Yes, red.",
  ]]);
  assertEquals(injected(events), [["user Make it red"]]);
});

Deno.test("a message sent while the model answers is answered before the run ends", async () => {
  const model = scripted({ text: "One.", before: () => run.send("And two?") }, "Two.");
  const { run } = agentOf(model);
  const { status, text, messages } = await run.result;
  assertEquals([status, text, lines(messages)], ["done", "Two.", [
    "user Go",
    "assistant One.",
    "user And two?",
    "assistant Two.",
  ]]);
});

Deno.test("a message sent while a stop hook decides is answered", async () => {
  const once = state("once", () => false);
  const use: Middleware[] = [{
    name: "late",
    stop: async (ctx, next) => {
      if (!once.get(ctx)) await run.send("Wait!");
      once.set(ctx, true);
      return await next();
    },
  }];
  const { run } = agentOf(scripted("One.", "Two."), { use });
  assertEquals(lines((await run.result).messages), ["user Go", "assistant One.", "user Wait!", "assistant Two."]);
});

Deno.test('a message with after: "calls" skips the calls that have not begun', async () => {
  const model = scripted(working("a", "b", "c"), "Yes.");
  const { run, ran } = agentOf(model, {
    limits: { parallel: 1 },
    act: (_, run) => run.send("Stop that", { after: "calls" }),
  });
  const { messages } = await run.result;
  assertEquals([ran, lines(messages).slice(2, 6)], [["a"], [
    "ok did a",
    "skipped Skipped due to queued user message.",
    "skipped Skipped due to queued user message.",
    "user Stop that",
  ]]);
});

Deno.test("at most ten messages wait for a run; the eleventh, and one for a finished run, are refused", async () => {
  const model = scripted(working("a"), "Yes.");
  const refused: string[] = [];
  const { run } = agentOf(model, {
    act: async (_, run) => {
      for (let index = 1; index <= 11; index++) {
        await run.send(`${index}`).catch((error) => refused.push(`${error}`));
      }
    },
  });
  const { messages } = await run.result;
  assertEquals(lines(messages).slice(3, -1), Array.from({ length: 10 }, (_, index) => `user ${index + 1}`));
  assertEquals(refused, ["RangeError: Cannot send a message to the run: 10 wait already"]);
  const { run: id } = await run.result;
  await assertRejects(() => run.send("Late"), Error, `Cannot send a message to run "${id}": it is over`);
});

Deno.test("send() refuses a value that is no message of a person, and the run goes on", async () => {
  const refusals: string[] = [];
  const values = [undefined, 5, {}, { role: "user", parts: "Hi" }, { role: "assistant", parts: [] }, user(5 as never)];
  const { run } = agentOf(scripted(working("a"), "Done."), {
    async act(_, run) {
      const send = run.send as (message: unknown) => Promise<void>; // as code without types calls it
      for (const value of values) await send(value).catch((error) => refusals.push(String(error)));
    },
  });
  const { status, run: id } = await run.result;
  const expected = 'expected messages with `role` and `parts`, such as user("Hi")';
  const refusal = `TypeError: Cannot send a message to run "${id}": ${expected}`;
  assertEquals([status, refusals], ["done", values.map(() => refusal)]);
});

Deno.test("an undelivered message is stored for the next run of the session, and survives a crash", async () => {
  const model = scripted(working("a"));
  const { run, saved } = agentOf(model, {
    limits: { turns: 1 },
    act: (_, run) => run.send("Are you there?"),
  });
  const { status, messages } = await run.result;
  assertEquals([status, lines(messages).at(-1)], ["limit", "user Are you there?"]);
  assertEquals(
    saved.map(({ run }) => lines(waitingMessages(run?.state ?? []))).filter((texts) => texts.length > 0)[0],
    [
      "user Are you there?",
    ],
  );
});

Deno.test("a message sent to a pausing run is delivered when the conversation continues without an answer", async () => {
  const { store } = recordingStore();
  const options = {
    description: "Works",
    input: z.object({ what: z.string() }),
    execute: async () => {
      await run.send("Make it red");
      return "did it";
    },
  };
  const work = tool({ ...options, name: "work" });
  const asked = tool({ ...options, name: "asked", ask: true });
  const calls = [["work", { what: "a" }], ["asked", { what: "b" }]] as const;
  const assistant = agent({ model: scripted({ calls }, "Red."), tools: [work, asked] });
  const run = assistant.run({ prompt: "Go", session: "s", store });
  assertEquals((await run.result).status, "paused");
  const { messages } = await assistant.run({ prompt: "Well?", session: "s", store }).result;
  assertEquals(lines(messages), [
    "user Go",
    "call work asked",
    "ok did it",
    "skipped The conversation went on without an answer.",
    "user Make it red",
    "user Well?",
    "assistant Red.",
  ]);
});

Deno.test("a message sent before the run holds its session waits", async () => {
  const { store } = recordingStore();
  const model = scripted("One.", "Two.");
  await agent({ model }).run({ prompt: "1", session: "s", store }).result;
  const run = agent({ model }).run({ prompt: "2", session: "s", store });
  await run.send("Make it red");
  assertEquals(lines((await run.result).messages).slice(2), ["user 2", "user Make it red", "assistant Two."]);
  const refused = agent({ model }).resume({ session: "s", store, answers: [] });
  await assertRejects(() => refused.send("Hi"), SessionError, 'Cannot resume session "s": it is not paused');
  await refused.result;
});

Deno.test("send() to a run that has lost its session, and finish(), are refused with that reason", async () => {
  for (const action of ["send", "finish"] as const) {
    const { store } = recordingStore();
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const model = scripted({
      before: () => {
        begun.resolve();
        return gate.promise;
      },
      text: "One.",
    }, "Two.");
    const assistant = agent({ model });
    const run = assistant.run({ prompt: "1", session: "s", store });
    await begun.promise;
    await assistant.run({ prompt: "2", session: "s", store, busy: "replace" }).result;
    if (action === "send") await assertRejects(() => run.send("Red"), SessionError, "Cannot send a message to run");
    else await assertRejects(() => run.finish(), SessionError, "Cannot finish run");
    gate.resolve();
    assertEquals((await run.result).reason, "lost");
  }
});

Deno.test("finish() of a run that is over, or that cannot begin, is refused; callers need not wait", async () => {
  const over = agent({ model: scripted("One.") }).run("1");
  const { run } = await over.result;
  const error = await assertRejects(() => over.finish(), SessionError, `Cannot finish run "${run}": it is over`);
  assertEquals(error.code, "unknown");
  const refused = agent({ model: scripted() }).resume({ session: "s", store: recordingStore().store, answers: [] });
  void refused.finish();
  await assertRejects(() => refused.finish(), SessionError, 'Cannot resume session "s"');
  void over.finish();
  await refused.result;
});

Deno.test("finish() before the run holds its session takes effect", async () => {
  const model = scripted("Two.");
  const run = agent({ model }).run({ prompt: "1", session: "s", store: recordingStore().store });
  await run.finish();
  const { status, reason } = await run.result;
  assertEquals([status, reason, model.requests[0]?.tools], ["done", "interrupted", []]);
});

Deno.test("a run whose process died before it finished still answers a waiting message", async () => {
  const deaths = recordingStore();
  const use: Middleware[] = [{
    name: "late",
    stop: async (_, next) => {
      if (!deaths.saved.some(hasWaiting)) await run.send("Wait!");
      return await next();
    },
  }];
  const run = agent({ model: scripted("One.", "Two."), use }).run({ prompt: "Go", session: "s", store: deaths.store });
  await run.result;
  const { store } = await storeWith(deaths.saved.find(hasWaiting));
  const repeated = agent({ model: scripted("Three.") }).resume({ session: "s", store, answers: [], lost: () => true });
  assertEquals(lines((await repeated.result).messages), [
    "user Go",
    "assistant One.",
    "user Wait!",
    "assistant Three.",
  ]);
});

Deno.test("finish() still applies after a pause", async () => {
  const { store } = recordingStore();
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    ask: true,
    execute: () => "did it",
  });
  const model = scripted({ calls: [["work", {}]], before: () => run.finish() }, "As far as I came.");
  const assistant = agent({ model, tools: [work] });
  const run = assistant.run({ prompt: "Go", session: "s", store });
  assertEquals((await run.result).status, "paused");
  const answers = [{ callId: "call_1", type: "approve" }] as const;
  const { status, reason } = await assistant.resume({ session: "s", store, answers }).result;
  assertEquals([status, reason, model.requests[1]?.tools], ["done", "interrupted", []]);
});

Deno.test("finish() requests one more answer without tools, and skips calls that have not begun", async () => {
  const model = scripted(working("a", "b"), "As far as I came.");
  const { run, ran } = agentOf(model, { limits: { parallel: 1 }, act: (_, run) => run.finish() });
  const events = await Array.fromAsync(run.events);
  const { status, reason, text, messages } = await run.result;
  assertEquals([status, reason, text, ran], ["done", "interrupted", "As far as I came.", ["a"]]);
  assertEquals(lines(messages), [
    "user Go",
    "call work work",
    "ok did a",
    "skipped Skipped due to graceful interrupt.",
    "assistant As far as I came.",
  ]);
  const last = model.requests[1];
  assertEquals([last?.tools, lines(last?.messages ?? []).at(-1)], [
    [],
    "turn Finish now: answer with what you have, without tools.",
  ]);
  assertEquals(events.filter(({ type }) => type.startsWith("steering")), [{ type: "steering.interrupted" }]);
});

Deno.test("calls in the last answer after finish() are skipped", async () => {
  const model = scripted(working("a"), working("b"));
  const { run, ran } = agentOf(model, { act: (_, run) => run.finish() });
  const { status, reason, messages } = await run.result;
  assertEquals([status, reason, ran, lines(messages).at(-1)], [
    "done",
    "interrupted",
    ["a"],
    "skipped Skipped due to graceful interrupt.",
  ]);
});

Deno.test("stop() with rollback leaves the transcript unchanged", async () => {
  const model = scripted(working("a"), "Never.");
  const { run } = agentOf(model, { act: (_, run) => run.stop("enough", { rollback: true }) });
  const { status, reason, messages } = await run.result;
  assertEquals([status, reason, messages], ["aborted", "enough", []]);
});

Deno.test("a second stop() keeps the first reason, and may ask for a rollback", async () => {
  const { run } = agentOf(scripted(working("a"), "Never."), {
    act(_, run) {
      run.stop("enough");
      run.stop("undo", { rollback: true });
    },
  });
  const { status, reason, messages } = await run.result;
  assertEquals([status, reason, messages], ["aborted", "enough", []]);
});

Deno.test("a run that is stopped with rollback keeps no message that waits for it, nor one that is sent while it ends", async () => {
  const sending: Middleware = {
    name: "sending",
    async session(_, next) {
      const settings = await next();
      await assertRejects(() => run.send("Make it blue"), SessionError, "it is ending"); // it waits all the same
      return settings;
    },
  };
  const { run, saved } = agentOf(scripted(working("a"), "Never."), {
    async act(_, run) {
      await run.send("Make it red");
      run.stop("enough", { rollback: true });
    },
    use: [sending],
  });
  const { status, messages } = await run.result;
  assertEquals([status, messages, saved.at(-1)?.messages, saved.some(hasWaiting)], ["aborted", [], [], true]);
});

Deno.test("a batch whose results are all handled ends the run without another request", async () => {
  const handled = (what: string): ToolResult => ({ ...text(`made ${what}`), handled: what !== "c" });
  const { run } = agentOf(scripted({ text: "Here:", ...working("a", "b") }), { act: handled });
  const { status, text: answer, messages } = await run.result;
  assertEquals([status, answer, lines(messages).slice(2)], ["done", "Here:", [
    "call work work",
    "ok made a",
    "ok made b",
  ]]);
  const { run: other } = agentOf(scripted(working("a", "c"), "Both are there."), { act: handled });
  assertEquals((await other.result).text, "Both are there.");
});

Deno.test("a denied result makes its batch unhandled", async () => {
  const use: Middleware[] = [{
    name: "guard",
    approval: async (ctx, next) =>
      JSON.stringify(ctx.input).includes("b") ? { type: "deny", reason: "Not b." } : await next(),
  }];
  const act = (what: string): ToolResult => ({ ...text(`made ${what}`), handled: true });
  const { run } = agentOf(scripted(working("a", "b"), "Only a."), { act, use });
  assertEquals((await run.result).text, "Only a.");
});

Deno.test("a result may contain a notice for the person, be silent, and name artifacts", async () => {
  const artifacts = [{ uri: "file:a.png", mediaType: "image/png" }];
  const results: Readonly<Record<string, ToolResult>> = {
    a: { ...text("For the model"), person: "Your chart is ready.", artifacts },
    b: { ...text("Secret"), person: "This is not emitted.", silent: true },
  };
  const { run } = agentOf(scripted(working("a", "b"), "Done."), { act: (what) => results[what] ?? text("") });
  const events = await Array.fromAsync(run.events);
  assertEquals(
    events.flatMap((event): readonly unknown[] =>
      event.type === "tool.finished" ? [event.result] : event.type === "notice" ? [event.text] : []
    ),
    [
      { callId: "call_1", name: "work", status: "ok", parts: [{ type: "text", text: "For the model" }], artifacts },
      "Your chart is ready.",
      { callId: "call_2", name: "work", status: "ok", parts: [] },
    ],
  );
  assertEquals(lines((await run.result).messages).slice(2, 4), ["ok For the model", "ok Secret"]);
});

Deno.test("a tool added by a model hook and answered by a tool hook needs approval like all tools", async () => {
  const seen: unknown[] = [];
  const guide: Middleware = {
    name: "guide",
    model: (ctx, next) =>
      next({ request: { tools: [...ctx.request.tools, { name: "guide", description: "Guides", schema: {} }] } }),
    tool: async (ctx, next) => ctx.name === "guide" ? text("To the left.") : await next(),
    approval: async (ctx, next) => {
      seen.push([ctx.name, ctx.tool, ctx.proposed?.status]);
      return await next();
    },
  };
  const model = scripted({ calls: [["guide", {}]] }, "Left it is.");
  const { run } = agentOf(model, { use: [guide] });
  assertEquals(lines((await run.result).messages).slice(2), ["ok To the left.", "assistant Left it is."]);
  assertEquals([seen, model.requests[0]?.tools.map(({ name }) => name)], [[["guide", undefined, "ok"]], [
    "work",
    "guide",
  ]]);
});
