/**
 * `human()`, and then `terminal()`, which asks its questions in a terminal.
 */
import { agent, allow, ask, deny, type Middleware, tool } from "@jizai/jizai";
import { type CallQuestion, human, type HumanAnswer } from "@jizai/jizai/middleware/human";
import { terminal } from "@jizai/jizai/middleware/terminal";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { remove } from "../support/asking.ts";
import { settled } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";

/** Asks about every path that `questions` names. */
function guard(questions: Readonly<Record<string, string>>): Middleware {
  return {
    name: "guard",
    async approval(ctx, next) {
      const { path } = z.object({ path: z.string() }).parse(ctx.input);
      const question = questions[path];
      return question === undefined ? await next() : ask(question);
    },
  };
}

/** An agent that removes `paths` in one batch. */
function remover(use: readonly Middleware[], ...paths: readonly string[]) {
  return agent({
    model: scripted({ calls: paths.map((path) => ["remove", { path }] as const) }, "Done."),
    tools: [remove],
    use,
  });
}

/** A person who records the questions. */
function recordingPerson(given: HumanAnswer | ((question: CallQuestion) => HumanAnswer)) {
  const asked: unknown[] = [];
  const person = human((question) => {
    asked.push([...question.questions, question.input]);
    return typeof given === "function" ? given(question) : given;
  });
  return { asked, person };
}

Deno.test("human() passes the question, the tool, the input and the call", async () => {
  const seen: unknown[] = [];
  const person = human((question, { signal }) => {
    seen.push(question, signal.aborted);
    return true;
  });
  const edit: Middleware = { name: "edit", tool: (_, next) => next({ input: { path: "b" } }) };
  const { messages } = await remover([person, edit], "a").run("Go").result;
  assertEquals(seen, [{
    callId: "call_1",
    tool: "remove",
    input: { path: "b" },
    questions: ["Run remove?"],
    call: { id: "call_1", name: "remove", input: { path: "a" } },
  }, false]);
  assertEquals(lines(messages), ["user Go", "call remove", "ok Removed b.", "assistant Done."]);
});

Deno.test("human() asks only if an inner guard or the tool asks", async () => {
  const { asked, person } = recordingPerson(true);
  const quiet = tool({ name: "quiet", description: "", input: z.object({}), execute: () => "Done." });
  const assistant = agent({ model: scripted({ calls: [["quiet", {}]] }, "Done."), tools: [quiet], use: [person] });
  assertEquals((await assistant.run("Go").result).status, "done");
  assertEquals(asked, []);
});

Deno.test("human() sends the person's denial and reason to the model", async () => {
  const { person } = recordingPerson(({ callId }) =>
    callId === "call_1" ? false : { allow: false, reason: "I need b." }
  );
  const { messages } = await remover([person], "a", "b").run("Go").result;
  assertEquals(lines(messages), [
    "user Go",
    "call remove remove",
    "denied A person said no.",
    "denied I need b.",
    "assistant Done.",
  ]);
});

Deno.test("human() accepts only true as a yes", async () => {
  const answers = ["yes", 1, { allow: "true" }, {}, null, undefined].map((answer) => JSON.stringify(answer) ?? "");
  for (const answer of answers) {
    const person = human(() => answer === "" ? undefined : JSON.parse(answer));
    const { messages } = await remover([person], "a").run("Go").result;
    assertEquals(lines(messages)[2]?.split(" ")[0], "denied", answer);
  }
});

Deno.test("human() does not ask about an inner denial", async () => {
  const { asked, person } = recordingPerson(true);
  const never: Middleware = { name: "never", approval: () => Promise.resolve(deny("Never.")) };
  const { messages } = await remover([person, never], "a").run("Go").result;
  assertEquals(lines(messages), ["user Go", "call remove", "denied Never.", "assistant Done."]);
  assertEquals(asked, []);
});

Deno.test("human() does not answer the question of an outer guard: the run pauses", async () => {
  const { asked, person } = recordingPerson(true);
  const { status, questions } = await remover([guard({ a: "Sure?" }), person], "a").run("Go").result;
  assertEquals([status, questions.map(({ questions }) => questions)], ["paused", [["Sure?"]]]);
  assertEquals(asked, [["Run remove?", { path: "a" }]]);
});

Deno.test("human() runs the edited input, and asks about it once", async () => {
  const { asked, person } = recordingPerson({ allow: true, input: { path: "b" } });
  const { messages } = await remover([person], "a").run("Go").result;
  assertEquals(asked, [["Run remove?", { path: "a" }]]);
  assertEquals(lines(messages), ["user Go", "call remove", "ok Removed b.", "assistant Done."]);
});

Deno.test("human() asks again if a guard asks a new question about the edited input", async () => {
  const { asked, person } = recordingPerson(({ input }) =>
    JSON.stringify(input) === `{"path":"a"}` ? { allow: true, input: { path: "/" } } : false
  );
  const { messages } = await remover([person, guard({ "/": "All of it?" })], "a").run("Go").result;
  assertEquals(asked, [["Run remove?", { path: "a" }], ["All of it?", "Run remove?", { path: "/" }]]);
  assertEquals(lines(messages), ["user Go", "call remove", "denied A person said no.", "assistant Done."]);
});

Deno.test("human() passes the edited input to every guard", async () => {
  const { person } = recordingPerson({ allow: true, input: { path: "secret" } });
  const never: Middleware = {
    name: "never",
    approval: async (ctx, next) => JSON.stringify(ctx.input).includes("secret") ? deny("Never.") : await next(),
  };
  for (const use of [[person, never], [never, person]]) {
    const { messages } = await remover(use, "a").run("Go").result;
    assertEquals(lines(messages), ["user Go", "call remove", "denied Never.", "assistant Done."]);
  }
});

Deno.test("human() reports an invalid edited input, and runs nothing", async () => {
  const { asked, person } = recordingPerson({ allow: true, input: { path: 1 } });
  const { messages } = await remover([person], "a").run("Go").result;
  assertEquals(asked.length, 1);
  assertEquals(lines(messages)[2]?.startsWith("error The input of remove is not valid"), true);
});

Deno.test("human() denies the call if `ask` throws, and asks about the next one", async () => {
  const errors: unknown[] = [];
  const broken = new Error("no line");
  const person = human(({ callId }) => {
    if (callId === "call_1") throw broken;
    return true;
  });
  const onError = (error: unknown) => errors.push(error);
  const { messages } = await remover([person], "a", "b").run({ prompt: "Go", onError }).result;
  assertEquals(lines(messages), [
    "user Go",
    "call remove remove",
    "denied A guard failed.",
    "ok Removed b.",
    "assistant Done.",
  ]);
  assertEquals(errors, [broken]);
});

Deno.test("human() asks one question at a time, in order, over all runs", async () => {
  const log: string[] = [];
  const person = human(async ({ input }) => {
    const { path } = z.object({ path: z.string() }).parse(input);
    log.push(`asks ${path}`);
    await settled();
    log.push(`answered ${path}`);
    return true;
  });
  const runs = ["a", "b", "c"].map((path) => remover([person], path).run("Go").result);
  assertEquals((await Promise.all(runs)).map(({ status }) => status), ["done", "done", "done"]);
  assertEquals(log, ["asks a", "answered a", "asks b", "answered b", "asks c", "answered c"]);
});

Deno.test("human() does not ask for a run that was stopped while it waited", async () => {
  const asked: unknown[] = [];
  const reached = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<boolean>();
  const person = human(({ input }) => {
    asked.push(input);
    reached.resolve();
    return answer.promise;
  });
  const first = remover([person], "a").run("Go");
  await reached.promise;
  const second = remover([person], "b").run("Go");
  const third = remover([person], "c").run("Go");
  for await (const event of second.events) if (event.type === "tool.started") second.stop();
  answer.resolve(true);
  const results = await Promise.all([first.result, second.result, third.result]);
  assertEquals(results.map(({ status }) => status), ["done", "aborted", "done"]);
  assertEquals(asked, [{ path: "a" }, { path: "c" }]);
});

Deno.test("human() aborts the signal when the run is stopped, and ignores a late yes", async () => {
  const log: string[] = [];
  const asked = Promise.withResolvers<void>();
  const run = remover([
    human((_, { signal }) => {
      asked.resolve();
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          log.push("aborted");
          resolve(true);
        })
      );
    }),
  ], "a").run("Go");
  await asked.promise;
  run.stop();
  const { status, messages } = await run.result;
  assertEquals([status, ...lines(messages)], [
    "aborted",
    "user Go",
    "call remove",
    "aborted Not run: the run was stopped.",
  ]);
  assertEquals(log, ["aborted"]);
});

Deno.test("human() denies the call if the answer comes after the timeout", async () => {
  const late = new AbortController();
  const person = human(() => {
    late.abort(new DOMException("Too late", "TimeoutError"));
    return true;
  });
  const patience: Middleware = { name: "patience", approval: (_, next) => next({ signal: late.signal }) };
  const { messages } = await remover([patience, person], "a").run("Go").result;
  assertEquals(lines(messages), ["user Go", "call remove", "denied A guard failed.", "assistant Done."]);
});

Deno.test("human() asks again after a pause about unanswered calls", async () => {
  const { asked, person } = recordingPerson(true);
  let pauses = 1;
  const pausing: Middleware = {
    name: "pausing",
    async tool(ctx, next) {
      if (ctx.call.id === "call_2" && pauses-- > 0) throw ctx.run.pause("Wait.");
      return await next();
    },
  };
  const assistant = remover([pausing, person], "a", "b");
  const { status, session } = await assistant.run("Go").result;
  const { messages } = await assistant.resume({ session, answers: [] }).result;
  assertEquals(status, "paused");
  assertEquals(asked, [
    ["Run remove?", { path: "a" }],
    ["Run remove?", { path: "a" }],
    ["Run remove?", { path: "b" }],
  ]);
  assertEquals(lines(messages), [
    "user Go",
    "call remove remove",
    "ok Removed a.",
    "ok Removed b.",
    "assistant Done.",
  ]);
});

Deno.test("human() answers a question of permissions(), and lets an allowed call run", async () => {
  const { asked, person } = recordingPerson(true);
  const picky = tool({
    name: "picky",
    description: "",
    input: z.object({ n: z.number() }),
    ask: ({ n }) => n > 1,
    execute: ({ n }) => String(n),
  });
  const assistant = agent({
    model: scripted({ calls: [["picky", { n: 1 }], ["picky", { n: 2 }]] }, "Done."),
    tools: [picky],
    use: [
      { name: "fine", approval: async (_, next) => (await next()).type === "ask" ? ask("Fine?") : allow() },
      person,
    ],
  });
  const { status, questions } = await assistant.run("Go").result;
  assertEquals([status, questions], ["done", []]);
  assertEquals(asked, [["Run picky?", { n: 2 }]]);
});

/** Returns what the terminal shows, and the result of the call after `typed`. */
async function answered(typed: string | undefined, path = "a") {
  const shown: unknown[] = [];
  const askLine = (text: string) => {
    shown.push(text);
    return Promise.resolve(typed);
  };
  const assistant = agent({
    model: scripted({ calls: [["remove", { path }]] }, "Done."),
    tools: [remove],
    use: [human(terminal(askLine))],
  });
  const { messages } = await assistant.run("Go").result;
  return { shown, result: lines(messages)[2] };
}

Deno.test("terminal() shows the question, the tool and its input", async () => {
  const { shown } = await answered("y");
  assertEquals(shown, ['Run remove?\nremove {\n  "path": "a"\n}\n[y/N, or a reason] ']);
});

Deno.test("terminal() allows on a yes and on nothing else", async () => {
  for (const yes of ["y", "Y", "yes", " YES "]) assertEquals((await answered(yes)).result, "ok Removed a.");
  for (const no of ["", "n", "No", "  ", undefined]) {
    assertEquals((await answered(no)).result, "denied A person said no.");
  }
});

Deno.test("terminal() uses other input as the reason for the model", async () => {
  assertEquals((await answered("yes, but not now")).result, "denied yes, but not now");
});

Deno.test("terminal() escapes control characters in the question", async () => {
  const { shown } = await answered("y", "a\u001b[2K\u009b\u202e\nb");
  assertEquals(shown, [
    'Run remove?\nremove {\n  "path": "a\\u001b[2K\\u{9b}\\u{202e}\\nb"\n}\n[y/N, or a reason] ',
  ]);
  const question = "Sure?\n\u001b[8m";
  const echo = terminal((text) => Promise.resolve(text));
  const signal = new AbortController().signal;
  assertEquals(await echo({ questions: [question] }, { signal }), {
    allow: false,
    reason: "Sure?\\u{a}\\u{1b}[8m\n[y/N, or a reason]",
  });
});

Deno.test("terminal() denies a call without a terminal", async () => {
  const signal = new AbortController().signal;
  assertEquals(await terminal()({ questions: ["Sure?"] }, { signal }), { allow: false });
});

Deno.test("terminal() stops asking when the run is stopped", async () => {
  const asked = Promise.withResolvers<void>();
  const askLine = (_: string, { signal }: { readonly signal: AbortSignal }) => {
    asked.resolve();
    return new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const model = scripted({ calls: [["remove", { path: "a" }]] });
  const run = agent({ model, tools: [remove], use: [human(terminal(askLine))] }).run("Go");
  await asked.promise;
  run.stop();
  assertEquals((await run.result).status, "aborted");
});
