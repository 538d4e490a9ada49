import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import {
  agent,
  callsOf,
  type Event,
  mapTexts,
  type Middleware,
  type ModelEvent,
  reply,
  rewrite,
  tool,
  windowed,
} from "@jizai/jizai";
import type { RewriteOptions, Rewriter } from "@jizai/jizai/engine";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun } from "../support/run_events.ts";

const inputs: unknown[] = [];
const note = tool({
  name: "note",
  description: "Notes",
  input: z.object({ text: z.string(), tags: z.array(z.string()).default([]) }),
  execute: (input) => {
    inputs.push(input);
    return "Noted.";
  },
});

const secret = windowed(8, (text) => text.replaceAll("hunter2", "*"));

/** Runs one answer with these rewriters. */
async function rewritten(rewriters: RewriteOptions, step: ScriptedStep, ...inner: Middleware[]) {
  inputs.length = 0;
  const use: Middleware[] = [{ name: "rewrite", model: rewrite(rewriters) }, ...inner];
  const run = agent({ model: scripted(step, "Done."), tools: [note], use }).run("Hi");
  const events = await eventsOfRun(run);
  const { messages, ...result } = await run.result;
  return { events, reported: eventLines(events).slice(5), message: messages[1], result, inputs: [...inputs] };
}

/** Returns the joined deltas of one kind. */
function joined(events: readonly Event[], type: "text.delta" | "reasoning.delta" | "call.delta") {
  return events.map((event) => event.type === type ? event.text : "").join("");
}

Deno.test("rewrite() changes a text in its deltas and in the response, however it is split", async () => {
  const { reported, message } = await rewritten({ text: secret }, {
    text: ["It is hun", "ter", "2, and hunter", "2."],
  });
  assertEquals(reported, [
    "text.delta 1 0 I",
    "text.delta 1 0 t i",
    "text.delta 1 0 s *, an",
    "text.delta 1 0 d ",
    "text.delta 1 0 *.",
    "model.finished 1 stop 1",
    "turn.finished 1",
    "session.closed",
    "run.finished done It is *, and *. stop",
  ]);
  assertEquals(message, { role: "assistant", parts: [{ type: "text", text: "It is *, and *." }] });
});

Deno.test("rewrite() emits held text when the stream is cut", async () => {
  const cut: string[] = [];
  const keep: Rewriter = (text, at) => {
    if (at !== "more") cut.push(`${at} ${text}`);
    return at === "more" ? ["", text] : [text.toUpperCase(), ""];
  };
  const { reported, message, result } = await rewritten({ text: keep }, {
    text: ["It is ", "hunt"],
    error: new Error("cut"),
  });
  assertEquals(reported, ["text.delta 1 0 IT IS HUNT", "session.closed", "run.failed uuid The run failed. internal"]);
  assertEquals(cut, ["cut It is hunt"]);
  assertEquals([result.status, result.text], ["failed", "IT IS HUNT"]);
  assertEquals(message, { role: "assistant", parts: [{ type: "text", text: "IT IS HUNT" }] });
});

Deno.test("text that a rewriter drops when the stream is cut is lost", async () => {
  const never: Rewriter = (text, at) => at === "end" ? [text, ""] : ["", text];
  const { reported, message, result } = await rewritten({ text: never }, {
    text: ["hunt", "er"],
    error: new Error("cut"),
  });
  assertEquals(reported, ["session.closed", "run.failed uuid The run failed. internal"]);
  assertEquals([message, result.text], [undefined, ""]);
});

Deno.test("a rewriter starts over when the model is asked again", async () => {
  const calls: (readonly [string, string])[] = [];
  const spy: Rewriter = (text, at) => {
    calls.push([at, text]);
    return secret(text, at);
  };
  const retrying: Middleware = { model: (_, next) => next().catch(() => next()) };
  const use: Middleware[] = [{ name: "rewrite", model: rewrite({ text: spy }) }, retrying];
  const model = scripted({ text: "It is definitely hun", error: new Error("cut") }, { text: ["ter2 it ", "was"] });
  const run = agent({ model, use }).run("Hi");
  assertEquals(eventLines(await eventsOfRun(run)).slice(5, -3), [
    "text.delta 1 0 It is defini",
    "model.reset 1",
    "text.delta 1 0 ter",
    "text.delta 1 0 2 it was",
    "model.finished 1 stop 2",
  ]);
  assertEquals(calls, [
    ["more", "It is definitely hun"],
    ["more", "ter2 it "],
    ["more", "ter2 it was"],
    ["end", "2 it was"],
    ["end", "ter2 it was"],
  ]);
  assertEquals((await run.result).text, "ter2 it was");
});

Deno.test("rewrite() holds text of each part separately, and emits it before the next part", async () => {
  const reads: ModelEvent[][] = [
    [{ type: "reasoning", text: "hun" }],
    [{ type: "text", text: "ter2 hun" }],
    [{ type: "reasoning", text: "ter2" }],
    [{ type: "text", text: "hunter2" }],
    [{ type: "call.start", id: "a", name: "note" }, { type: "call.delta", id: "a", text: '{"text":"hun' }],
    [{ type: "call.start", id: "b", name: "note" }, { type: "call.delta", id: "b", text: '{"text":"ter2 hunter' }],
    [{ type: "call.delta", id: "a", text: 'ter2"}' }, { type: "call.delta", id: "b", text: '2"}' }],
    [{ type: "call.end", id: "b" }, { type: "call.end", id: "a" }],
    [{ type: "finish", reason: "calls" }],
  ];
  const { reported, message, events, inputs } = await rewritten({ text: secret, reasoning: secret, call: secret }, {
    reads,
  });
  assertEquals(reported.slice(0, 12), [
    "reasoning.delta 1 0 hun",
    "text.delta 1 1 ter2 hun",
    "reasoning.delta 1 2 ter2",
    'call.delta 1 a note {"te',
    'call.delta 1 b note {"text":"ter',
    'call.delta 1 a note xt":"',
    "call.delta 1 b note 2 ",
    "text.delta 1 3 *",
    'call.delta 1 b note *"}',
    "call.ready 1",
    'call.delta 1 a note *"}',
    "call.ready 1",
  ]);
  assertEquals(message, {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "hun" },
      { type: "text", text: "ter2 hun" },
      { type: "reasoning", text: "ter2" },
      { type: "text", text: "*" },
      { type: "call", id: "b", name: "note", input: { text: "ter2 *" } },
      { type: "call", id: "a", name: "note", input: { text: "*" } },
    ],
  });
  const ready = events.flatMap((event) => event.type === "call.ready" ? [event.call.input] : []);
  assertEquals([ready, inputs], [
    [{ text: "ter2 *" }, { text: "*" }],
    [{ text: "ter2 *", tags: [] }, { text: "*", tags: [] }],
  ]);
});

Deno.test("a text beside a call does not release the held text of the call", async () => {
  const reads: ModelEvent[][] = [
    [{ type: "call.start", id: "a", name: "note" }, { type: "call.delta", id: "a", text: '{"text":"hun' }],
    [{ type: "text", text: "I note." }],
    [{ type: "call.delta", id: "a", text: 'ter2"}' }, { type: "call.end", id: "a" }],
    [{ type: "finish", reason: "calls" }],
  ];
  const { events } = await rewritten({ call: secret }, { reads });
  assertEquals(joined(events, "call.delta"), '{"text":"*"}');
});

Deno.test("rewrite() changes every text of an input, and no key", async () => {
  const step: ScriptedStep = { calls: [["note", { text: "hunter2", tags: ["a", "hunter2 too"] }]] };
  const { message, inputs } = await rewritten({ call: secret }, step);
  const input = { text: "*", tags: ["a", "* too"] };
  assertEquals(message?.role === "assistant" && callsOf(message).map((call) => call.input), [input]);
  assertEquals(inputs, [input]);
  const hunter2 = { hunter2: ["hunter2", 1, null, { deep: "hunter2" }] };
  assertEquals(mapTexts(hunter2, (text) => `${text}!`), { hunter2: ["hunter2!", 1, null, { deep: "hunter2!" }] });
});

Deno.test("rewrite() also changes an answer that was not streamed", async () => {
  const inner: Middleware = { model: () => Promise.resolve(reply("It is hunter2.")) };
  const { reported } = await rewritten({ text: secret }, {}, inner);
  assertEquals(reported.slice(0, 1), ["model.finished 1 stop 0 It is *."]);
});

Deno.test("a rewriter that throws fails the run", async () => {
  const broken: Rewriter = () => {
    throw new Error("broken");
  };
  const { result } = await rewritten({ text: broken }, { text: "Hello!" });
  assertEquals([result.status, result.error instanceof Error && result.error.message], ["failed", "broken"]);
});

/** Splits `text` at pseudorandom places; the same seed gives the same places. */
function pieces(text: string, seed: number): string[] {
  const all: string[] = [];
  let state = seed;
  for (let at = 0; at < text.length;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const size = 1 + state % 7;
    all.push(text.slice(at, at + size));
    at += size;
  }
  return all;
}

Deno.test("windowed() rewrites as if it had the whole text, however it is split", () => {
  const changes: Record<string, (text: string) => string> = {
    "a word": (text) => text.replaceAll("hunter2", "[redacted]"),
    "to more of it": (text) => text.replaceAll("a", "aa"),
    "to another": (text) => text.replace(/[ab]/g, (letter) => letter === "a" ? "b" : "a"),
    "a run of any length": (text) => text.replace(/sk-\w+/g, "*"),
    "to nothing": (text) => text.replace(/\s+/g, ""),
    "all of it": (text) => text.toUpperCase(),
    nothing: (text) => text,
  };
  const text = "abba hunter2, hunter22 hunthunter2er2 sk-aaaaaaaaaaaaaaaaaaaabbbb sk-b.   aab 🔥🔥🔥 hunter".repeat(3);
  for (const [what, change] of Object.entries(changes)) {
    for (let seed = 1; seed <= 60; seed++) {
      const rewriter = windowed(8, change);
      let held = "";
      let all = "";
      for (const piece of pieces(text, seed)) {
        const [out, rest] = rewriter(held + piece, "more");
        assert(
          !/^[\uDC00-\uDFFF]/.test(out) || /[\uD800-\uDBFF]$/.test(all),
          "a character is split only where it came so",
        );
        all += out;
        held = rest;
      }
      all += rewriter(held, "end")[0];
      assertEquals(all, change(text), `${what}, ${seed}`);
    }
  }
});
