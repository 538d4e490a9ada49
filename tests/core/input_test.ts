import {
  agent,
  type Event,
  type Message,
  type Middleware,
  refused,
  type RunHandle,
  serve,
  SessionError,
  textOf,
  tool,
  user,
} from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import * as z from "zod";
import { processOf, shared } from "../support/process.ts";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { type App, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const answer = (text: string): Message => ({ role: "assistant", parts: [{ type: "text", text }] });

/** Records the source and the messages of each review. */
function recordInput(reviews: string[]): Middleware {
  return {
    name: "recorder",
    input(ctx, next) {
      reviews.push(`${ctx.source}: ${lines(ctx.messages).join(", ")}`);
      return next();
    },
  };
}

/** Refuses messages that contain "bad", and upcases the others. */
const guard: Middleware = {
  name: "guard",
  async input({ messages }, next) {
    if (lines(messages).some((line) => line.includes("bad"))) return refused("It is bad.");
    return await next({ messages: messages.map((message) => ({ ...message, ...upcased(message) }) as Message) });
  },
};

function upcased(message: Message): object {
  return message.role === "user" ? user(textOf(message).toUpperCase()) : {};
}

/** Adds context to every message. */
const checked: Middleware = {
  name: "checked",
  input: (ctx, next) => next({ context: [...ctx.context, `It is a ${ctx.source}.`] }),
};

/** A tool that pauses for an approval. */
const pay = tool({ name: "pay", description: "Pays", input: z.object({}), ask: true, execute: () => "Paid." });

const notStarted = (events: readonly Event[]) => events.filter(({ type }) => type === "prompt.accepted");

Deno.test("input: a prompt and the history before it are reviewed once each, before the prompt hooks", async () => {
  const reviews: string[] = [];
  const around: Middleware = {
    prompt(ctx, next) {
      reviews.push(`at prompt: ${textOf(ctx.prompt)}`);
      return next();
    },
  };
  const model = scripted("Done.");
  const messages = [user("One"), answer("Two"), user("Three")];
  const result = await agent({ model, use: [around, recordInput(reviews)] }).run({ messages }).result;
  assertEquals(reviews, ["history: user One, assistant Two", "prompt: user Three", "at prompt: Three"]);
  assertEquals(lines(result.messages), ["user One", "assistant Two", "user Three", "assistant Done."]);
});

Deno.test("input: a changed message is the one that the model, the transcript and the events have", async () => {
  const model = scripted("Done.");
  const run = agent({ model, use: [guard] }).run({ messages: [user("one"), answer("Two"), user("three")] });
  const events = await Array.fromAsync(run.events);
  const { messages } = await run.result;
  assertEquals(lines(messages), ["user ONE", "assistant Two", "user THREE", "assistant Done."]);
  assertEquals(lines(model.requests[0]?.messages ?? []), ["user ONE", "assistant Two", "user THREE"]);
  assertEquals(events.flatMap((event) => event.type === "prompt.accepted" ? [textOf(event.prompt)] : []), ["THREE"]);
});

for (
  const [what, messages] of [
    ["prompt", [user("a bad one")]],
    ["history", [user("a bad one"), answer("No."), user("Hi")]],
  ] as const
) {
  Deno.test(`input: a refused ${what} cancels the run and stores no message`, async () => {
    const { store, saved } = recordingStore();
    const model = scripted("Done.");
    const run = agent({ model, use: [guard] }).run({ messages, session: "s", store });
    const events = await Array.fromAsync(run.events);
    const result = await run.result;
    assertEquals([result.status, result.reason, result.text, result.messages], ["cancelled", "It is bad.", "", []]);
    assertEquals([notStarted(events), model.requests.length], [[], 0]);
    assertEquals([saved.at(-1)?.messages, saved.at(-1)?.run], [[], undefined]);
    assertEquals(JSON.stringify(saved.at(-1)).includes("bad one"), false);
  });
}

Deno.test("input: a hook that throws fails the run, and the prompt is not accepted", async () => {
  const broken: Middleware = { input: () => Promise.reject(new Error("broken")) };
  const sources: string[] = [];
  const watch: Middleware = {
    error(ctx, next) {
      sources.push(ctx.source);
      return next();
    },
  };
  const { status, messages } = await agent({ model: scripted("Done."), use: [watch, broken] }).run("Hi").result;
  assertEquals([status, messages, sources], ["failed", [], ["input"]]);
});

Deno.test("input: a hook that swallows a refusal, or answers without next(), does not bypass the guards inside it", async () => {
  const lax: Middleware = {
    async input({ messages }, next) {
      await next();
      return { status: "accepted", messages };
    },
  };
  const early: Middleware = { input: ({ messages }) => Promise.resolve({ status: "accepted", messages }) };
  const failing: Middleware = { input: () => Promise.reject(new Error("broken")) };
  const silent: Middleware = {
    input: ({ messages }, next) => next().catch(() => ({ status: "accepted", messages }) as const),
  };
  for (const use of [[lax, guard], [early, guard], [silent, failing]]) {
    const { status, messages } = await agent({ model: scripted("Done."), use }).run("bad").result;
    assertEquals([status, messages], ["cancelled", []]);
  }
});

Deno.test("input: a change that is not one user message is refused by name", async () => {
  const twice: Middleware = {
    name: "twice",
    input: ({ messages }, next) => next({ messages: [...messages, ...messages] }),
  };
  const { status, error } = await agent({ model: scripted("Done."), use: [twice] }).run("Hi").result;
  assertEquals(status, "failed");
  const expected = 'Cannot change the messages of a prompt at input in "twice": expected one user message';
  assertEquals(String(error), `TypeError: ${expected}`);
});

Deno.test("input: a run that continues after a pause reviews the reply only", async () => {
  const reviews: string[] = [];
  const { store } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] }, "Done.");
  const assistant = agent({ model, tools: [pay], use: [recordInput(reviews)] });
  const { questions } = await assistant.run({ prompt: "Go", session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  const answers = [{ callId, type: "reply", text: "Later" }] as const;
  assertEquals((await assistant.resume({ session: "s", store, answers }).result).status, "done");
  assertEquals(reviews, ["prompt: user Go", "reply: user Later"]);
});

Deno.test("input: a crash at any save after the review does not review the prompt again", async () => {
  const reviews: string[] = [];
  const { store, saved } = recordingStore();
  const made = () => agent({ model: scripted("Done.", "Done."), use: [recordInput(reviews), guard] });
  await made().run({ prompt: "go", session: "s", store }).result;
  assertEquals(reviews.splice(0), ["prompt: user go"]);
  const running = saved.filter(({ run }) => run);
  for (const session of running) {
    const { store } = await storeWith(session);
    const lost = () => true;
    const { status, messages } = await made().resume({ session: "s", store, answers: [], lost }).result;
    const repeated = session.run?.position.at === "incoming" ? ["prompt: user go"] : [];
    assertEquals([status, lines(messages), reviews.splice(0)], ["done", ["user GO", "assistant Done."], repeated]);
  }
  assertEquals(running.map(({ run }) => run?.position.at).slice(0, 2), ["incoming", "prompt"]);
});

Deno.test("input: a parent's prompt to its child is not reviewed", async () => {
  const reviews: string[] = [];
  const child = agent({ name: "child", model: scripted("Helped."), use: [recordInput(reviews)] });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const parent = agent({
    model,
    tools: [asTool(child, { name: "child", description: "Helps" })],
    use: [{ ...recordInput(reviews), inherit: true }],
  });
  assertEquals((await parent.run("Go").result).status, "done");
  assertEquals(reviews, ["prompt: user Go"]);
});

Deno.test("input: steering is reviewed once per message, in order, and a refusal rejects send()", async () => {
  const reviews: string[] = [];
  const errors: unknown[] = [];
  const slowFirst: Middleware = {
    async input({ source, messages }, next) {
      const slow = source === "steering" && lines(messages).includes("user one");
      if (slow) await new Promise((resolve) => setTimeout(resolve, 1));
      return await next();
    },
  };
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    async execute() {
      const sent = [run.send("one"), run.send("bad"), run.send("two")];
      for (const each of await Promise.allSettled(sent)) if (each.status === "rejected") errors.push(each.reason);
      return "Worked.";
    },
  });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const run: RunHandle<unknown> = agent({ model, tools: [work], use: [recordInput(reviews), slowFirst, guard] }).run(
    "go",
  );
  const events = await Array.fromAsync(run.events);
  const { messages } = await run.result;
  assertEquals(reviews, ["prompt: user go", "steering: user one", "steering: user bad", "steering: user two"]);
  assertEquals(lines(messages), ["user GO", "call work", "ok Worked.", "user ONE", "user TWO", "assistant Done."]);
  const injected = events.flatMap((event) => event.type === "steering.injected" ? event.messages.map(textOf) : []);
  assertEquals(injected, ["ONE", "TWO"]);
  assertEquals(errors.map((error) => error instanceof SessionError && error.code), ["refused"]);
});

Deno.test("input: a refused reply leaves the run paused as it was", async () => {
  const { store, saved } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] }, "Done.");
  const assistant = agent({ model, tools: [pay], use: [guard] });
  const { questions } = await assistant.run({ prompt: "go", session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  const count = saved.length;
  for (const answer of [{ type: "reply", text: "bad" }, { type: "deny", reason: "bad" }] as const) {
    const { status, error } = await assistant.resume({ session: "s", store, answers: [{ callId, ...answer }] }).result;
    assertEquals([status, error instanceof SessionError && error.code], ["failed", "refused"]);
  }
  assertEquals(saved.length, count);
  const answers = [{ callId, type: "deny", reason: "no money" }] as const;
  const { messages } = await assistant.resume({ session: "s", store, answers }).result;
  assertStringIncludes(lines(messages).join("\n"), "NO MONEY");
});

Deno.test("input: events of a review before the run continues follow run.started, and those of a refusal are dropped", async () => {
  const { store } = recordingStore();
  const noisy: Middleware = {
    input(ctx, next) {
      ctx.emit({ type: "notice", text: ctx.source });
      return next();
    },
  };
  const assistant = agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay], use: [noisy, guard] });
  const { questions } = await assistant.run({ prompt: "go", session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  const refusedRun = assistant.resume({ session: "s", store, answers: [{ callId, type: "reply", text: "bad" }] });
  assertEquals(await Array.fromAsync(refusedRun.events), []);
  const run = assistant.resume({ session: "s", store, answers: [{ callId, type: "reply", text: "ok" }] });
  const types = (await Array.fromAsync(run.events)).slice(0, 3).map(({ type }) => type);
  assertEquals(types, ["run.started", "session.opened", "notice"]);
});

/** A served run whose tool waits. */
async function working(use: readonly Middleware[], apps?: (made: () => ReturnType<typeof agent>) => readonly App[]) {
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const made = () => agent({ model, tools: [work], use });
  const [here = serve(made()), there = here] = apps?.(made) ?? [];
  const pieces = piecesOf(await post(here, "/runs", { prompt: "go" }));
  const begun = await pieces.until(`"tool.started"`);
  const { run, session } = first("run.started", framesOf(begun));
  const rest = async () => {
    gate.resolve("Worked.");
    return begun + await pieces.rest();
  };
  return { here, there, run, session, model, rest };
}

Deno.test("input: serve() answers a refused message with 403, and delivers the others as they were changed", async () => {
  const { here, run, model, rest } = await working([guard]);
  const refusal = { code: "refused", message: `Cannot send a message to run "${run}": It is bad.` };
  assertEquals(await refusalOf(post(here, `/runs/${run}/messages`, { text: "bad" })), [403, refusal]);
  assertEquals((await post(here, `/runs/${run}/messages`, { text: "fine" })).status, 202);
  await rest();
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user GO", "call work", "ok Worked.", "user FINE"]);
});

Deno.test("input: a message to a run of another process is reviewed before it is stored", async () => {
  const among = shared();
  const { there, run, session, model, rest } = await working(
    [guard],
    (made) => [processOf(among, made()).app, processOf(among, made()).app],
  );
  const refusal = { code: "refused", message: `Cannot send a message to run "${run}": It is bad.` };
  assertEquals(await refusalOf(post(there, `/runs/${run}/messages`, { text: "bad" })), [403, refusal]);
  assertEquals((await post(there, `/runs/${run}/messages`, { text: "fine" })).status, 202);
  const { mail = [] } = await among.store.load(session) ?? {};
  assertEquals(mail.flatMap((each) => each.type === "message" ? [textOf(each.message)] : []), ["FINE"]);
  await rest();
  assertEquals(lines(model.requests[1]?.messages ?? []), ["user GO", "call work", "ok Worked.", "user FINE"]);
});

Deno.test("input: context is kept before its message, and is not in the event", async () => {
  const { here, run, model, rest } = await working([checked]);
  assertEquals((await post(here, `/runs/${run}/messages`, { text: "fine" })).status, 202);
  const events = framesOf(await rest());
  assertEquals(lines(first("steering.injected", events).messages), ["user fine"]);
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "input It is a prompt.",
    "user go",
    "call work",
    "ok Worked.",
    "input It is a steering.",
    "user fine",
  ]);
});

Deno.test("input: the context of a message to a run of another process is delivered there, masked", async () => {
  const among = shared();
  const { there, run, session, model, rest } = await working(
    [redact({ secrets: ["steering"] }), checked],
    (made) => [processOf(among, made()).app, processOf(among, made()).app],
  );
  for (let index = 0; index < 10; index++) {
    assertEquals((await post(there, `/runs/${run}/messages`, { text: "fine" })).status, 202);
  }
  assertEquals((await post(there, `/runs/${run}/messages`, { text: "fine" })).status, 409);
  const { mail = [] } = await among.store.load(session) ?? {};
  assertEquals(mail.length, 10);
  assertEquals(JSON.stringify(mail).includes("steering"), false);
  const events = framesOf(await rest());
  assertEquals(lines(first("steering.injected", events).messages), Array(10).fill("user fine"));
  const delivered = Array.from({ length: 10 }, () => ["input It is a [redacted].", "user fine"]).flat();
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "input It is a prompt.",
    "user go",
    "call work",
    "ok Worked.",
    ...delivered,
  ]);
});

Deno.test("input: a reply takes no context", async () => {
  const { store } = recordingStore();
  const assistant = agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay], use: [checked] });
  const { questions } = await assistant.run({ prompt: "go", session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  const answers = [{ callId, type: "reply", text: "ok" }] as const;
  const { status, error } = await assistant.resume({ session: "s", store, answers, onError: () => {} }).result;
  assertEquals(status, "failed");
  const expected = "expected one user message without context";
  assertStringIncludes(String(error), `Cannot change the messages of a reply at input in "checked": ${expected}`);
});

Deno.test("input: serve() answers a refused reply with 403, and the run stays paused", async () => {
  const app: App = serve(agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay], use: [guard] }));
  const events = framesOf(await (await post(app, "/runs", { prompt: "go" })).text());
  const { run, session } = first("run.started", events);
  const [{ callId = "" } = {}] = first("run.paused", events).questions;
  const answerWith = (text: string) =>
    post(app, `/sessions/${session}/answers`, { answers: [{ type: "reply", callId, text }] });
  const refusal = { code: "refused", message: `Cannot resume run "${run}": It is bad.` };
  assertEquals(await refusalOf(answerWith("bad")), [403, refusal]);
  const text = await (await answerWith("fine")).text();
  assertEquals([text.includes("FINE"), framesOf(text).at(-1)?.type], [true, "run.finished"]);
});

Deno.test("input: redact() masks a steered secret in the event, the transcript, the stored session and the stream", async () => {
  const { here, run, session, model, rest } = await working([redact({ secrets: ["hunter2"] })]);
  assertEquals((await post(here, `/runs/${run}/messages`, { text: "Use hunter2" })).status, 202);
  const stream = await rest();
  assertEquals(first("steering.injected", framesOf(stream)).messages.map(textOf), ["Use [redacted]"]);
  const shown = await (await here.request(`/sessions/${session}`)).text();
  assertStringIncludes(shown, "Use [redacted]");
  for (const text of [stream, shown, JSON.stringify(model.requests.map(({ messages }) => messages))]) {
    assertEquals(text.includes("hunter2"), false);
  }
});

Deno.test("input: redact() masks history, the prompt and a reply before they are stored", async () => {
  const { store, saved } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] }, "Done.");
  const assistant = agent({ model, tools: [pay], use: [redact({ secrets: ["hunter2"] })] });
  const messages = [user("First hunter2"), answer("Yes."), user("Second hunter2")];
  const { questions } = await assistant.run({ messages, session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  await assistant.resume({ session: "s", store, answers: [{ callId, type: "reply", text: "It is hunter2" }] }).result;
  const accepted = saved.filter(({ run }) => run?.position.at !== "incoming");
  assertEquals(JSON.stringify(accepted).includes("hunter2"), false);
  assertEquals(lines(saved.at(-1)?.messages ?? []).slice(0, 3), [
    "user First [redacted]",
    "assistant Yes.",
    "user Second [redacted]",
  ]);
});

Deno.test("input: send() rejects with the error of a hook that throws, and the run continues", async () => {
  const failing: Middleware = {
    input: ({ source }, next) => source === "steering" ? Promise.reject(new Error("broken")) : next(),
  };
  const model = scripted({
    text: "Done.",
    async before() {
      await assertRejects(() => run.send("Hi"), Error, "broken");
    },
  });
  const run: RunHandle<unknown> = agent({ model, use: [failing] }).run("Go");
  const { status, messages } = await run.result;
  assertEquals([status, lines(messages)], ["done", ["user Go", "assistant Done."]]);
});

Deno.test("session hooks receive the prompt as it arrived, and none once it is accepted", async () => {
  const seen: unknown[] = [];
  const watch: Middleware = {
    session(ctx, next) {
      seen.push(ctx.prompt && textOf(ctx.prompt));
      return next();
    },
  };
  const { store } = recordingStore();
  const model = scripted({ calls: [["pay", {}]] }, "Done.");
  const assistant = agent({ model, tools: [pay], use: [watch, guard] });
  const { questions } = await assistant.run({ prompt: "go", session: "s", store }).result;
  const [{ callId = "" } = {}] = questions;
  await assistant.resume({ session: "s", store, answers: [{ callId, type: "approve" }] }).result;
  assertEquals(seen, ["go", undefined]);
});
