import { sessionsIn } from "../../src/core/sessions.ts";
import type { RunStore } from "../../src/core/store.ts";
import {
  agent,
  type Event,
  memory,
  type Message,
  type Middleware,
  type Model,
  type PersonAnswer,
  type Store,
  tool,
} from "@jizai/jizai";
import type { NumberedEvent, Sink } from "@jizai/jizai/engine";
import { scripted } from "@jizai/jizai/model/scripted";
import {
  type OpenOptions,
  ResumeTokenError,
  type ResumeTokenOptions,
  type ResumeTokenProblem,
  resumeTokens,
} from "@jizai/jizai/session/resume_token";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import * as z from "zod";
import { encryption } from "../../src/session/resume_token/encryption.ts";
import { inStatus, storedRun } from "../support/stored_run.ts";

const secret = "a secret of at least thirty-two bytes";
const keys = [{ id: "k1", secret }];

const input = z.object({ at: z.string() });
const look = tool({ name: "look", description: "Looks", input, execute: ({ at }) => `Found ${at}.` });
const drop = tool({ name: "drop", description: "Drops", input, ask: true, execute: ({ at }) => `Dropped ${at}.` });
const call = (id: string) => ({ id, name: id.split("_")[0] ?? "", input: { at: `${id} 自在鉤` } });

const script = () =>
  scripted(
    { reasoning: "Hm.", text: "Look: ", calls: [call("look_1"), call("drop_1"), call("drop_2"), call("look_2")] },
    "Done.",
    "Really done.",
  );

/** The options of the agent besides its tools. */
interface More {
  readonly use?: readonly Middleware[];
  readonly model?: Model;
}

/** A paused agent, its session, and its questions. */
async function paused(more: More = {}) {
  const assistant = agent({ model: script(), tools: [look, drop], ...more });
  const store = memory();
  const { status, questions } = await assistant.run({ prompt: "Gö", session: "s1", store }).result;
  const session = await store.load("s1");
  assert(session && storedRun(session) && status === "paused");
  return { assistant, store, session, questions };
}

const { session } = await paused();
const text = await resumeTokens({ keys }).seal(session);

/** Returns the reason why a resume token does not open. */
async function whyNot(
  text: string,
  { now = Date.now, session, ...options }: Partial<ResumeTokenOptions> & OpenOptions = {},
): Promise<ResumeTokenProblem> {
  const { open } = resumeTokens({ keys, now, ...options });
  const { code, message } = await assertRejects(
    () => open(text, session === undefined ? {} : { session }),
    ResumeTokenError,
  );
  assertMatch(message, /^Cannot open the resume token: /);
  return code;
}

/** Encrypts content that `seal()` would not produce. */
async function encrypted(change: (sealed: Record<string, unknown>) => unknown, purpose = "jizai.resumeToken") {
  const decrypted = await encryption("jizai.resumeToken", keys).decrypt(text);
  assert("content" in decrypted);
  return await encryption(purpose, keys).encrypt(JSON.stringify(change(JSON.parse(decrypted.content))));
}

Deno.test("resumeTokens() returns the sealed session", async () => {
  assertEquals(await resumeTokens({ keys }).open(text), session);
  assertEquals(await resumeTokens({ keys }).open(text, { session: "s1" }), session);
  assertMatch(text, /^k1\.[\w-]+$/);
});

Deno.test("resumeTokens() makes tokens that contain nothing readable, and no token twice", async () => {
  const repeated = await resumeTokens({ keys }).seal(session);
  const bytes = (token: string) => atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"));
  const words = ["session", "messages", "look_1", "Dropped", "Found", 's1"', session.id];
  for (const token of [text, repeated]) {
    assertEquals(words.filter((word) => word.length > 2 && bytes(token).includes(word)), []);
  }
  assertEquals(repeated.length, text.length);
  assertNotEquals(repeated, text);
  assertNotEquals(bytes(repeated).slice(0, 12), bytes(text).slice(0, 12));
});

Deno.test("resumeTokens() opens a token more than once, and the version of a store rejects the second use", async () => {
  const { open } = resumeTokens({ keys });
  assertEquals(await open(text), await open(text));
  const store = memory();
  const { run: _, ...saved } = session;
  for (let version = 0; version <= session.version; version++) await store.save({ ...saved, version });
  assertEquals(await store.save(await open(text)), undefined);
});

const answers: readonly PersonAnswer[] = [
  { callId: "drop_1", type: "approve", input: { at: "elsewhere" } },
  { callId: "drop_2", type: "deny", reason: "No." },
];

const holding = (point: "prompt" | "turn" | "stop"): Middleware => ({
  name: "hold",
  [point]: (
    ctx: { readonly resumed: boolean; readonly run: { pause(question: string): Error } },
    next: () => unknown,
  ) => {
    if (!ctx.resumed) throw ctx.run.pause("Go on?");
    return next();
  },
});

/** Agents that pause at different points, by name. */
const pauses: Readonly<Record<string, () => More>> = {
  "two calls of four": () => ({}),
  "a whole batch": () => ({
    use: [{
      name: "hold",
      async tool(ctx, next) {
        if (ctx.call.id === "look_2" && !ctx.resumed) throw ctx.run.pause("All of it?");
        return await next();
      },
    }],
  }),
  "a prompt": () => ({ use: [holding("prompt")] }),
  "a turn": () => ({ use: [holding("turn")] }),
  "an end": () => ({ use: [holding("stop")], model: scripted("Done.") }),
};

/** Resumes a session from `store`, and returns the outcome. */
async function rest({ assistant, questions }: Awaited<ReturnType<typeof paused>>, store: Store) {
  const asked = new Set(questions.map(({ callId }) => callId));
  const reported = answers.filter(({ callId }) => asked.has(callId));
  const { status, text, usage, messages } = await assistant.resume({ session: "s1", answers: reported, store }).result;
  return { status, text, usage, messages };
}

for (const [what, options] of Object.entries(pauses)) {
  Deno.test(`a run paused at ${what} has the same outcome from a resume token as from its store`, async () => {
    const one = await paused(options());
    const expected = await rest(one, one.store);
    const other = await paused(options());
    const { seal, open } = resumeTokens({ keys });
    const store = memory();
    await store.save({ ...await open(await seal(other.session), { session: "s1" }), version: 0 });
    assertEquals(await rest(other, store), expected);
  });
}

/** A session with a short token: the tests below try every change of every character. */
const { session: held } = await paused({ use: [holding("prompt")] });
const short = await resumeTokens({ keys }).seal(held);

Deno.test("resumeTokens() rejects a token with one changed character", async () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const { open } = resumeTokens({ keys });
  for (const [index, character] of [...short].entries()) {
    const others = index > short.length - 3 ? [...alphabet] : [alphabet[(alphabet.indexOf(character) + 1) % 64] ?? "A"];
    for (const other of [...others, ".", "=", " ", "\n", "é"]) {
      if (other === character) continue;
      const changed = short.slice(0, index) + other + short.slice(index + 1);
      const error = await assertRejects(() => open(changed), ResumeTokenError, undefined, `${index}: ${other}`);
      assert(
        error.code === "forged" || (error.code === "unknown-key" && index < 2),
        `${index}: ${other} ${error.code}`,
      );
    }
  }
});

Deno.test("resumeTokens() rejects a token that was cut, extended, or combined from two", async () => {
  const { seal, open } = resumeTokens({ keys: [...keys, { id: "k2", secret: `another ${secret}` }] });
  const [, content = ""] = short.split(".");
  const [, other = ""] = (await seal({ ...held, id: "s2" })).split(".");
  const made = [
    ...Array.from(short, (_, length) => short.slice(0, length)),
    ...Array.from(short, (_, start) => short.slice(start + 1)),
    ...["A", "=", ".", " ", "\n"].flatMap((more) => [short + more, more + short]),
    ...Array.from(content, (_, at) => `k1.${content.slice(0, at)}${other.slice(at)}`).slice(1),
    ...[
      `k2.${content}`,
      `k1.${content}.`,
      `k1.${content}.${content}`,
      `.${content}`,
      "k1.",
      ".",
      "..",
      "",
      "undefined",
    ],
  ];
  const whole = [short, `k1.${other}`]; // two tokens may begin or end with the same letter
  for (const each of made.filter((each) => !whole.includes(each))) {
    const { code } = await assertRejects(() => open(each), ResumeTokenError, undefined, each);
    assert(code === "forged" || code === "unknown-key");
  }
});

Deno.test("resumeTokens() rejects a text of another key, or of the same key for another purpose", async () => {
  assertEquals(await whyNot(text, { keys: [{ id: "k1", secret: `another ${secret}` }] }), "forged");
  assertEquals(await whyNot(text, { keys: [{ id: "k2", secret }] }), "unknown-key");
  assertEquals(await whyNot(await encrypted((sealed) => sealed, "something.else")), "forged");
  assertEquals((await resumeTokens({ keys }).open(await encrypted((sealed) => sealed))).id, "s1");
});

Deno.test("resumeTokens() encrypts with the first key and decrypts with every key", async () => {
  const fresh = { id: "k2", secret: new TextEncoder().encode(`another ${secret}`) };
  const both = resumeTokens({ keys: [fresh, ...keys] });
  assertEquals(await both.open(text), session);
  const renewed = await both.seal(session);
  assertMatch(renewed, /^k2\./);
  assertEquals(await resumeTokens({ keys: [fresh] }).open(renewed), session);
  assertEquals(await whyNot(text, { keys: [fresh] }), "unknown-key");
  assertEquals(await whyNot(renewed), "unknown-key");
});

Deno.test("resumeTokens() rejects an expired token", async () => {
  let time = 1_000_000;
  const { seal, open } = resumeTokens({ keys, expiresIn: 5_000, now: () => time });
  const text = await seal(session);
  time += 4_999;
  assertEquals((await open(text)).id, "s1");
  time += 1;
  assertEquals(await whyNot(text, { now: () => time }), "expired");
  const day = await resumeTokens({ keys, now: () => 0 }).seal(session);
  assertEquals((await resumeTokens({ keys, now: () => 86_399_999 }).open(day)).id, "s1");
  assertEquals(await whyNot(day, { now: () => 86_400_000 }), "expired");
});

Deno.test("resumeTokens() rejects sessions and tokens that are too large", async () => {
  const { length } = text;
  assertEquals(await resumeTokens({ keys, maxBytes: length }).open(text), session);
  assertEquals((await resumeTokens({ keys, maxBytes: length }).seal(session)).length, length);
  assertEquals(await whyNot(text, { maxBytes: length - 1 }), "too-large");
  const { seal } = resumeTokens({ keys, maxBytes: length - 1 });
  const { code, message } = await assertRejects(() => seal(session), ResumeTokenError);
  assertEquals([code, message], [
    "too-large",
    `Cannot seal session "s1": the token has more than ${length - 1} bytes`,
  ]);
  assertEquals(await whyNot("x".repeat(100_000_000)), "too-large");
  const long: Message = { role: "user", parts: [{ type: "text", text: "x".repeat(200_000) }] };
  await assertRejects(() => resumeTokens({ keys }).seal({ ...session, messages: [long] }), ResumeTokenError);
});

Deno.test("resumeTokens() rejects an older or newer version of the format", async () => {
  for (const version of [0, 1, 2, 6, "3", null, undefined]) {
    assertEquals(await whyNot(await encrypted((sealed) => ({ ...sealed, version }))), "version");
  }
  const newer = await encrypted((sealed) => ({ ...sealed, version: 6 }));
  await assertRejects(
    () => resumeTokens({ keys }).open(newer),
    ResumeTokenError,
    "Cannot open the resume token: it has version 6; expected version 3 or 4 or 5",
  );
});

Deno.test("resumeTokens() seals a run that has paused before its prompt is accepted as version 4, and opens its version 3, which names the position `input`", async () => {
  const ask: Middleware = {
    name: "ask",
    prompt(ctx, next) {
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Go on?");
      return next();
    },
  };
  const { session } = await paused({ use: [ask] });
  const { seal, open } = resumeTokens({ keys });
  const { encrypt, decrypt } = encryption("jizai.resumeToken", keys);
  const decrypted = await decrypt(await seal(session));
  const { version, expires } = JSON.parse("content" in decrypted ? decrypted.content : "");
  assertEquals([version, session.run?.position.at], [4, "prompt"]);
  const earlier = { ...session, run: { ...session.run, position: { ...session.run?.position, at: "input" } } };
  assertEquals(await open(await encrypt(JSON.stringify({ version: 3, expires, session: earlier }))), session);
});

Deno.test("resumeTokens() rejects a token of another session than the named one", async () => {
  assertEquals(await whyNot(text, { session: "s2" }), "other-session");
  assertEquals(await whyNot(text, { session: "" }), "other-session");
});

Deno.test("resumeTokens() seals only paused sessions", async () => {
  const { run: _, ...ended } = session;
  for (const each of [ended, inStatus(session, "running")]) {
    await assertRejects(
      () => resumeTokens({ keys }).seal(each),
      TypeError,
      `Cannot seal session "s1": it is not paused`,
    );
  }
});

/** Returns the store of a run as a whole store. */
const whole = ({ journal }: RunStore): Store => ({ journal, ...sessionsIn(journal) });

Deno.test("resumeTokens() holds a session for one run, and adds the token to run.paused", async () => {
  const { hold, open } = resumeTokens({ keys });
  const { store, to, session } = await hold();
  assertEquals([session, await whole(store).load("s1")], [undefined, undefined]);
  const reported: Event[] = [];
  const sink: Sink<NumberedEvent> = {
    write: ({ event }) => reported.push(event),
    cork() {},
    uncork() {},
    full: undefined,
    close() {},
  };
  const assistant = agent({ model: script(), tools: [look, drop] });
  await assistant.start({ prompt: "Gö", session: "s1", store: whole(store) }, to(sink)).result;
  const paused = reported.at(-1);
  assert(paused?.type === "run.paused" && paused.resumeToken);
  const opened = await open(paused.resumeToken, { session: "s1" });
  assertEquals(opened, await whole(store).load("s1"));

  const repeated = await hold(paused.resumeToken, { session: "s1" });
  assertEquals(repeated.session, opened);
  assertEquals(await whole(repeated.store).save({ ...opened, version: 3 }), undefined);
  await assistant.start({ answers, session: "s1", store: whole(repeated.store) }, repeated.to(sink)).result;
  assertEquals(reported.at(-1)?.type, "run.finished");
  assertEquals((await whole(repeated.store).load("s1"))?.run, undefined);
  await assertRejects(() => hold(paused.resumeToken, { session: "s2" }), ResumeTokenError, "it is of another session");
});

Deno.test("resumeTokens() rejects unusable keys and limits", () => {
  const made = (options: Partial<ResumeTokenOptions>) => () => resumeTokens({ keys, ...options });
  assertThrows(made({ keys: [] }), RangeError, "Cannot sign or encrypt: expected at least one key");
  assertThrows(
    made({ keys: [{ id: "k1", secret: "short" }] }),
    RangeError,
    'Cannot use key "k1": expected at least 32 bytes, got 5',
  );
  assertThrows(made({ keys: [...keys, { id: "k2", secret: new Uint8Array(31) }] }), RangeError);
  for (const id of ["", "a.b", "ä", "a b"]) assertThrows(made({ keys: [{ id, secret }] }), TypeError);
  assertThrows(made({ keys: [...keys, ...keys] }), TypeError, 'Cannot use key "k1": another key has this id');
  for (const expiresIn of [0, -1, NaN, Infinity]) assertThrows(made({ expiresIn }), RangeError);
  for (const maxBytes of [0, -1, NaN]) assertThrows(made({ maxBytes }), RangeError);
});

Deno.test("resumeTokens() copies its keys", async () => {
  const bytes = new TextEncoder().encode(secret);
  const { open } = resumeTokens({ keys: [{ id: "k1", secret: bytes }] });
  bytes.fill(0);
  assertEquals((await open(text)).id, "s1");
});
