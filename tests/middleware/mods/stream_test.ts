import { agent, type Event, reply } from "@jizai/jizai";
import { mods } from "@jizai/jizai/middleware/mods";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { command, shell } from "../../support/hooked.ts";
import { caught, hook, type Loose, type LooseHook, type ModdedOptions } from "../../support/modded.ts";

/** A run whose response passes mods. */
async function streamed(all: readonly Loose[], steps: readonly ScriptedAnswer[], options: ModdedOptions = {}) {
  const { before = [], after = [], tools = [shell()], ...rest } = options;
  const model = scripted(...steps);
  const errors: string[] = [];
  const assistant = agent({ model, tools, use: [...before, mods(all, rest), ...after] });
  const run = assistant.run({ prompt: "Hi", onError: (error) => void errors.push(String((error as Error).message)) });
  const events = await Array.fromAsync(run.events);
  const result = await run.result;
  return { model, events, result, errors, shown: shownText(events), text: textOfRun(result.messages) };
}

function shownText(events: readonly Event[]): string {
  return events.map((event) => event.type === "text.delta" ? event.text : event.type === "model.reset" ? "|" : "").join(
    "",
  );
}

function textOfRun(messages: readonly Loose[]): string {
  return messages.flatMap((message) => message.role === "assistant" ? message.parts : [])
    .map((part: Loose) => part.type === "call" ? `[${part.name} ${JSON.stringify(part.input)}]` : part.text).join("");
}

const step = (run: LooseHook, name = "guard") => hook("turn.step", run, { name });

const text: ScriptedAnswer = { text: ["Hel", "lo"] };
const call: ScriptedAnswer = { text: "Go: ", calls: [command("a", "ls")] };

Deno.test("a generator that passes on yields the chunks and reads the result", async () => {
  const chunks: Loose[] = [];
  const seen: Loose[] = [];
  const passing = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) {
      chunks.push(chunk);
      yield chunk;
    }
    seen.push(e);
  });
  const reading = step(async function* (_$, e, next) {
    const result = yield* next(e);
    seen.push(result);
    return result;
  }, "outer");
  const { shown, text: stored } = await streamed([reading, passing], [
    { reasoning: "Hm.", ...call as object },
    "Done.",
  ]);
  assertEquals([shown, stored], ["Go: Done.", 'Hm.Go: [Bash {"command":"ls"}]Done.']);
  assertEquals(chunks.slice(0, 5), [
    { kind: "thinking", index: 0, text: "Hm." },
    { kind: "text", index: 1, text: "Go: " },
    { kind: "tool", index: 2, id: "a", name: "Bash" },
    { kind: "input", index: 2, json: '{"command":"ls"}' },
    {
      kind: "stop",
      stopReason: "tool_use",
      usage: {
        ...{ input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
        model: "scripted",
      },
    },
  ]);
  const turnId = seen[0].turnId;
  assertEquals(seen[0], { turnId, index: 0, model: "scripted", messageCount: 1 });
  assertEquals([seen[1].index, seen[1].answer, seen[1].toolUses, seen[1].stopReason], [
    0,
    "Go: ",
    [{ name: "Bash", input: { command: "ls" } }],
    "tool_use",
  ]);
  assertEquals([seen[2].index, seen[2].turnId], [1, turnId]);
});

Deno.test("rewritten text is the same in deltas and transcript", async () => {
  const upper = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) {
      yield chunk.kind === "text" ? { ...chunk, text: chunk.text.toUpperCase() } : chunk;
    }
  });
  const { shown, text: stored, result } = await streamed([upper], [text]);
  assertEquals([shown, stored, result.text], ["HELLO", "HELLO", "HELLO"]);
});

Deno.test("held text is shown as it leaves the hook, and dropped text nowhere", async () => {
  const holding = step(async function* (_$, e, next) {
    let all = "";
    for await (const chunk of next(e)) {
      if (chunk.kind === "text") all += chunk.text;
      else if (chunk.kind === "stop") {
        yield { kind: "text", index: 0, text: `<${all}>` };
        yield chunk;
      }
    }
  });
  const held = await streamed([holding], [text]);
  assertEquals([held.shown, held.text, held.result.text], ["<Hello>", "<Hello>", "<Hello>"]);
  const dropping = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) if (chunk.kind !== "text") yield chunk;
  });
  const dropped = await streamed([dropping], [text]);
  assertEquals([dropped.shown, dropped.text, dropped.result.text], ["", "", ""]);
});

Deno.test("a call is held until the hook passes it on, and a dropped one is no call", async () => {
  const log: string[] = [];
  const tools = [shell({ log })];
  const dropping = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) if (chunk.kind !== "tool") yield chunk;
  });
  const dropped = await streamed([dropping], [call], { tools });
  assertEquals([log, dropped.text, dropped.result.status], [[], "Go: ", "done"]);
  assertEquals(dropped.events.some(({ type }) => type === "call.ready"), false);
  const rewriting = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) {
      yield chunk.kind === "input" ? { ...chunk, json: chunk.json.replace("ls", "pwd") } : chunk;
    }
  });
  const rewritten = await streamed([rewriting], [call, "Done."], { tools });
  assertEquals([log, rewritten.text], [["pwd"], 'Go: [Bash {"command":"pwd"}]Done.']);
  const ready = rewritten.events.flatMap((event) => event.type === "call.ready" ? [event.call] : []);
  assertEquals(ready, [{ id: "a", name: "Bash", input: { command: "pwd" } }]);
});

Deno.test("pieces of arguments that are no JSON are a malformed call", async () => {
  const log: string[] = [];
  const breaking = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) yield chunk.kind === "input" ? { ...chunk, json: "{" } : chunk;
  });
  const { result } = await streamed([breaking], [call, "Done."], { tools: [shell({ log })] });
  assertEquals([log, result.status], [[], "done"]);
});

Deno.test("chunks without next() answer without a request", async () => {
  const answering = step(async function* (_$, e) {
    yield { kind: "text", index: 0, text: "Mine" };
    return { turnId: e.turnId, index: e.index, answer: "Mine", toolUses: [], stopReason: "end_turn", usage: null };
  });
  const { shown, result, model } = await streamed([answering], []);
  assertEquals([shown, result.text, model.requests.length], ["Mine", "Mine", 0]);
});

Deno.test("a hook that answers may call a tool", async () => {
  let isFirst = true;
  const calling = step(async function* (_$, e, next) {
    if (!isFirst) return yield* next(e);
    isFirst = false;
    yield { kind: "tool", index: 0, id: "mine", name: "Bash" };
    yield { kind: "input", index: 0, json: '{"command":' };
    yield { kind: "input", index: 0, json: '"pwd"}' };
  });
  const { text: stored } = await streamed([calling], ["Done."]);
  assertEquals(stored, '[Bash {"command":"pwd"}]Done.');
});

Deno.test("a second next() sends a second request", async () => {
  const twice = step(async function* (_$, e, next) {
    const first = await next(e).result;
    return yield* next(first.answer === "no" ? { ...e, effort: "high" } : e);
  });
  const { shown, result, model } = await streamed([twice], ["no", "yes"]);
  assertEquals([shown.replace("|", ""), result.text, model.requests.length], ["yes", "yes", 2]);
  assertEquals(model.requests[1]?.options.effort, "high");
});

Deno.test("a hook chooses the model of a step by its id, and fails for one that is not known", async () => {
  const other = { ...scripted("from other"), id: "other" };
  const choosing = (model: string) =>
    step(async function* (_$, e, next) {
      return yield* next({ ...e, model });
    });
  const models = (id: string) => id === "other" ? other : undefined;
  const { result } = await streamed([choosing("other")], [], { models });
  assertEquals(result.text, "from other");
  const unknown = await streamed([choosing("none")], ["own"], { models });
  assertEquals([unknown.result.text, unknown.errors.length], ["own", 1]);
});

Deno.test("a generator that throws before next() is skipped; one that fails later leaves the rest as it is", async () => {
  const early = await streamed([
    step(async function* () {
      yield* [];
      throw new Error("early");
    }),
  ], [text]);
  assertEquals([early.shown, early.text], ["Hello", "Hello"]);
  const late = await streamed([
    step(async function* (_$, e, next) {
      for await (const chunk of next(e)) {
        yield { ...chunk, text: "J" };
        throw new Error("late");
      }
    }),
  ], [{ text: ["H", "ello"] }]);
  assertEquals([late.shown, late.text, late.errors.length], ["Jello", "Jello", 1]);
});

Deno.test("a .catch handler of a stream replays the rest, or answers", async () => {
  const replaying = caught("turn.step", async function* (_$, e, next) {
    const stream = next(e);
    yield (await stream.next()).value;
    throw new Error("late");
  }, (_$, e, next) => next(e));
  assertEquals((await streamed([replaying], [text])).shown, "Hello");
  const answering = caught("turn.step", () => {
    throw new Error("early");
  }, async function* () {
    yield { kind: "text", index: 0, text: "Instead" };
  });
  const { shown, model } = await streamed([answering], [text]);
  assertEquals([shown, model.requests.length], ["Instead", 0]);
});

for (
  const [name, broken] of [
    ["a wrong chunk", async function* () {
      yield { kind: "text", index: 0, text: 5 };
    }],
    ["no chunk", async function* () {
      yield "text";
    }],
    ["no stream", () => ({ answer: "x" })],
    ["nothing", () => undefined],
  ] as const
) {
  Deno.test(`a hook at turn.step that gives ${name} is skipped`, async () => {
    const { shown, errors } = await streamed([step(broken)], [text]);
    assertEquals([shown, errors.length], ["Hello", 1]);
  });
}

Deno.test("a plain or async function under * may return next(e)", async () => {
  for (
    const passing of [
      (_$: Loose, e: Loose, next: Loose) => next(e),
      async (_$: Loose, e: Loose, next: Loose) => await next(e),
    ]
  ) {
    const { shown, errors } = await streamed([hook("*", passing)], [text]);
    assertEquals([shown, errors], ["Hello", []]);
  }
});

Deno.test("reading a slow stream costs a hook nothing of its budget, and its own work does", async () => {
  using time = new FakeTime();
  const slow: ScriptedAnswer = {
    before: () => new Promise((resolve) => void setTimeout(resolve, 60_000)),
    text: ["Hel", "lo"],
  };
  const passing = step(async function* (_$, e, next) {
    return yield* next(e);
  });
  const patient = await advanceUntilSettled(time, streamed([passing], [slow]));
  assertEquals([patient.shown, patient.errors], ["Hello", []]);
  const working = step(async function* ($, e, next) {
    for await (const chunk of next(e)) {
      await $.clock.sleep(6_000);
      yield chunk;
    }
  });
  const late = await advanceUntilSettled(time, streamed([working], [text]));
  assertEquals([late.shown, late.errors.length], ["Hel", 1]); // the piece that it held is lost with it
});

Deno.test("an answer of an inner middleware passes as chunks", async () => {
  const seen: string[] = [];
  const looking = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) {
      seen.push(chunk.kind);
      yield chunk;
    }
  });
  const inner = { name: "inner", model: () => Promise.resolve(reply("Cached")) };
  const { shown, result } = await streamed([looking], [], { after: [inner] });
  assertEquals([shown, result.text, seen], ["Cached", "Cached", ["text", "stop"]]);
});

Deno.test("thinking that a hook rewrites is shown, and the original is kept", async () => {
  const hiding = step(async function* (_$, e, next) {
    for await (const chunk of next(e)) yield chunk.kind === "thinking" ? { ...chunk, text: "..." } : chunk;
  });
  const { events, text: stored } = await streamed([hiding], [{ reasoning: "secret", text: "Hi" }]);
  const shown = events.flatMap((event) => event.type === "reasoning.delta" ? [event.text] : []);
  assertEquals([shown, stored], [["..."], "secretHi"]);
});

Deno.test("the response of a request that fails is not shown, and its retry is", async () => {
  const passing = step(async function* (_$, e, next) {
    return yield* next(e);
  });
  const { retry } = await import("@jizai/jizai/middleware/retry");
  const { ModelError } = await import("@jizai/jizai");
  const failing: ScriptedAnswer = { text: "Broken", error: new ModelError("cut", { recoverable: true }) };
  for (const place of ["before", "after"] as const) {
    const { result, shown } = await streamed([passing], [failing, "Whole"], {
      [place]: [retry({ delay: 1, afterText: true })],
    });
    assertEquals([result.text, shown.split("|").at(-1)], ["Whole", "Whole"]);
  }
});
