/**
 * Sessions whose positions have the names of format 1. They were recorded from the last commit that wrote `arrived` for `incoming` and `input` for `prompt`, and
 * have shorter ids. A process of that commit must leave the sessions alone in which the positions have their new names.
 */
import { agent, type Answer, memory, type Middleware, type Session, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, type NumberedJournalEntry } from "@jizai/jizai/session/durable";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals } from "@std/assert";
import { journalKey } from "../../src/core/journal.ts";
import { recordingStore } from "../support/recording_store.ts";
import { lines } from "../support/transcript_lines.ts";

const writer = '"writer":{"holder":"writer_1","n":1}';
const rest = '"counters":{"turns":0,"calls":0,"continuations":0,"batches":0,"outputs":0,"cuts":0},' +
  '"usage":{"input":0,"output":0},"state":[],"answers":[],"before":0';
const reply = '{"type":"object","properties":{"type":{"const":"reply"},"text":{"type":"string"}},' +
  '"required":["type","text"]}';
const asked = `"exit":{"status":"paused","questions":[{"questions":["Go on?"],"schema":${reply}}]}`;

/** A run of the prompt "Hi" at a position that holds it. */
const runAt = (at: string) =>
  `"id":"run_1","startedAt":1795726779402,"position":{"at":"${at}",` +
  `"messages":[{"role":"user","parts":[{"type":"text","text":"Hi"}]}]},${rest}`;

const headOf = (run: string, lease = "") => `{"format":1,"id":"s","run":{${run}},${lease}${writer}}`;

/** A run whose process died while its `input` hooks reviewed the prompt. */
const reviewing = headOf(`${runAt("arrived")},"events":0`, '"lease":{"until":1},');
/** A run whose process died before it accepted the prompt. */
const accepting = headOf(`${runAt("input")},"events":0`, '"lease":{"until":1},');
/** A run that has paused in a `prompt` hook. */
const asking = headOf(`${runAt("input")},"events":4,${asked}`);
/** A run whose child has paused in a `prompt` hook. The position is the value of entry 2. */
const parent = headOf(
  '"id":"run_0","startedAt":1795726800477,"position":{"$entry":2},"counters":{"turns":1,"calls":1,"continuations":0,' +
    '"batches":1,"outputs":0,"cuts":0},"usage":{"input":1,"output":1},"state":[],"answers":[],"before":0,"events":18,' +
    `"finish":"calls","exit":{"status":"paused","questions":[{"questions":["Go on?"],"schema":${reply},` +
    '"callId":"call_1/","path":["child"]}]}',
);
const call = { id: "call_1", name: "child", input: { prompt: "Hi" } };
const parentEntries: readonly NumberedJournalEntry[] = [
  [1, { type: "message", message: { role: "user", parts: [{ type: "text", text: "Hi" }] } }],
  [2, {
    type: "value",
    value: {
      at: "tools",
      turn: 1,
      message: { role: "assistant", parts: [{ type: "call", ...call }] },
      calls: [{
        call,
        state: "waiting",
        questions: [{ questions: ["Go on?"], callId: "call_1/", path: ["child"] }],
        approval: { name: "child", input: call.input, parsed: call.input, asked: [], guards: [] },
        saved: { id: "c", ...JSON.parse(`{"run":{${runAt("input")},"events":4,${asked}}}`), version: 1, messages: [] },
      }],
    },
  }],
];

/** A store with a recorded session "s". */
async function recorded(head: string, entries: readonly NumberedJournalEntry[] = []): Promise<Store> {
  const store = durable(memory().journal);
  const { run, lease } = JSON.parse(head);
  const state = run.exit ? "paused" : "running";
  await store.journal.append(journalKey(undefined, "s"), {
    from: undefined,
    to: { holder: "writer_1", n: 1 },
    change: { run: 1, state, base: 1, waiting: 0, head, last: 0, entries: entries.map(([, entry]) => entry) },
    due: lease ? lease.until - Date.now() : null,
    created: { session: "s" },
  });
  return store;
}

/** Pauses in a `prompt` hook until a person has answered. */
const askFirst: Middleware = {
  name: "ask-first",
  prompt(ctx, next): Promise<Answer> {
    if (ctx.run.answers.length === 0) throw ctx.run.pause("Go on?");
    return next();
  },
};

const yes = [{ type: "reply", text: "Yes" }] as const;

Deno.test("a run that was stored at `arrived` has its prompt reviewed, and continues", async () => {
  const reviewed: string[] = [];
  const review: Middleware = {
    name: "review",
    input(ctx, next) {
      reviewed.push(...lines(ctx.messages));
      return next();
    },
  };
  const store = await recorded(reviewing);
  assertEquals((await store.load("s"))?.run?.position.at, "incoming");
  const assistant = agent({ model: scripted("Done."), use: [review] });
  const { status, messages } = await assistant.resume({ session: "s", store, answers: [] }).result;
  assertEquals([status, lines(messages), reviewed], ["done", ["user Hi", "assistant Done."], ["user Hi"]]);
});

Deno.test("a run that was stored at `input` accepts its prompt, and continues", async () => {
  const store = await recorded(accepting);
  assertEquals((await store.load("s"))?.run?.position.at, "prompt");
  const run = agent({ model: scripted("Done.") }).resume({ session: "s", store, answers: [] });
  const events = await Array.fromAsync(run.events, ({ type }) => type);
  const { status, messages } = await run.result;
  assertEquals([status, lines(messages)], ["done", ["user Hi", "assistant Done."]]);
  assertEquals(events.filter((type) => type.startsWith("prompt.")), ["prompt.accepted"]);
});

Deno.test("a run that was paused at `input`, and one whose child was, continue with the answer", async () => {
  const store = await recorded(asking);
  const alone = agent({ model: scripted("Done."), use: [askFirst] });
  const { status, messages } = await alone.resume({ session: "s", store, answers: yes }).result;
  assertEquals([status, lines(messages)], ["done", ["user Hi", "assistant Done."]]);

  const child = asTool(agent({ name: "child", model: scripted("Helped."), use: [askFirst] }));
  const answers = [{ ...yes[0], callId: "call_1/" }];
  const result = await agent({ model: scripted("Done."), tools: [child] })
    .resume({ session: "s", store: await recorded(parent, parentEntries), answers }).result;
  assertEquals(
    [result.status, lines(result.messages)],
    ["done", ["user Hi", "call child", "ok Helped.", "assistant Done."]],
  );
});

/** The position of a stored run as a process that knows format 1 reads it. Throws where such a process refuses the session, as it was recorded. */
function readByFormat1(head: string): string {
  const format = Number(/^\{"format":(\d+)/.exec(head)?.[1] ?? 0);
  if (format > 1) throw new TypeError(`a newer version of the package has written it, in format ${format}`);
  const { at } = JSON.parse(head).run?.position ?? { at: "end" };
  const known = ["arrived", "input", "model", "tools", "turnEnd", "stop", "promptEnd", "compact", "end", undefined];
  if (!known.includes(at)) throw new TypeError(`its run is at position "${at}", which is unknown`);
  return at ?? "tools"; // a large value, in an entry
}

/** Whether a process that knows format 1 refuses a head. */
function isRefused(head: string): boolean {
  try {
    readByFormat1(head);
    return false;
  } catch {
    return true;
  }
}

Deno.test("a process that knows the earlier names reads its own sessions, and refuses those at a position with a new name", async () => {
  assertEquals([reviewing, accepting, asking, parent].map(isRefused), [false, false, false, false]);
  const heads: string[] = [];
  const saved: Session[] = [];
  const inner = durable(memory().journal);
  const store = durable({
    ...inner.journal,
    async append(key, append) {
      heads.push(append.change?.head ?? "");
      const outcome = await inner.journal.append(key, append);
      const session = await inner.load("s");
      if (session) saved.push(session);
      return outcome;
    },
  });
  const review: Middleware = { name: "review", input: (_, next) => next() };
  await agent({ model: scripted("Done."), use: [review] }).run({ prompt: "Hi", session: "s", store }).result;
  assertEquals(
    heads.map((head, index) => [saved[index]?.run?.position.at, isRefused(head)]),
    [["incoming", true], ["prompt", true], ["model", false], [undefined, false]],
  );
});

Deno.test("a process that knows the earlier names refuses a run whose child is at a position with a new name", async () => {
  const { store, saved } = recordingStore();
  const child = asTool(agent({ name: "child", model: scripted("Helped."), use: [askFirst] }));
  const model = scripted({ calls: [["child", { prompt: "Hi" }]] }, "Done.");
  await agent({ model, tools: [child] }).run({ prompt: "Hi", session: "s", store }).result;
  assertEquals(saved.at(-1)?.run?.position.at, "tools");
  assertEquals(isRefused((await store.journal.head(journalKey(undefined, "s")))?.head ?? ""), true);
});
