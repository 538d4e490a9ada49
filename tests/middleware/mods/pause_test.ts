import { agent, type Event, memory, type Middleware, type PersonAnswer } from "@jizai/jizai";
import { mods } from "@jizai/jizai/middleware/mods";
import { classic } from "@jizai/jizai/middleware/mods/classic";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { command, shell } from "../../support/hooked.ts";
import { caught, hook, type Loose, type LooseHook, modded, ran, reports } from "../../support/modded.ts";
import { lines } from "../../support/transcript_lines.ts";

/** Creates agents that share a store: each has mods and a model with answers of its own. */
function agents(all: readonly Loose[], inner: readonly Middleware[] = []) {
  const store = memory();
  const errors: string[] = [];
  const onError = (error: unknown) => void errors.push((error as Error).message);

  function made(answers: readonly ScriptedAnswer[]) {
    const model = scripted(...answers);
    return { model, assistant: agent({ model, tools: [shell()], use: [mods(all, { ask: true }), ...inner] }) };
  }

  async function outcomeOf(handle: ReturnType<ReturnType<typeof made>["assistant"]["run"]>, left: () => number) {
    const events = await Array.fromAsync(handle.events);
    const { status, reason, messages, questions } = await handle.result;
    const asked = questions.map((question) => question.questions).flat();
    return { status, reason, asked, shown: shownText(events), lines: lines(messages.slice(1)), errors, left: left() };
  }

  return {
    run(...answers: readonly ScriptedAnswer[]) {
      const { model, assistant } = made(answers);
      return outcomeOf(assistant.run({ prompt: "Hi", session: "s", store, onError }), () => model.left);
    },
    resume(reply: string, ...answers: readonly ScriptedAnswer[]) {
      const { model, assistant } = made(answers);
      const replies: PersonAnswer[] = [{ type: "reply", text: reply }];
      return outcomeOf(assistant.resume({ session: "s", store, answers: replies, onError }), () => model.left);
    },
  };
}

function shownText(events: readonly Event[]): string {
  return events.map((event) => event.type === "text.delta" ? event.text : event.type === "model.reset" ? "|" : "").join(
    "",
  );
}

const step = (run: LooseHook, name = "guard") => hook("turn.step", run, { name });

const asking = step(async function* ($, e, next) {
  const reply = await $.ui.ask("Really?");
  if (reply === "Yes") return yield* next(e);
  yield { kind: "text", index: 0, text: `They said ${reply}.` };
  return {};
});

Deno.test("$.ui.ask at turn.step pauses the run before the request, and a new agent continues with the reply", async () => {
  for (const [reply, line, left] of [["Yes", "assistant Hello!", 0], ["No", "assistant They said No.", 1]] as const) {
    const { run, resume } = agents([asking]);
    const first = await run("Early.");
    assertEquals([first.status, first.asked, first.shown, first.left], ["paused", ["Really?"], "", 1]);
    const second = await resume(reply, "Hello!");
    assertEquals([second.status, second.lines, second.left, second.errors], ["done", [line], left, []]);
  }
});

Deno.test("a question after the response pauses the run, and the request is made again with the reply", async () => {
  const replies: string[] = [];
  const { run, resume } = agents([step(async function* ($, e, next) {
    const result = await next(e).result;
    replies.push(await $.ui.ask("Show it?"));
    yield { kind: "text", index: 0, text: "Shown." };
    return result;
  })]);
  const first = await run("Early.");
  assertEquals([first.status, first.asked, first.shown, first.lines], ["paused", ["Show it?"], "", []]);
  const second = await resume("Yes", "Late.");
  assertEquals([second.status, second.lines, replies, second.errors], ["done", ["assistant Shown."], ["Yes"], []]);
});

Deno.test("no hook at turn.step hides a question: neither the hook itself, nor its handler, nor an outer hook", async () => {
  async function* hiding(): AsyncGenerator<Loose> {
    yield { kind: "text", index: 0, text: "Hidden." };
    return {};
  }
  async function* trying($: Loose, e: Loose, next: Loose): AsyncGenerator<Loose> {
    try {
      await $.ui.ask("Really?");
    } catch {
      yield* next(e);
    }
    yield* hiding();
  }
  async function* outer(_$: Loose, e: Loose, next: Loose): AsyncGenerator<Loose> {
    try {
      return yield* next(e);
    } catch {
      return yield* hiding();
    }
  }
  const throwing = ($: Loose) => $.ui.ask("Really?");
  for (const all of [[step(trying)], [caught("turn.step", throwing, hiding)], [step(outer, "outer"), asking]]) {
    const { status, asked, shown, left, errors } = await agents(all).run("Early.");
    assertEquals([status, asked, shown, left, errors], ["paused", ["Really?"], "", 1, []]);
  }
});

Deno.test("no hook at turn.step hides that an inner middleware ends or pauses the run", async () => {
  const hiding = step(async function* (_$, e, next) {
    try {
      return yield* next(e);
    } catch {
      yield { kind: "text", index: 0, text: "Hidden." };
      return {};
    }
  });
  // deno-lint-ignore require-yield -- it fails before it yields
  const replacing = step(async function* (_$, e, next) {
    await next(e).result.catch(() => {});
    throw new Error("broken");
  });
  const ending: Middleware = { name: "ending", model: ({ run }) => Promise.reject(run.end("Enough", { as: "limit" })) };
  const pausing: Middleware = {
    name: "pausing",
    model: ({ run }, next) => run.answers.length > 0 ? next() : Promise.reject(run.pause("Go on?")),
  };
  for (const mod of [hiding, replacing]) {
    const ended = await agents([mod], [ending]).run("Early.");
    assertEquals([ended.status, ended.reason, ended.shown, ended.left], ["limit", "Enough", "", 1]);
    const { run, resume } = agents([mod], [pausing]);
    const paused = await run("Early.");
    assertEquals([paused.status, paused.asked, paused.shown, paused.left], ["paused", ["Go on?"], "", 1]);
    if (mod === hiding) assertEquals((await resume("Yes", "Hello!")).lines, ["assistant Hello!"]);
  }
});

/** An agent with a hook that asks at an event. It logs the replies and the runs of the tool. */
function asksAt(event: string) {
  const log: string[] = [];
  const asking = hook(event, async ($, e, next) => {
    log.push(await $.ui.ask("Really?"));
    return next(e);
  });
  return { log, assistant: modded([asking], { ask: true, classic, tools: [shell({ log })] }) };
}

Deno.test("a question is reported as no failure, at no event", async () => {
  const before = ["session.start", "prompt.submit", "turn.start", "prompt.context", "prompt.compose", "tool.describe"];
  for (const event of [...before, "turn.step", "tool.call", "tool.check", "classic.PreToolUse", "session.append"]) {
    const { log, assistant } = asksAt(event);
    const { result, errors, events } = await assistant.run().outcome;
    assertEquals([event, result.status, log, errors], [event, "paused", [], []]);
    assertEquals(events.filter(({ type }) => type === "warning"), []);
  }
});

Deno.test("a hook that asks about a call runs again with the reply, and the tool runs once", async () => {
  for (const event of ["tool.call", "tool.check", "classic.PreToolUse"]) {
    const { log, assistant } = asksAt(event);
    const { session } = (await assistant.run().outcome).result;
    const { lines, errors } = await assistant.resume(session, [{ type: "reply", text: "Yes" }]).outcome;
    assertEquals([event, lines[1], log, errors], [event, "ok ran ls", ["Yes", "ls"], []]);
  }
});

Deno.test("an error that is undefined is still reported", async () => {
  const broken = hook("tool.call", () => Promise.reject(undefined));
  assertEquals(reports(await ran([broken], { ask: true })), ['The mod "guard" failed at tool.call: undefined']);
});

Deno.test("a hook that catches its question cannot run the tool before the reply", async () => {
  const log: string[] = [];
  const trying = hook("tool.call", ($, e, next) => $.ui.ask("Really?").catch(() => next(e)));
  const handling = caught("tool.call", ($) => $.ui.ask("Really?"), (_$, e, next) => next(e));
  for (const mod of [trying, handling]) {
    const { result, errors } = await ran([mod], { ask: true, tools: [shell({ log })] });
    assertEquals([result.status, log, errors], ["paused", [], []]);
  }
});

Deno.test("a question of a hook at a call of $ pauses the run of the hook that made the call", async () => {
  const calling = hook("tool.call", async ($, e, next) => {
    await $.env.get("HOME");
    return next(e);
  }, { name: "caller" });
  const asking = hook("env.get", async ($, e, next) => {
    await $.ui.ask("Really?");
    return next(e);
  });
  const assistant = modded([calling, asking], { ask: true, calls: [command("a", "ls")] });
  const first = await assistant.run().outcome;
  assertEquals([first.result.status, first.result.questions[0]?.questions, first.errors], ["paused", ["Really?"], []]);
  const second = await assistant.resume(first.result.session, [{ type: "reply", text: "Yes" }]).outcome;
  assertEquals([second.lines[1], second.errors], ["ok ran ls", []]);
});

Deno.test("an error of a hook that has asked is still reported", async () => {
  const broken = hook("tool.call", async ($) => {
    await $.ui.ask("Really?").catch(() => {});
    throw new Error("broken");
  });
  const outcome = await ran([broken], { ask: true });
  assertEquals([outcome.result.status, reports(outcome)], ["paused", ['The mod "guard" failed at tool.call: broken']]);
});
