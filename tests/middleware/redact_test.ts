import {
  agent,
  type AnyTool,
  ask,
  cancelled,
  continueWith,
  declined,
  deny,
  type Event,
  finish,
  memory,
  type Message,
  type Middleware,
  type Model,
  ModelError,
  type ModelEvent,
  reply,
  rewrite,
  type Scope,
  type Store,
  text,
  textOf,
  tool,
  ToolError,
  type ToolResult,
  user,
  vars,
  when,
} from "@jizai/jizai";
import { compact, compaction } from "@jizai/jizai/middleware/compaction";
import { inject } from "@jizai/jizai/middleware/inject";
import { moderation } from "@jizai/jizai/middleware/moderation";
import { redact, type RedactOptions } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";
import { maskable, maskings, windowed } from "../support/masked_texts.ts";
import { type Chance as Seeded, seeded } from "../support/seeded.ts";
import { saving } from "../support/saving.ts";

const secrets = ["hunter2"];

/** Whole numbers below a bound, which look random and are the same every time. */
type Chance = (below: number) => number;

function chance(seed: number): Chance {
  let state = seed;
  return (below) => {
    state = (state + 0x6D2B79F5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) % below;
  };
}

/** `text` in pieces of 1 to 20 characters. */
function split(text: string, chance: Chance): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += pieces.at(-1)?.length ?? 0) {
    pieces.push(text.slice(at, at + 1 + chance(chance(2) === 0 ? 3 : 20)));
  }
  return pieces;
}

/** The deltas of one kind, joined. */
function streamed(events: readonly Event[], type: "text.delta" | "reasoning.delta" | "call.delta"): string {
  return events.map((event) => event.type === type && "text" in event ? event.text : "").join("");
}

/** Returns the output of an answer that arrives in `pieces`, piece by piece. */
async function deltas(options: RedactOptions, ...pieces: readonly string[]): Promise<string[]> {
  const model = scripted({ text: pieces });
  const events = await eventsOfRun(agent({ model, use: [redact(options)] }).run("Go"));
  return events.flatMap((event) => event.type === "text.delta" ? [event.text] : []);
}

/** Returns a step that calls a tool. */
function calling(name: string): ScriptedStep {
  return { calls: [[name, {}]] };
}

/** Returns the output of a whole answer. */
async function masked(options: RedactOptions, answer: string): Promise<string> {
  return (await agent({ model: scripted(answer), use: [redact(options)] }).run("Go").result).text;
}

/** A random text, and its expected masked form. */
type Sample = readonly [whole: string, masked: string];

/** Secrets among texts that resemble them. */
function exact(chance: Chance): Sample {
  const resembling = ["hunter", "hunt er2", "s3sam", "ss3same", "Hunter2", "x", "", "h", "{}"];
  return sample(chance, (hidden) => {
    const name = ["hunter2", "s3same!", "hs3hs3same"][chance(3)] ?? "";
    return hidden ? [name, "[redacted]"] : [resembling[chance(resembling.length)] ?? "", ""];
  });
}

/** Texts that a pattern matches: a key of any length, and a password after its name. */
function formed(chance: Chance): Sample {
  const resembling = ["key-abc", "monkey-business", "password", "password =", "key", "-", "xkey-abcdef"];
  return sample(chance, (hidden) => {
    const secret = Array.from({ length: 4 + chance(chance(2) === 0 ? 5 : 60) }, () => "abcdefgh"[chance(8)]).join("");
    if (!hidden) return [resembling[chance(resembling.length)] ?? "", ""];
    return chance(2) === 0 ? [`key-${secret}`, "[redacted]"] : [`password=${secret}`, "password=[redacted]"];
  });
}

function sample(chance: Chance, next: (hidden: boolean) => Sample): Sample {
  let whole = "";
  let masked = "";
  for (let count = chance(12); count > 0; count--) {
    const hidden = chance(3) === 0;
    const [piece, mask] = next(hidden);
    const gap = [" ", "\n", ". ", ", 😀 "][chance(4)] ?? "";
    whole += piece + gap;
    masked += (hidden ? mask : piece) + gap;
  }
  return [whole, masked];
}

const kinds = [
  { make: exact, options: { secrets: ["hunter2", "s3same!", "hs3hs3same"], patterns: [] } },
  { make: exact, options: { secrets: ["hunter2", "s3same!", "hs3hs3same"], patterns: [/never/], window: 24 } },
  { make: formed, options: { patterns: [/\bkey-\w{4,}/, /(?<=password=)\w+/], window: 24 } },
];

Deno.test("redact() streams the masked answer, however it is split into deltas", async () => {
  for (const { make, options } of kinds) {
    for (let seed = 1; seed <= 100; seed++) {
      const random = chance(seed);
      const [whole, masked] = make(random);
      const pieces = split(whole, random);
      const run = agent({ model: scripted({ reasoning: pieces, text: pieces }), use: [redact(options)] }).run("Go");
      const events = await eventsOfRun(run);
      assertEquals(streamed(events, "text.delta"), masked, JSON.stringify(pieces));
      assertEquals(streamed(events, "reasoning.delta"), masked, JSON.stringify(pieces));
      assertEquals((await run.result).text, masked, JSON.stringify(pieces));
    }
  }
});

Deno.test("redact() releases no part of a secret when the stream breaks off, at any place", async () => {
  for (const { make, options } of kinds) {
    for (let seed = 1; seed <= 100; seed++) {
      const random = chance(seed);
      const [whole, masked] = make(random);
      const pieces = split(whole.slice(0, random(whole.length + 1)), random);
      const model = scripted({ text: pieces, error: new ModelError("cut") });
      const run = agent({ model, use: [redact(options)] }).run("Go");
      const shown = streamed(await eventsOfRun(run), "text.delta");
      const { status, text, messages } = await run.result;
      assert(masked.startsWith(shown), JSON.stringify({ pieces, shown, masked }));
      assertEquals([status, text], ["failed", shown]);
      assertEquals(lines(messages), shown === "" ? ["user Go"] : ["user Go", `assistant ${shown}`]);
    }
  }
});

Deno.test("redact() finds secrets with JSON escapes in calls, however they are split into deltas", async () => {
  const odd = ['say "hi"', "line\nbreak", "back\\slash", "naïve 😀", "a/b"];
  const ascii = (json: string) =>
    json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const slashed = (json: string) => json.replaceAll("/", "\\/");
  const note = tool({ name: "note", description: "", input: z.object({ text: z.string() }), execute: () => "Noted." });
  for (let seed = 1; seed <= 100; seed++) {
    const random = chance(seed);
    const [whole, masked] = sample(random, (hidden) => {
      const near = ['say "h', "line\n break", "naive 😀", '\\"', "\\", "u0022"];
      return hidden ? [odd[random(odd.length)] ?? "", "[redacted]"] : [near[random(near.length)] ?? "", ""];
    });
    const written = [String, ascii, slashed][random(3)] ?? String;
    const reads: ModelEvent[][] = [
      [{ type: "call.start", id: "a", name: "note" }],
      ...split(written(JSON.stringify({ text: whole })), random)
        .map((text): ModelEvent[] => [{ type: "call.delta", id: "a", text }]),
      [{ type: "call.end", id: "a" }, { type: "finish", reason: "calls" }],
    ];
    const run = agent({
      model: scripted({ reads }, "Done."),
      tools: [note],
      use: [redact({ secrets: odd, patterns: [] })],
    }).run("Go");
    const events = await eventsOfRun(run);
    const ready = events.flatMap((event) => event.type === "call.ready" ? [event.call.input] : []);
    assertEquals(JSON.parse(streamed(events, "call.delta")), { text: masked });
    assertEquals(ready, [{ text: masked }]);
  }
});

Deno.test("redact() holds back only the beginning of a secret", async () => {
  const pieces = ["Hello, ", "hunt", "ing hunter", "s. It is hunter", "2", "."];
  assertEquals(await deltas({ secrets, patterns: [] }, ...pieces), [
    "Hello, ",
    "hunting ",
    "hunters. It is ",
    "[redacted]",
    ".",
  ]);
});

Deno.test("redact() holds back only what may belong to a match of a pattern", async () => {
  const pieces = ["0123456789", "ghi", "0123", "4567", "89ab", "cdef", "g--------", "----", "abc", "def", " end"];
  assertEquals(await deltas({ patterns: [/[0-9a-f]{8,}/] }, ...pieces), [
    "[redacted]ghi",
    "[redacted]g--------",
    "----",
    "abcdef en",
    "d",
  ]);
});

Deno.test("redact() releases an answer without secrets delta by delta", async () => {
  const pieces = ["Kyoto", " is", " sunny", ", ", "and", " so", " is", " Oslo", ".", " Skip", " the", " beads", ".\n"];
  assertEquals(await deltas({}, ...pieces), pieces);
  assertEquals(await deltas({}, "The", " bearer", " of", " news"), ["The", " ", "bearer of news"]);
});

Deno.test("redact() streams the redacted answer, for all kinds of patterns", async () => {
  const patterns = [
    /ab+c/,
    /\bab\b/,
    /(?<=b)a{2,}/,
    /(?<!b)c(?:a|b){1,3}c/,
    /a(b|c)*?a/,
    /^a|c$/m,
    /[^a]b{2}\W/,
    /(?:a|bc){3}/i,
    /a\nb|\x61\u0062\cJ/,
    /(?<name>b)a\Bc/,
    /a(?=bc)/,
    /(a)b\1/,
    /😀a+/u,
    /\u{1F600}b/u,
  ];
  const alphabet = ["a", "b", "c", "A", " ", "\n", "😀", "\\", "\\n", "\\u0061"];
  for (const pattern of patterns) {
    for (let seed = 1; seed <= 60; seed++) {
      const random = chance(seed);
      const text = Array.from({ length: random(60) }, () => alphabet[random(alphabet.length)]).join("");
      const options = { patterns: [pattern], secrets: ["cab"], window: 16 };
      const out = await deltas(options, ...split(text, random));
      assertEquals(out.join(""), await masked(options, text), `${pattern} ${JSON.stringify(text)}`);
    }
  }
});

/** Returns a text in pieces that `below` determines, character by character every other time. */
function pieces(text: string, { below }: Seeded): readonly string[] {
  const most = below(2) === 0 ? 1 : 25;
  const all: string[] = [];
  for (let at = 0; at < text.length; at += all.at(-1)?.length ?? 0) all.push(text.slice(at, at + 1 + below(most)));
  return all;
}

Deno.test("redact() masks a masked text to itself, and its deltas are the final text, however it is split", async () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = seeded(seed);
    const options = random.one(maskings);
    const text = maskable(random, 12);
    const once = redact(options).mask(text);
    const shown = JSON.stringify({ seed, text });
    assertEquals(redact(options).mask(once), once, shown);
    assertEquals((await deltas(options, ...pieces(text, random))).join(""), once, shown);
    assertEquals(await masked(options, text), once, shown);
    const other = redact(windowed).mask(text);
    assertEquals(redact(windowed).mask(other), other, shown);
  }
});

Deno.test("redact() masks a token that the mask before it uncovers, at every split of the deltas", async () => {
  const key = (letter: string) => `AIza${letter.repeat(35)}`;
  const texts: Readonly<Record<string, string>> = {
    [`Keys: hunter2${key("a")} end`]: "Keys: [redacted][redacted] end",
    [`hunter2${key("a")}${key("b")}${key("c")}`]: "[redacted]".repeat(4),
    [`${key("a")}${key("b")}`.repeat(6)]: "[redacted]".repeat(12),
    ["AKIAABCDEFGHIJKLMNOPhunter2"]: "[redacted][redacted]",
    ["AKIAABCDEFGHIJKLMNOPhunted"]: "AKIAABCDEFGHIJKLMNOPhunted",
  };
  for (const [text, expected] of Object.entries(texts)) {
    assertEquals(await masked({ secrets }, text), expected);
    for (let at = 0; at < text.length; at++) {
      const out = await deltas({ secrets }, ...[text.slice(0, at), text.slice(at)].filter((piece) => piece !== ""));
      assertEquals(out.join(""), expected, `${at}`);
    }
  }
});

Deno.test("redact() masks no part of a mask, whatever the secrets and the patterns are", async () => {
  for (const options of [{ secrets: ["act", "e"] }, { patterns: [/\w{3,}/, /red/] }, { secrets: ["[redacted]"] }]) {
    assertEquals(await masked(options, "[redacted]."), "[redacted].");
  }
  assertEquals(await masked({ secrets: ["hunter2", "]x"] }, "hunter2x"), "[redacted]");
});

Deno.test("redact() holds back the window for a pattern with a lookahead or a back reference", async () => {
  for (const pattern of [/\d{4}(?!\d)/, /(\d)\1{3}/]) {
    const pieces = ["It is 77", "77", ", you ", "know it well."];
    assertEquals(await deltas({ patterns: [pattern], window: 8 }, ...pieces), [
      "It",
      " is ",
      "[redacted], you know ",
      "it well.",
    ]);
  }
});

Deno.test("redact() holds a match back while it grows", async () => {
  const options = { patterns: [/\bkey-\w{4,}/], window: 10 };
  const growing = Array.from({ length: 200 }, () => "abcd");
  assertEquals(await deltas(options, "It is key-", ...growing, ". That was it."), [
    "It is ",
    "[redacted]. That was it.",
  ]);
});

Deno.test("redact() never splits a surrogate pair", async () => {
  const pieces = Array.from({ length: 40 }, () => "😀");
  for (const piece of await deltas({ patterns: [/x/], window: 5 }, ...pieces)) assert(piece.isWellFormed());
});

Deno.test("redact() finds a secret that a thought splits, in the deltas and in the transcript", async () => {
  const model = scripted({
    reads: [[
      { type: "text", text: "It is hun" },
      { type: "reasoning", text: "Hm, hunt" },
      { type: "text", text: "ter2, yes. And hun" },
      { type: "reasoning", text: "er2." },
      { type: "text", text: "dred" },
      { type: "finish", reason: "stop" },
    ]],
  });
  const run = agent({ model, use: [redact({ secrets })] }).run("Go");
  const events = await eventsOfRun(run);
  assertEquals(streamed(events, "text.delta"), "It is [redacted], yes. And hundred");
  assertEquals(streamed(events, "reasoning.delta"), "Hm, hunter2.".replace("hunter2", "[redacted]"));
  const { text, messages } = await run.result;
  assertEquals(text, "It is [redacted], yes. And hundred");
  assertEquals(messages[1], {
    role: "assistant",
    parts: [
      { type: "text", text: "It is " },
      { type: "reasoning", text: "Hm, " },
      { type: "text", text: "[redacted], yes. And hun" },
      { type: "reasoning", text: "[redacted]." },
      { type: "text", text: "dred" },
    ],
  });
});

Deno.test("redact() finds a secret that is split over parts of a result, in artifacts, numbers and the text for the person", async () => {
  const notices: string[] = [];
  const look = tool({
    name: "look",
    description: "",
    input: z.looseObject({}),
    execute: (input): ToolResult => ({
      type: "result",
      status: "ok",
      parts: [
        { type: "text", text: "It is 123" },
        { type: "media", mediaType: "image/png", data: "" },
        { type: "text", text: "456." },
        { type: "text", text: "456" },
      ],
      artifacts: [{ uri: "https://a.b/123456", name: "c 123456" }],
      person: `For you: ${JSON.stringify(input)}`,
    }),
  });
  const results: ToolResult[] = [];
  const note: Middleware = {
    name: "note",
    async tool(_, next) {
      const result = await next();
      results.push(result);
      return result;
    },
  };
  const model = scripted({ calls: [["look", { pin: 123456, other: 12345 }]] }, "Done.");
  const observe = (event: Event) => {
    if (event.type === "notice") notices.push(event.text);
  };
  await agent({ model, tools: [look], use: [note, redact({ secrets: ["123456"] })], observe }).run("Go").result;
  const input = { pin: "[redacted]", other: 12345 };
  assertEquals(results, [{
    type: "result",
    status: "ok",
    parts: [
      { type: "text", text: "It is " },
      { type: "media", mediaType: "image/png", data: "" },
      { type: "text", text: "[redacted]." },
      { type: "text", text: "456" },
    ],
    artifacts: [{ uri: "https://a.b/[redacted]", name: "c [redacted]" }],
    person: `For you: ${JSON.stringify(input)}`,
    input,
  }]);
  assertEquals(notices, [`For you: ${JSON.stringify(input)}`]);
});

Deno.test("redact() masks a result before the session saves it", async () => {
  const store = memory();
  const saved: string[] = [];
  const watched: Store = {
    ...store,
    journal: saving(store, (session, save) => {
      saved.push(JSON.stringify(session));
      return save();
    }),
  };
  const look = tool({ name: "look", description: "", input: z.object({}), execute: () => "It is hunter2." });
  const late: Middleware = {
    name: "late",
    async tool(_, next) {
      const result = await next();
      assertEquals(textOf(result), "It is [redacted].");
      return result;
    },
  };
  const model = scripted({ calls: [["look", {}]] }, "Done.");
  await agent({ model, tools: [look], use: [redact({ secrets }), late] }).run({
    prompt: "Go",
    session: "s",
    store: watched,
  }).result;
  assert(saved.length > 0);
  assertEquals(saved.filter((record) => record.includes("hunter2")), []);
});

Deno.test("redact() masks questions, reasons of guards, continuations and the reason of a cancelled prompt", async () => {
  const look = tool({ name: "look", description: "", input: z.object({}), execute: () => "Seen." });
  const outcome = async (inner: Middleware, ...steps: readonly (string | ScriptedStep)[]) => {
    const run = agent({ model: scripted(...steps), tools: [look], use: [redact({ secrets }), inner] }).run("Go");
    const events = await eventsOfRun(run);
    const { error: _, ...result } = await run.result;
    assertEquals(JSON.stringify([events, result]).includes("hunter2"), false);
    return result;
  };
  const calls: ScriptedStep = { calls: [["look", {}]] };
  const asking: Middleware = { name: "asking", approval: () => Promise.resolve(ask("Use hunter2?")) };
  assertEquals((await outcome(asking, calls)).questions[0]?.questions, ["Use [redacted]?"]);
  const denying: Middleware = { name: "denying", approval: () => Promise.resolve(deny("It has hunter2")) };
  assertEquals(lines((await outcome(denying, calls, "Done.")).messages)[2], "denied It has [redacted]");
  const refusing: Middleware = { name: "refusing", prompt: () => Promise.resolve(cancelled("Not hunter2")) };
  assertEquals((await outcome(refusing)).reason, "Not [redacted]");
  const going: Middleware = {
    name: "going",
    stop: (ctx) => Promise.resolve(ctx.continuations === 0 ? continueWith("Say hunter2") : finish()),
  };
  assertEquals(lines((await outcome(going, "One.", "Two.")).messages)[2], "stop Say [redacted]");
});

Deno.test("redact().mask masks a text for another output", () => {
  const { mask } = redact({ secrets });
  assertEquals(mask('{"key":"hunter2"} \\u0068unter2'), '{"key":"[redacted]"} [redacted]');
});

Deno.test("redact() takes linear time for hostile streams and texts", async () => {
  const hostile: Readonly<Record<string, string>> = {
    backslashes: "\\",
    quotes: '\\"',
    escapes: "\\u0073",
    beginnings: "sk-",
    "a growing key": "a",
    "keys of PEM": "-----BEGIN A ",
    bearers: "Bearer ",
    spaces: " ",
  };
  for (const [name, piece] of Object.entries(hostile)) {
    const first = name === "a growing key" ? "sk-" : name === "spaces" ? "Bearer " : "";
    const pieces = [first, ...Array<string>(name === "backslashes" ? 20_000 : 5_000).fill(piece)];
    const start = performance.now();
    await deltas({ secrets: ["hunter2", "aaaaaaab"] }, ...pieces);
    const time = performance.now() - start;
    assert(time < 8_000, `${name}: ${Math.round(time)} ms`);
  }
});

Deno.test("redact() masks overlapping secrets as one", async () => {
  assertEquals(await masked({ secrets: ["abcX", "Xdef"] }, "-abcXdef-"), "-[redacted]-");
  assertEquals(await masked({ secrets: ["aba"] }, "-ababa-"), "-[redacted]-");
  assertEquals(await masked({ secrets: ["abc"], patterns: [/c\d+/] }, "-abc123-"), "-[redacted]-");
});

Deno.test("redact() masks adjacent secrets separately", async () => {
  assertEquals(await deltas({ secrets, patterns: [] }, "hunter2hun", "ter2"), ["[redacted]", "[redacted]"]);
});

Deno.test("redact() accepts patterns with any flags", async () => {
  for (const pattern of [/ab/, /ab/g, /ab/y, /AB/i, /a\u{62}/u]) {
    assertEquals(await masked({ patterns: [pattern] }, "ab, ab"), "[redacted], [redacted]", pattern.flags);
  }
  assertEquals(await masked({ patterns: [/x*/] }, "abxxc"), "ab[redacted]c");
});

Deno.test("redact() masks common credentials by default, and little else", async () => {
  const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
  const known = [
    "sk-proj-abcdefghijklmnopqrstuv",
    "sk-ant-api03-abcdefghij_klmnopqrstuv",
    "sk_live_abcdefghijklmnop",
    "AKIAIOSFODNN7EXAMPLE",
    `AIza${"Sy".repeat(17)}a`,
    `ghp_${"a1".repeat(18)}`,
    `github_pat_${"a1".repeat(20)}`,
    "xoxb-123456789012-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "Bearer abcdefghij0123456789==",
    "bearer  abcdefghij0123456789",
    `-----BEGIN PRIVATE KEY-----\n${body}\n${body}\n-----END PRIVATE KEY-----`,
    `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n${body}\n-----END RSA PRIVATE KEY-----`,
  ];
  for (const key of known) {
    assertEquals(await masked({}, `It is ${key}, yes.`), "It is [redacted], yes.", key);
    assertEquals(await masked({}, JSON.stringify({ key, a: 1 })), `{"key":"[redacted]","a":1}`, key);
  }
  const other = [
    "a task-management-system-for-teams",
    "sk-short",
    "AKIA and the bearer of bad news",
    "-----BEGIN PRIVATE KEY----- is how it starts",
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG\n-----END CERTIFICATE-----",
    "550e8400-e29b-41d4-a716-446655440000",
    "e83c5163316f89bfbde7d9ab23ca2e25604af290",
  ];
  for (const answer of other) assertEquals(await masked({}, answer), answer);
});

Deno.test("redact() streams no part of a private key", async () => {
  const key = `-----BEGIN PRIVATE KEY-----\n${`${"MIIE".repeat(16)}\n`.repeat(25)}-----END PRIVATE KEY-----`;
  const out = await deltas({}, ...split(`Here: ${key}\nKeep it.${"-".repeat(300)}`, chance(1)));
  assertEquals(out.join(""), `Here: [redacted]\nKeep it.${"-".repeat(300)}`);
  assertEquals(await deltas({}, ...split(`Here: ${key.slice(0, 1_000)}`, chance(2))), ["Here: ", "[redacted]"]);
});

Deno.test("redact() masks the prompt for the model and in events", async () => {
  const model = scripted("I see.");
  const run = agent({ model, use: [redact({ secrets })] }).run("It is hunter2.");
  const events = await eventsOfRun(run);
  const { messages } = await run.result;
  assertEquals(lines(messages), ["user It is [redacted].", "assistant I see."]);
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [["user It is [redacted]."]]);
  assertEquals(JSON.stringify(events).includes("hunter2"), false);
});

Deno.test("redact() masks context of other middleware and earlier prompts for the model", async () => {
  const adding: Middleware = {
    name: "adding",
    session: (ctx, next) => next({ context: [...ctx.context, "session hunter2"] }),
    prompt: (ctx, next) => next({ context: [...ctx.context, "prompt hunter2"] }),
  };
  const added = [adding, inject("turn hunter2")];
  const messages: Message[] = [
    user("First hunter2"),
    { role: "assistant", parts: [{ type: "text", text: "Yes." }] },
    user("Second hunter2"),
  ];
  for (const use of [[...added, redact({ secrets })], [redact({ secrets }), ...added]]) {
    const model = scripted("I see.");
    await agent({ model, use }).run({ messages }).result;
    assertEquals(model.requests.map(({ messages }) => lines(messages)), [[
      "session session [redacted]",
      "user First [redacted]",
      "assistant Yes.",
      "user Second [redacted]",
      "prompt prompt [redacted]",
      "turn turn [redacted]",
    ]]);
  }
});

Deno.test("redact() masks the calls inside subagents that a session has stored before it was in use", async () => {
  const sends = tool({ name: "send", description: "Sends", input: z.any(), execute: () => "Sent hunter2." });
  const calls = [["send", { to: "hunter2" }]] as const;
  const deletes = tool({ ...sends, name: "delete", ask: true });
  const child = (...steps: ScriptedStep[]) =>
    asTool(agent({ name: "child", model: scripted(...steps), tools: [sends, deletes] }));
  const asks = { calls: [...calls, ["delete", { of: "hunter2" }]] } as const;
  const store = memory();
  const helping = { calls: [["child", { prompt: "Help" }]] } as const;
  const before = agent({
    model: scripted(helping, "Done.", { calls: [{ name: "child", id: "again", input: { prompt: "Help" } }] }),
    tools: [child({ calls }, { text: "Helped." }, asks)],
  });
  await before.run({ prompt: "Go", session: "s", store }).result;
  const { questions } = await before.run({ prompt: "Go", session: "s", store }).result;
  const text = async () => JSON.stringify(await store.load("s"));
  assert((await text()).includes("hunter2"));
  const saves: string[] = [];
  const after = agent({
    model: scripted("Bye."),
    tools: [child({ text: "Helped." })],
    use: [redact({ secrets }), { name: "saves", turn: async (_, next) => (saves.push(await text()), await next()) }],
  });
  const answers = [{ callId: questions[0]?.callId, type: "deny", reason: "hunter2" } as const];
  await after.resume({ session: "s", store, answers }).result;
  for (const saved of [...saves, await text()]) assertEquals(saved.includes("hunter2"), false);
  assert((await text()).includes(`"inner"`));
});

Deno.test("redact() masks what other hooks add to a request, whether they stand before it or after it", async () => {
  const adding: Middleware = {
    name: "adding",
    model: ({ request }, next) =>
      next({
        request: {
          messages: [...request.messages, user("It is hunter2.")],
          instructions: "Mind hunter2.",
          tools: [{ name: "look", description: "Looks for hunter2", schema: { type: "object", title: "hunter2" } }],
        },
      }),
  };
  for (const use of [[adding, redact({ secrets })], [redact({ secrets }), adding]]) {
    const model = scripted({ error: new ModelError("busy", { recoverable: true }) }, "Done.");
    const retried = retry({ delay: 0 });
    assertEquals((await agent({ model, use: [...use, retried] }).run("Go").result).status, "done");
    for (const { messages, instructions, tools } of model.requests) {
      assertEquals(messages, [user("Go"), user("It is [redacted].")]);
      assertEquals(instructions, "Mind [redacted].");
      assertEquals(tools, [{
        name: "look",
        description: "Looks for [redacted]",
        schema: { type: "object", title: "[redacted]" },
      }]);
    }
    assertEquals(model.requests.length, 2);
  }
});

Deno.test("redact() masks the inputs and the results of tools", async () => {
  const seen: unknown[] = [];
  const guard: Middleware = {
    name: "guard",
    approval(ctx, next) {
      seen.push(ctx.input);
      return next();
    },
  };
  const edit: Middleware = {
    name: "edit",
    tool: (_, next) => next({ input: { path: "/hunter2", deep: [{ a: "hunter2" }] } }),
  };
  const read = tool({
    name: "read",
    description: "",
    input: z.looseObject({ path: z.string() }),
    execute(input) {
      seen.push(input);
      const media = { type: "media", mediaType: "image/png", data: "hunter2", url: "https://a.b/hunter2" } as const;
      return { ...text([{ type: "text", text: "It is hunter2." }, media]), context: ["Beware of hunter2"] };
    },
  });
  const results: unknown[] = [];
  const note: Middleware = {
    name: "note",
    async tool(_, next) {
      const result = await next();
      results.push(result);
      return result;
    },
  };
  const model = scripted({ calls: [["read", { path: "a" }]] }, "Done.");
  const { messages } = await agent({ model, tools: [read], use: [note, edit, redact({ secrets }), guard] }).run("Go")
    .result;
  const input = { path: "/[redacted]", deep: [{ a: "[redacted]" }] };
  assertEquals(seen, [input, input]);
  assertEquals(results, [{
    type: "result",
    status: "ok",
    parts: [
      { type: "text", text: "It is [redacted]." },
      { type: "media", mediaType: "image/png", data: "hunter2", url: "https://a.b/hunter2" },
    ],
    context: ["Beware of [redacted]"],
    input,
  }]);
  assertEquals(lines(messages), [
    "user Go",
    "call read",
    "ok It is [redacted].",
    "context Beware of [redacted]",
    "assistant Done.",
  ]);
});

Deno.test("redact() finds secrets in results with JSON, and with JSON in JSON", async () => {
  const odd = `say "hi"\n`;
  const results = async (output: unknown) => {
    const look = tool({ name: "look", description: "", input: z.object({}), execute: () => output });
    const model = scripted({ calls: [["look", {}]] }, "Done.");
    const use = [redact({ secrets: [odd], patterns: [] })];
    return lines((await agent({ model, tools: [look], use }).run("Go").result).messages)[2];
  };
  assertEquals(await results({ key: odd }), `ok {"key":"[redacted]"}`);
  assertEquals(await results({ body: JSON.stringify({ key: odd }) }), `ok {"body":"{\\"key\\":\\"[redacted]\\"}"}`);
  assertEquals(await results("C:\\new\\table \\u00zz \\"), "ok C:\\new\\table \\u00zz \\");
});

Deno.test("redact() masks the message of a ToolError", async () => {
  const fail = tool({
    name: "fail",
    description: "",
    input: z.object({}),
    execute: () => Promise.reject(new ToolError("401 for hunter2")),
  });
  const model = scripted({ calls: [["fail", {}]] }, "Done.");
  const { messages } = await agent({ model, tools: [fail], use: [redact({ secrets })] }).run("Go").result;
  assertEquals(lines(messages)[2], "error 401 for [redacted]");
});

Deno.test("redact() masks progress, notices and data, also of an agent that runs as a tool", async () => {
  const work = tool({
    name: "work",
    description: "",
    input: z.object({}),
    execute(_, { progress, emit }) {
      progress({ step: "with hunter2", of: 2 });
      emit({ type: "notice", text: "It is hunter2." });
      emit({ type: "data", name: "hunter2", data: ["hunter2", 1, null] });
      return "Worked.";
    },
  });
  const model = () => scripted({ calls: [["work", {}]] }, "Done.");
  const child = asTool(agent({ name: "child", model: model(), tools: [work] }), { name: "work", description: "" });
  const reported = async (tools: readonly AnyTool[], model: Model) => {
    const events = await eventsOfRun(agent({ model, tools, use: [redact({ secrets })] }).run("Go"));
    return events.map((event) => event.type === "subagent.event" ? event.event : event)
      .filter(({ type }) => ["tool.progress", "notice", "data"].includes(type));
  };
  const masked: Event[] = [
    { type: "tool.progress", turn: 1, call: "call_1", data: { step: "with [redacted]", of: 2 } },
    { type: "notice", text: "It is [redacted]." },
    { type: "data", name: "hunter2", data: ["[redacted]", 1, null] },
  ];
  assertEquals(await reported([work], model()), masked);
  assertEquals(await reported([child], scripted({ calls: [["work", { prompt: "Go" }]] }, "Done.")), masked);
});

Deno.test("redact() masks the deltas that tools and hooks emit, also below an agent that runs as a tool", async () => {
  const answer: Event[] = [..."It is hunter2, not h"].map((text) => ({ type: "text.delta", turn: 1, part: 1, text }));
  const input: Event[] = [..."[hunter2]"].map((text) => ({
    type: "call.delta",
    turn: 1,
    call: "c",
    name: "hunter2",
    text,
  }));
  const emitting = tool({
    name: "emitting",
    description: "",
    input: z.object({}),
    execute: (_, { emit }) => [...answer, ...input].forEach((event) => emit(event)),
  });
  const hook: Middleware = {
    name: "hook",
    async stop(ctx, next) {
      answer.forEach((event) => ctx.emit(event));
      return await next();
    },
  };
  const helper = asTool(agent({ name: "helper", model: scripted(calling("emitting"), "Done."), tools: [emitting] }));
  const nested = tool({
    name: "nested",
    description: "",
    input: z.object({}),
    execute: (_, { emit }) =>
      answer.forEach((event) => emit({ type: "subagent.event", call: "of a tool", agent: "other", event })),
  });
  const hidden = redact({ secrets, patterns: [] });
  const model = scripted({ calls: [["emitting", {}], ["nested", {}], ["helper", { prompt: "Go" }]] }, "ail.");
  const events = await eventsOfRun(agent({ model, tools: [emitting, nested, helper], use: [hidden, hook] }).run("Go"));
  assertEquals(JSON.stringify(events).match(/hunter2|er2/g), null);
  const shown = (of: readonly Event[]) => [streamed(of, "text.delta"), streamed(of, "call.delta")];
  const ofAgent = (name: string) =>
    events.flatMap((event) => event.type === "subagent.event" && event.agent === name ? [event.event] : []);
  const masked = "It is [redacted], not h";
  assertEquals(shown(events), [`${masked}ail.${masked}`, '{}{}{"prompt":"Go"}[[redacted]]']);
  assertEquals(shown(ofAgent("helper")), [`${masked}Done.`, "{}[[redacted]]"]);
  assertEquals(shown(ofAgent("other")), [masked, ""]);
});

/** Returns the lines of deltas, model requests and turns. */
function responseLines(events: readonly Event[]): string[] {
  const kept = /^(text\.delta|model\..*|turn\.finished|run\.(finished|paused))$/;
  return eventLines(events.filter(({ type }) => kept.test(type)));
}

Deno.test("redact() releases the end of a response before model.finished, also inside a hook that emits new deltas", async () => {
  const moderator = { moderate: () => Promise.resolve({ flagged: false, categories: [] }) };
  const hidden = () => redact({ secrets, patterns: [] });
  const other = redact({ secrets: ["hundred"], patterns: [] });
  const rewriting: Middleware = { name: "rewriting", model: rewrite({ text: (text) => [text, ""] }) };
  for (const outer of [[], [moderation({ moderator })], [hidden()], [other], [rewriting]]) {
    for (const ask of [false, true]) {
      const model = scripted({ text: "We like hun", ...calling("ping") }, "Fine by us, hun");
      const ping = tool({ name: "ping", description: "", input: z.object({}), ask, execute: () => "Pong." });
      const run = agent({ model, tools: [ping], use: [...outer, hidden()] }).run("Go");
      const lines = responseLines(await eventsOfRun(run));
      const first = [
        "model.started 1 scripted",
        "text.delta 1 0 We like ",
        "text.delta 1 0 hun",
        "model.finished 1 calls 1",
      ];
      const second = [
        "turn.finished 1",
        "model.started 2 scripted",
        "text.delta 2 0 Fine by us, ",
        "text.delta 2 0 hun",
        "model.finished 2 stop 1",
        "turn.finished 2",
        "run.finished done Fine by us, hun stop",
      ];
      assertEquals(lines, [...first, ...(ask ? ["run.paused"] : second)], outer.map(({ name }) => name).join());
    }
  }
});

Deno.test("redact() releases the end of a subagent's response before its model.finished", async () => {
  const helper = asTool(agent({
    name: "helper",
    model: scripted("We like hun"),
    use: [redact({ secrets, patterns: [] })],
  }));
  const model = scripted({ calls: [["helper", { prompt: "Go" }]] }, "Done.");
  const use = [redact({ secrets: ["hundred"], patterns: [] })];
  const events = await eventsOfRun(agent({ model, tools: [helper], use }).run("Go"));
  const inner = events.flatMap((event) => event.type === "subagent.event" ? [event.event] : []);
  assertEquals(responseLines(inner), [
    "model.started 1 scripted",
    "text.delta 1 0 We like ",
    "text.delta 1 0 hun",
    "model.finished 1 stop 1",
    "turn.finished 1",
    "run.finished done We like hun stop",
  ]);
});

Deno.test("redact() does not join the deltas of a hook to a response or to another turn", async () => {
  const hook: Middleware = {
    name: "hook",
    async turn(ctx, next) {
      for (const turn of [ctx.index - 1, ctx.index]) {
        ctx.emit({ type: "text.delta", turn, part: 0, text: `note ${turn} hun` });
      }
      return await next();
    },
  };
  const use = [redact({ secrets, patterns: [] }), hook];
  const events = await eventsOfRun(agent({ model: scripted("We like it."), use }).run("Go"));
  assertEquals(responseLines(events), [
    "text.delta 0 0 note 0 ",
    "text.delta 0 0 hun",
    "text.delta 1 0 note 1 ",
    "text.delta 1 0 hun",
    "model.started 1 scripted",
    "text.delta 1 0 We like it.",
    "model.finished 1 stop 1",
    "turn.finished 1",
    "run.finished done We like it. stop",
  ]);
});

Deno.test("redact() masks the deltas that a tool emits in each turn as a text of its own", async () => {
  const key = "sk-abcdefghij0123456789XYZ";
  const block = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG".repeat(40)}`;
  const shown = async (...texts: readonly string[]) => {
    const remaining = [...texts];
    const show = tool({
      name: "show",
      description: "",
      input: z.object({}),
      execute(_, { emit }) {
        const turn = texts.length - remaining.length + 1;
        emit({ type: "text.delta", turn, part: 0, text: remaining.shift() ?? "" });
      },
    });
    const model = scripted(...texts.map(() => calling("show")), "Done.");
    const events = await eventsOfRun(agent({ model, tools: [show], use: [redact()] }).run("Go"));
    return texts.map((_, index) =>
      streamed(events.filter((event) => event.type === "text.delta" && event.turn === index + 1), "text.delta")
    );
  };
  assertEquals(await shown("Look at key A", `${key} is it`), ["Look at key A", "[redacted] is it"]);
  const text = "Deployed to production, all good";
  assertEquals(await shown(`It is ${key}`, text), ["It is [redacted]", text]);
  assertEquals(await shown(block, text, key), ["[redacted]", text, "[redacted]"]);
});

Deno.test("redact() finds a secret that a thought splits in the deltas of an outer hook", async () => {
  const hook: Middleware = {
    name: "hook",
    model(ctx) {
      ctx.emit({ type: "text.delta", turn: 1, part: 0, text: "It is hun" });
      ctx.emit({ type: "reasoning.delta", turn: 1, part: 1, text: "Hm" });
      ctx.emit({ type: "text.delta", turn: 1, part: 2, text: "ter2." });
      return Promise.resolve(reply("It is."));
    },
  };
  const use = [hook, redact({ secrets, patterns: [] })];
  const events = await eventsOfRun(agent({ model: scripted(), use }).run("Go"));
  assertEquals(streamed(events, "text.delta"), "It is [redacted].");
});

Deno.test("redact() masks what compaction() sends to the summarizer, and the summary", async () => {
  const store = memory();
  const long = (text: string) => `${text} `.repeat(60);
  const before = agent({ model: scripted(long("It is hunter2."), long("Yes."), long("No.")) });
  for (const prompt of ["One", "Two", "Three"]) await before.run({ session: "s", prompt, store }).result;

  const summarize = scripted("They spoke of hunter2.");
  const summarizing = agent({
    model: scripted(),
    use: [redact({ secrets }), compaction({ at: 400, keep: 50, summarize })],
  });
  const run = compact(summarizing, { session: "s", instructions: "Keep hunter2.", store });
  const events = await eventsOfRun(run);
  const { status, messages } = await run.result;
  const [{ instructions = "", messages: sent = [] } = {}] = summarize.requests;
  assertEquals(JSON.stringify([events, messages, instructions, sent]).match(/hunter2/g), null);
  assertEquals(
    [status, instructions.endsWith("Keep [redacted]."), JSON.stringify(sent).includes("It is [redacted].")],
    ["done", true, true],
  );
  assertEquals(lines(messages)[1]?.endsWith("They spoke of [redacted]."), true);

  const refusing: Middleware = { name: "refusing", compact: () => Promise.resolve(declined("Not hunter2.")) };
  const declining = agent({ model: scripted(), use: [redact({ secrets }), refusing, compaction()] });
  assertEquals((await compact(declining, { session: "s", store }).result).reason, "Not [redacted].");
});

Deno.test("redact() masks the author that a message names", async () => {
  const store = memory();
  const model = scripted("Hello.");
  const messages = [user("Hi", "hunter2"), user("Hello", "me")];
  const run = agent({ model, use: [redact({ secrets })] }).run({ session: "s", messages, store });
  const events = await eventsOfRun(run);
  const [{ messages: sent = [] } = {}] = model.requests;
  assertEquals(sent, [user("Hi", "[redacted]"), user("Hello", "me")]);
  assertEquals(JSON.stringify([events, await run.result, await store.load("s")]).match(/hunter2/g), null);
});

Deno.test("redact() must stand before compaction(), which calls no inner hook", () => {
  assertThrows(
    () => agent({ model: scripted(), use: [compaction(), redact()] }),
    TypeError,
    `Cannot use "compaction" before "redact": put redact() first in use`,
  );
});

Deno.test("redact() neither emits nor keeps the held text of a stopped answer", async () => {
  const answered = Promise.withResolvers<void>();
  const model = scripted({
    reads: (function* () {
      yield [{ type: "text" as const, text: "It is hunter2, not hunt" }];
      answered.resolve();
      yield new Promise<never>(() => {});
    })(),
  });
  using time = new FakeTime();
  const run = agent({ model, use: [redact({ secrets, patterns: [] })], limits: { grace: 1 } }).run("Go");
  await answered.promise;
  run.stop("enough");
  const events = await advanceUntilSettled(time, eventsOfRun(run));
  const { messages } = await run.result;
  assertEquals(eventLines(events).slice(-3), [
    "warning hook.abandoned The model scripted did not stop when its signal aborted. model",
    "session.closed",
    "run.aborted enough It is [redacted], not ",
  ]);
  assertEquals(lines(messages), ["user Go", "assistant It is [redacted], not "]);
});

Deno.test("redact() starts again after model.reset", async () => {
  const busy = new ModelError("busy", { recoverable: true });
  for (const order of [<T>(a: T, b: T) => [a, b], <T>(a: T, b: T) => [b, a]]) {
    const model = scripted({ text: ["It is hun"], error: busy }, "ter2? No, hunter2.");
    const use = order(retry({ delay: 0, afterText: true }), redact({ secrets, patterns: [] }));
    const events = await eventsOfRun(agent({ model, use }).run("Go"));
    const shown = events.filter(({ type }) => ["text.delta", "model.reset", "run.finished"].includes(type));
    assertEquals(eventLines(shown), [
      "text.delta 1 0 It is ",
      "model.reset 1",
      "text.delta 1 0 ter2? No, [redacted].",
      "run.finished done ter2? No, [redacted]. stop",
    ]);
  }
});

Deno.test("redact() does not quote the input of a call that is not JSON", async () => {
  const model = scripted({ calls: [["work", `{"key": "hunter2" hunter2}`]] }, "Done.");
  const work = tool({ name: "work", description: "", input: z.object({}), execute: () => "Worked." });
  const run = agent({ model, tools: [work], use: [redact({ secrets })] }).run("Go");
  const events = await eventsOfRun(run);
  const { messages } = await run.result;
  assertEquals(JSON.stringify([events, messages]).match(/hunt|ter2/g), null);
  assertEquals(lines(messages)[2], "error The input of work is not valid JSON: not JSON");
});

Deno.test("redact() masks the answer of a hook at model", async () => {
  const cache: Middleware = { name: "cache", model: () => Promise.resolve(reply("It is hunter2.")) };
  const run = agent({ model: scripted(), use: [redact({ secrets }), cache] }).run("Go");
  assertEquals((await run.result).text, "It is [redacted].");
});

Deno.test("redact() changes nothing if there is nothing to mask", async () => {
  const input = { path: "a", when: null, deep: [1, true, {}] };
  const acts: string[] = [];
  const look = tool({ name: "look", description: "", input: z.looseObject({}), execute: () => "Seen." });
  const step: ScriptedStep = { reasoning: "Hm.", calls: [["look", input]] };
  const run = agent({
    model: scripted(step, "Done."),
    tools: [look],
    use: [redact({ secrets })],
    trace,
    observe: (event) => {
      if (event.type === "hook.acted") acts.push(`${event.point} ${event.did.join(" ")} ${event.changed?.join(" ")}`);
    },
  }).run("Go");
  assertEquals((await run.result).status, "done");
  assertEquals(acts, [
    "input passed undefined",
    "model changed emit",
    "approval passed undefined",
    "execute passed undefined",
    "tool passed undefined",
    "model changed emit",
    "stop passed undefined",
    "prompt passed undefined",
    "session changed emit",
  ]);
});

Deno.test("redact() must stand after truncate(), which could cut a secret", async () => {
  const model = scripted();
  assertThrows(
    () => agent({ model, use: [redact(), truncate()] }),
    TypeError,
    `Cannot use "redact" before "truncate": put truncate() first in use`,
  );
  const log = tool({ name: "log", description: "", input: z.object({}), execute: () => `${"-".repeat(95)}hunter2` });
  const use = [truncate({ limit: 100, head: 0, tail: 5 }), redact({ secrets })];
  const { messages } = await agent({ model: scripted({ calls: [["log", {}]] }, "Done."), tools: [log], use }).run("Go")
    .result;
  assertEquals(lines(messages)[2]?.endsWith("cted]"), true);
});

Deno.test("redact() throws for an empty secret and an invalid window", () => {
  assertThrows(
    () => redact({ secrets: ["a", ""] }),
    RangeError,
    "Cannot create redact(): a secret is empty",
  );
  for (const window of [0, -1, 1.5, NaN, Infinity]) {
    assertThrows(
      () => redact({ window }),
      RangeError,
      `Cannot create redact(): \`window\` is ${window}; expected a whole number of 1 or more`,
    );
  }
});

Deno.test("when() turns redact() off as a whole: hooks, requests, what is stored, and the trace", async () => {
  const secret = "sk-0123456789-0123456789";
  const where = async (predicate: (scope: Scope<{ off: boolean }>) => boolean | Promise<boolean>, off: boolean) => {
    const requests: string[] = [];
    const model: Model = {
      id: "echo",
      async *stream({ messages, instructions }) {
        requests.push(JSON.stringify([messages, instructions]));
        yield [{ type: "text", text: secret }, { type: "finish", reason: "stop" }];
      },
    };
    const add: Middleware = { name: "add", turn: (ctx, next) => next({ context: [...ctx.context, secret] }) };
    const store = memory();
    const assistant = agent({
      vars: vars<{ off: boolean }>(),
      model,
      instructions: secret,
      use: [when(predicate, redact()), add],
      trace,
    });
    const options = { prompt: secret, session: "s", store, vars: { off }, onError: () => {} };
    const events = await eventsOfRun(assistant.run(options));
    const seen = { requests, stored: await store.load("s"), events };
    return Object.entries(seen).flatMap(([name, value]) => JSON.stringify(value)?.includes(secret) ? [name] : []);
  };
  const isOn = ({ vars }: Scope<{ off: boolean }>) => !vars.off;
  assertEquals(await where(isOn, false), []);
  assertEquals(await where(isOn, true), ["requests", "stored", "events"]);
  assertEquals(await where((scope) => Promise.resolve(isOn(scope)), true), ["events"]); // the hooks are off
  const failing = () => {
    throw new Error("secret");
  };
  assertEquals(await where(failing, true), []);
});
