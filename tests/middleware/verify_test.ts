import { agent, continueWith, type Middleware, tool } from "@jizai/jizai";
import { verify, type VerifyOptions } from "@jizai/jizai/middleware/verify";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Nothing." });
const isGood = (text: string) => text === "Good." || `"${text}" is not good.`;

/** Returns the result of a run, and the messages for the person. */
async function outcome(use: readonly Middleware[], steps: readonly ScriptedAnswer[], continuations = 8) {
  const model = scripted(...steps);
  const run = agent({ model, tools: [look], use, limits: { continuations } }).run("Go");
  const notices: string[] = [];
  for await (const event of run.events) if (event.type === "notice") notices.push(event.text);
  const { status, messages } = await run.result;
  model.done();
  return [status, ...lines(messages), ...notices];
}

const checked = (steps: readonly ScriptedAnswer[], options?: VerifyOptions) =>
  outcome([verify(isGood, options)], steps);

Deno.test("verify() accepts a good answer", async () => {
  assertEquals(await checked(["Good."]), ["done", "user Go", "assistant Good."]);
  assertEquals(await outcome([verify(() => undefined)], ["Bad."]), ["done", "user Go", "assistant Bad."]);
});

Deno.test("verify() sends the message back until the answer is good", async () => {
  assertEquals(await checked(["Bad.", "Worse.", "Good."]), [
    "done",
    "user Go",
    "assistant Bad.",
    'verify "Bad." is not good.',
    "assistant Worse.",
    'verify "Worse." is not good.',
    "assistant Good.",
  ]);
});

Deno.test("verify() accepts the answer after the last attempt, and emits a notice", async () => {
  assertEquals(await checked(["Bad.", "Worse.", "Worst."]), [
    "done",
    "user Go",
    "assistant Bad.",
    'verify "Bad." is not good.',
    "assistant Worse.",
    'verify "Worse." is not good.',
    "assistant Worst.",
    "The answer was not verified.",
  ]);
  assertEquals(await checked(["Bad."], { attempts: 0 }), [
    "done",
    "user Go",
    "assistant Bad.",
    "The answer was not verified.",
  ]);
});

Deno.test("verify() finishes if the run may not continue", async () => {
  assertEquals(await outcome([verify(isGood, { attempts: 5 })], ["Bad.", "Worse."], 1), [
    "done",
    "user Go",
    "assistant Bad.",
    'verify "Bad." is not good.',
    "assistant Worse.",
    "The answer was not verified.",
  ]);
});

Deno.test("verify() counts its attempts over the whole run, also with calls in between", async () => {
  const calls: ScriptedAnswer = { calls: [["look", {}]] };
  assertEquals(await checked(["Bad.", calls, "Worse.", calls, "Worst."]), [
    "done",
    "user Go",
    "assistant Bad.",
    'verify "Bad." is not good.',
    "call look",
    "ok Nothing.",
    "assistant Worse.",
    'verify "Worse." is not good.',
    "call look",
    "ok Nothing.",
    "assistant Worst.",
    "The answer was not verified.",
  ]);
});

Deno.test("verify() counts from zero in every run of a session", async () => {
  const model = scripted("Bad.", "Good.", "Bad.", "Good.");
  const assistant = agent({ model, use: [verify(isGood, { attempts: 1 })] });
  await assistant.run({ prompt: "One", session: "s" }).result;
  await assistant.run({ prompt: "Two", session: "s" }).result;
  model.done();
});

Deno.test("verify() checks only if inner hooks finish", async () => {
  const seen: string[] = [];
  const check = (text: string) => {
    seen.push(text);
    return isGood(text);
  };
  const more: Middleware = {
    name: "more",
    stop: async (ctx, next) => ctx.continuations === 0 ? continueWith("More.") : await next(),
  };
  assertEquals(await outcome([verify(check), more], ["Bad.", "Good."]), [
    "done",
    "user Go",
    "assistant Bad.",
    "stop More.",
    "assistant Good.",
  ]);
  assertEquals(seen, ["Good."]);
});

Deno.test("two verify() with two names have separate attempts", async () => {
  const isShort = (text: string) => text.length < 6 || "Be brief.";
  const isPolite = async (text: string) => await Promise.resolve(text.includes("!") || "Be polite.");
  const use = [
    verify(isPolite, { name: "polite", attempts: 1 }),
    verify(isShort, { name: "short", attempts: 1 }),
  ];
  assertEquals(await outcome(use, ["A long one", "Short", "Good!"]), [
    "done",
    "user Go",
    "assistant A long one",
    "short Be brief.",
    "assistant Short",
    "polite Be polite.",
    "assistant Good!",
  ]);
});

Deno.test("verify() passes the context to `check`", async () => {
  const counts: number[] = [];
  await outcome([verify((_, { transcript, continuations }) => {
    counts.push(transcript.length, continuations);
    return true;
  })], [{ calls: [["look", {}]] }, "Good."]);
  assertEquals(counts, [4, 0]);
});

Deno.test("verify() fails the run if the check throws", async () => {
  const broken = new Error("no checker");
  const use = [verify(() => {
    throw broken;
  })];
  const { status, error, messages } = await agent({ model: scripted("Good."), use }).run("Go").result;
  assertEquals([status, error, ...lines(messages)], ["failed", broken, "user Go", "assistant Good."]);
});

Deno.test("verify() throws for invalid attempts", () => {
  for (const attempts of [-1, NaN]) {
    assertThrows(
      () => verify(isGood, { attempts }),
      RangeError,
      `Cannot create verify(): \`attempts\` is ${attempts}; expected 0 or more`,
    );
  }
});
