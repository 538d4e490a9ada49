import { agent, type Event, type MediaPart, type Middleware, reply, tool } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { screen, type ScreenedText, type Screening, type ScreenOptions } from "@jizai/jizai/screen";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { eventsOfRun } from "../support/run_events.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Sun." });
const pass: Screening = { type: "pass" };

/** Runs an agent whose answers are screened. */
async function screened(
  options: ScreenOptions,
  answers: readonly ScriptedAnswer[],
  { outer = [], inner = [] }: { outer?: Middleware[]; inner?: Middleware[] } = {},
) {
  const errors: unknown[] = [];
  const use = [...outer, { name: "screen", model: screen(options) }, ...inner];
  const model = scripted(...answers);
  const run = agent({ model, tools: [look], use }).run({ prompt: "Hi", onError: (error) => void errors.push(error) });
  const events = await eventsOfRun(run);
  const { messages, status, text } = await run.result;
  const message = messages.find(({ role }) => role === "assistant");
  return {
    events,
    shown: shownOf(events),
    parts: message?.role === "assistant" && message.parts,
    status,
    text,
    errors,
  };
}

const shownOf = (events: readonly Event[]) =>
  events.flatMap((event) => {
    if (event.type === "text.delta" || event.type === "reasoning.delta") return [event.text];
    if (event.type === "model.finished") return [`${event.finish} ${event.text ?? ""}`.trim()];
    return /^(call|model\.reset|warning)/.test(event.type) ? [event.type] : [];
  });

Deno.test("screen() checks the text in windows and releases what passes", async () => {
  const pieces: ScreenedText[] = [];
  const check = (piece: ScreenedText) => {
    pieces.push(piece);
    return pass;
  };
  const { shown, parts } = await screened({ window: 4, before: 3, check }, [{
    reasoning: "Hmmm, ",
    text: ["ab", "cde", "fghijk", "l", "\ud83d\ude00m"],
  }]);
  assertEquals(pieces.map(({ type, before, text }) => [type, before, text]), [
    ["reasoning", "", "Hmmm"],
    ["reasoning", "mmm", ", "],
    ["text", "", "abcd"],
    ["text", "bcd", "efgh"],
    ["text", "fgh", "ijkl"],
    ["text", "jkl", "\ud83d\ude00m"],
  ]);
  assertEquals(shown, ["Hmmm", ", ", "abcd", "efgh", "ijkl", "\ud83d\ude00m", "stop"]);
  assertEquals(parts, [{ type: "reasoning", text: "Hmmm, " }, { type: "text", text: "abcdefghijkl\ud83d\ude00m" }]);
});

Deno.test("screen() never splits a character", async () => {
  const texts: string[] = [];
  const check = ({ text }: ScreenedText) => {
    texts.push(text);
    return pass;
  };
  await screened({ window: 2, check }, [{ text: ["a\ud83d\ude00", "b\ud83d\ude00"] }]);
  assertEquals(texts.every((text) => text.isWellFormed()), true);
  assertEquals(texts.join(""), "a\ud83d\ude00b\ud83d\ude00");
});

Deno.test("screen() checks windows in parallel and releases them in order, with the calls after their text", async () => {
  const checks = new Map<string, PromiseWithResolvers<Screening>>();
  const check = ({ text }: ScreenedText) => {
    const decision = Promise.withResolvers<Screening>();
    checks.set(text, decision);
    if (checks.size === 3) { for (const key of [..."cba"]) checks.get(key)?.resolve(pass); }
    return decision.promise;
  };
  const { shown } = await screened({ window: 1, check }, [
    { text: ["a", "b", "c"], calls: [["look", {}]] },
    { text: "" },
  ]);
  assertEquals(shown, ["a", "b", "c", "call.delta", "call.ready", "calls", "empty"]);
});

Deno.test("screen() replaces text in the deltas and in the transcript", async () => {
  const check = ({ text }: ScreenedText): Screening => text === "bad " ? { type: "replace", text: "*** " } : pass;
  const { shown, parts, text } = await screened({ window: 4, check }, [{
    reasoning: "bad ",
    text: ["good", "bad go", "od"],
  }]);
  assertEquals(shown, ["*** ", "good", "*** ", "good", "stop"]);
  assertEquals(parts, [{ type: "reasoning", text: "*** " }, { type: "text", text: "good*** good" }]);
  assertEquals(text, "good*** good");
});

Deno.test("screen() drops the meta of reasoning that it replaces, because it signs the original text", async () => {
  const reads = [[{ type: "reasoning", text: "bad", meta: { signature: "s" } }], [{ type: "text", text: "ok" }], [{
    type: "finish",
    reason: "stop",
  }]] as const;
  const check = ({ text }: ScreenedText): Screening => text === "bad" ? { type: "replace", text: "***" } : pass;
  assertEquals((await screened({ window: 9, check }, [{ reads }])).parts, [
    { type: "reasoning", text: "***" },
    { type: "text", text: "ok" },
  ]);
  assertEquals((await screened({ window: 9, check: () => pass }, [{ reads }])).parts, [
    { type: "reasoning", text: "bad", meta: { signature: "s" } },
    { type: "text", text: "ok" },
  ]);
});

Deno.test("screen() cuts the response: the rest and the calls are dropped, and the request is cancelled", async () => {
  let aborted = false;
  const stopped = Promise.withResolvers<never>();
  const check = ({ text }: ScreenedText): Screening => text === "bad!" ? { type: "cut", text: " [cut]" } : pass;
  const stuck: ScriptedAnswer = {
    before: (_, signal) =>
      signal.addEventListener("abort", () => {
        aborted = true;
        stopped.reject(signal.reason);
      }),
    reads: [[{ type: "text", text: "good" }], [{ type: "text", text: "bad!more" }], stopped.promise],
  };
  const answers: readonly (readonly [ScriptedAnswer, number])[] = [
    [{ text: ["good", "bad!", "more"], calls: [["look", {}]] }, 0],
    [{ text: ["good", "bad!"] }, 0],
    [stuck, 8],
  ];
  for (const [answer, window] of answers) {
    const whole = window > 0 ? (piece: ScreenedText) => check({ ...piece, text: piece.text.slice(0, 4) }) : check;
    const { shown, parts, status, text } = await screened({ window: 4, check: whole }, [answer]);
    assertEquals(shown, ["good", " [cut]", "filter"]);
    assertEquals(parts, [{ type: "text", text: "good [cut]" }]);
    assertEquals([status, text], ["done", "good [cut]"]);
  }
  assertEquals(aborted, true);
});

Deno.test("screen() cuts the text if the check throws, or returns no decision", async () => {
  const broken = new Error("the service is down");
  const failing: readonly [ScreenOptions["check"], string][] = [
    [() => Promise.reject(broken), "Error: the service is down"],
    [() => {
      throw broken;
    }, "Error: the service is down"],
    [
      () => undefined as never,
      "TypeError: Cannot screen a text: the check returned undefined; expected pass, replace or cut",
    ],
  ];
  for (const [check, error] of failing) {
    const { shown, text, errors } = await screened({ window: 4, check }, ["good day"]);
    assertEquals(shown, ["warning", "filter"]);
    assertEquals([text, errors.map(String)], ["", [error]]);
  }
});

Deno.test("screen() cuts the text if the check takes longer than its timeout", async () => {
  using time = new FakeTime();
  const run = screened({ window: 4, timeout: 50, check: () => new Promise(() => {}) }, ["good day"]);
  await time.tickAsync(49);
  await time.tickAsync(1);
  const { shown, errors } = await run;
  assertEquals(shown, ["warning", "filter"]);
  assertEquals(errors.map(String), ["Error: Cannot check a text: it took longer than 50 ms"]);
});

Deno.test("screen() drops the held text of a failed attempt, and screens the next attempt from its beginning", async () => {
  const again: Middleware = {
    name: "again",
    async model(_, next) {
      return await next().catch(() => next());
    },
  };
  const check = ({ text }: ScreenedText): Screening => text.includes("bad") ? { type: "replace", text: "***" } : pass;
  for (const at of ["outer", "inner"] as const) {
    const { shown, text } = await screened({ window: 4, check }, [
      { text: ["good", "te"], error: new Error("cut") },
      "fine bad!",
    ], { [at]: [again] });
    assertEquals([shown.at(-1), text], ["stop", "***!"]);
    assertEquals(shown.includes("te"), false);
  }
});

Deno.test("screen() drops the windows of a failed attempt whose checks end during the next one", async () => {
  const again: Middleware = { name: "again", model: (_, next) => next().catch(() => next()) };
  const late = Promise.withResolvers<Screening>();
  const check = ({ text }: ScreenedText) => {
    if (text === "good") return late.promise;
    late.resolve(pass);
    return pass;
  };
  const { shown, text } = await screened({ window: 4, check }, [
    { text: ["good"], error: new Error("cut") },
    { text: ["fine"] },
  ], { inner: [again] });
  assertEquals([shown, text], [["model.reset", "fine", "stop"], "fine"]);
});

Deno.test("screen() checks a response that a later hook gives or changes without streaming it", async () => {
  const texts: string[] = [];
  const check = ({ text }: ScreenedText): Screening => {
    texts.push(text);
    return text.includes("bad") ? { type: "replace", text: "***" } : pass;
  };
  const cached: Middleware = { name: "cached", model: () => Promise.resolve(reply("bad cache")) };
  const { shown, text } = await screened({ window: 4, check }, [], { inner: [cached] });
  assertEquals([shown, text, texts], [["stop ***"], "***", ["bad cache"]]);

  const changing: Middleware = {
    name: "changing",
    model: async (_, next) => ({ ...await next(), parts: [{ type: "text", text: "all bad" }] }),
  };
  assertEquals((await screened({ window: 4, check }, ["good"], { inner: [changing] })).text, "***");
  const cut = () => ({ type: "cut" }) as const;
  assertEquals((await screened({ window: 4, check: cut }, [], { inner: [cached] })).shown, ["filter"]);
});

const search = { callId: "s1", name: "web_search", meta: { block: 1 } } as const;
const searched = { type: "provider_call", ...search, input: { query: "good", max: 3 } } as const;
const found = { type: "provider_result", ...search, status: "ok", output: [{ title: "bad", url: "u" }] } as const;
const searching: ScriptedAnswer = {
  reads: [
    [{ type: "text", text: "See. " }],
    [{ type: "part", part: searched }],
    [{ type: "part", part: found }],
    [{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }],
  ],
};

/** Returns the contents of the events of calls that the provider ran. */
const providerParts = (events: readonly Event[]) =>
  events.flatMap((event) =>
    event.type === "provider_tool.started" || event.type === "provider_tool.finished" ? [event.content] : []
  );

Deno.test("screen() checks the calls that the provider runs, and their results, in their place", async () => {
  const pieces: ScreenedText[] = [];
  const check = (piece: ScreenedText) => {
    pieces.push(piece);
    return pass;
  };
  const { events, parts } = await screened({ window: 100, check }, [searching]);
  assertEquals(pieces, [
    { type: "text", before: "", text: "See. " },
    { type: "provider_call", before: "", text: "web_search\nquery\ngood\nmax\n3" },
    { type: "provider_result", before: "", text: "web_search\ntitle\nbad\nurl\nu" },
    { type: "text", before: "", text: "Done." },
  ]);
  assertEquals(providerParts(events), [searched, found]);
  assertEquals(parts, [{ type: "text", text: "See. " }, searched, found, { type: "text", text: "Done." }]);
});

Deno.test("screen() replaces the output of a call that the provider runs, and leaves out the provider's own data of both", async () => {
  const check = ({ text }: ScreenedText): Screening => text.includes("bad") ? { type: "replace", text: "***" } : pass;
  const { meta: _, ...call } = searched;
  const { meta: __, ...result } = found;
  const cached: Middleware = {
    model: () => Promise.resolve({ ...reply(""), parts: [searched, found, { type: "text", text: "Done." }] }),
  };
  const kept = [call, { ...result, output: "***" }, { type: "text", text: "Done." }];
  const streamed = await screened({ window: 100, check }, [searching]);
  assertEquals<unknown>(providerParts(streamed.events), [searched, { ...result, output: "***" }]);
  assertEquals<unknown>(streamed.parts, [{ type: "text", text: "See. " }, ...kept]);
  assertEquals<unknown>((await screened({ window: 100, check }, [], { inner: [cached] })).parts, kept);
});

Deno.test("screen() checks refusals and sources, as a whole, whether they are streamed or given", async () => {
  const refusal = { type: "refusal", text: "No bad words.", category: "harm" } as const;
  const source = { type: "source", url: "https://a.example/", title: "Bad news", text: "It is bad." } as const;
  const empty = { type: "refusal", text: "" } as const;
  const streamedParts = [refusal, source, empty, { type: "text", text: "Done." }] as const;
  const streaming: ScriptedAnswer = {
    reads: [
      streamedParts.map((part) => part.type === "text" ? part : { type: "part", part } as const),
      [{ type: "finish", reason: "stop" }],
    ],
  };
  const given: Middleware = { model: () => Promise.resolve({ ...reply(""), parts: streamedParts }) };
  const decided = async (decision: Screening) => {
    const pieces: string[] = [];
    const check = ({ type, text }: ScreenedText) => {
      pieces.push(`${type} ${text}`);
      return text.includes("bad") ? decision : pass;
    };
    const streamed = await screened({ window: 100, check }, [streaming]);
    const added = streamed.events.flatMap((event) => event.type === "part.added" ? [event.content] : []);
    const whole = await screened({ window: 100, check }, [], { inner: [given] });
    assertEquals(whole.parts, streamed.parts);
    return { pieces: pieces.slice(0, pieces.length / 2), added, parts: streamed.parts };
  };
  const pieces = [
    "refusal No bad words.\nharm",
    "source https://a.example/\nBad news\nIt is bad.",
    "text Done.",
  ];
  assertEquals<unknown>(await decided(pass), { pieces, added: [refusal, source, empty], parts: streamedParts });
  const hidden = [{ type: "refusal", text: "***" }, { type: "source", text: "***" }];
  const replaced = await decided({ type: "replace", text: "***" });
  assertEquals<unknown>(replaced, { pieces, added: [...hidden, empty], parts: [...hidden, empty, streamedParts[3]] });
  const cut = await decided({ type: "cut", text: "[cut]" });
  const shown = [{ type: "refusal", text: "[cut]" }];
  assertEquals<unknown>([cut.added, cut.parts], [shown, shown]);
});

Deno.test("screen() checks media with checkMedia, whether they are streamed or given", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const sound = { type: "media", mediaType: "audio/wav", url: "https://a.example/a.wav", meta: { id: "f1" } } as const;
  const parts = [{ type: "text", text: "See. " }, image, sound, { type: "text", text: "Done." }] as const;
  const streaming: ScriptedAnswer = {
    reads: [
      parts.map((part) => part.type === "text" ? part : { type: "part", part } as const),
      [{ type: "finish", reason: "stop" }],
    ],
  };
  const given: Middleware = { model: () => Promise.resolve({ ...reply(""), parts }) };
  const decided = async (decision?: Screening) => {
    const asked: unknown[] = [];
    const checkMedia = (part: MediaPart) => {
      asked.push(part);
      return decision && part.mediaType === "image/png" ? decision : pass;
    };
    const options = { window: 100, check: () => pass, ...(decision && { checkMedia }) };
    const streamed = await screened(options, [streaming]);
    const added = streamed.events.flatMap((event) => event.type === "part.added" ? [event.content] : []);
    const whole = await screened(options, [], { inner: [given] });
    assertEquals(whole.parts, streamed.parts);
    return { asked: asked.slice(0, asked.length / 2), added, parts: streamed.parts, text: streamed.text };
  };
  const text = "See. Done.";
  assertEquals<unknown>(await decided(), { asked: [], added: [image, sound], parts, text });
  assertEquals<unknown>(await decided(pass), { asked: [image, sound], added: [image, sound], parts, text });
  const hidden = { type: "text", text: "[image] " } as const;
  assertEquals<unknown>(await decided({ type: "replace", text: "[image] " }), {
    asked: [image, sound],
    added: [sound],
    parts: [parts[0], hidden, sound, parts[3]],
    text: "See. [image] Done.",
  });
  const cut = await decided({ type: "cut", text: "[image] " });
  assertEquals<unknown>([cut.added, cut.parts, cut.text], [[], [parts[0], hidden], "See. [image] "]);
});

Deno.test("screen() cuts a response whose check of media fails, or returns no decision", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const answer: ScriptedAnswer = {
    reads: [[{ type: "text", text: "See. " }, { type: "part", part: image }, { type: "finish", reason: "stop" }]],
  };
  const failing: readonly [Required<ScreenOptions>["checkMedia"], string][] = [
    [() => Promise.reject(new Error("down")), "Error: down"],
    [
      () => undefined as never,
      "TypeError: Cannot screen a file: the check returned undefined; expected pass, replace or cut",
    ],
  ];
  for (const [checkMedia, error] of failing) {
    const { events, parts, errors } = await screened({ window: 100, check: () => pass, checkMedia }, [answer]);
    assertEquals(events.filter(({ type }) => type === "part.added"), []);
    assertEquals<unknown>([parts, errors.map(String)], [[{ type: "text", text: "See. " }], [error]]);
  }
});

Deno.test("screen() cuts a response whose provider call or result fails its check, and whose check fails", async () => {
  const cuts: readonly Screening[] = [{ type: "cut" }, { type: "cut", text: "[cut]" }];
  const { meta: _, ...call } = searched;
  const { meta: __, ...result } = found;
  const see = { type: "text", text: "See. " };
  for (const cut of cuts) {
    const check = ({ type }: ScreenedText) => type === "provider_result" ? cut : pass;
    const { events, parts, shown } = await screened({ window: 100, check }, [searching]);
    const removed = cut.type === "cut" && cut.text ? [{ ...result, output: "[cut]" }] : [];
    assertEquals<unknown>(providerParts(events), [searched, ...removed]);
    assertEquals<unknown>([parts, shown.at(-1)], [[see, call, ...removed], "filter"]);
  }
  const check = ({ type }: ScreenedText): Screening => {
    if (type === "provider_call") throw new Error("down");
    return pass;
  };
  const { events, parts, errors } = await screened({ window: 100, check }, [searching]);
  assertEquals<unknown>([providerParts(events), parts, errors.map(String)], [[], [see], ["Error: down"]]);
});

Deno.test("screen() releases a call of the provider after the text before it, however long their checks take", async () => {
  const slow = Promise.withResolvers<Screening>();
  const check = ({ text }: ScreenedText) => text === "See. " ? slow.promise : pass;
  const before: string[] = [];
  const outer: Middleware = {
    model: ({ emit }, next) =>
      next({
        emit(event) {
          if ("part" in event) before.push(event.type);
          emit(event);
        },
      }),
  };
  const inner: Middleware = {
    async model(_, next) {
      const response = await next();
      before.push("answered");
      slow.resolve(pass);
      return response;
    },
  };
  await screened({ window: 100, check }, [searching], { outer: [outer], inner: [inner] });
  assertEquals(before, [
    "answered",
    "text.delta",
    "provider_tool.started",
    "provider_tool.finished",
    "text.delta",
  ]);
});

Deno.test("screen() stays in force for a model that a later hook chooses", async () => {
  const check = ({ text }: ScreenedText): Screening => text.includes("bad") ? { type: "replace", text: "***" } : pass;
  const other: Middleware = { name: "other", model: (_, next) => next({ request: { model: scripted("bad") } }) };
  const { shown } = await screened({ window: 9, check }, ["good"], { inner: [other] });
  assertEquals(shown, ["***", "stop"]);
});

Deno.test("screen() refuses sizes that are not whole numbers", () => {
  const check = () => pass;
  for (const sizes of [{ window: 0 }, { window: 1.5 }, { window: 4, before: -1 }]) {
    assertThrows(() => screen({ ...sizes, check }), RangeError, "expected whole numbers");
  }
});
