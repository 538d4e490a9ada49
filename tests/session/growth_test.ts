import { agent, memory, type Middleware, type Model, serve, tool, user } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { Chat } from "../support/chat.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import {
  callingAgent,
  callingRun,
  type Counted,
  countedAdapters,
  type Counts,
  longTranscript,
  type SessionSize,
} from "../support/growth.ts";
import { post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

const short: SessionSize = { messages: 10, characters: 1_000 };
const long: SessionSize = { messages: 5_000, characters: 2_000 };

/** Opens adapters with a session of a size. */
async function openedWith(size: SessionSize, name: keyof typeof countedAdapters = "SQLite"): Promise<Counted> {
  const adapters = countedAdapters[name]();
  await adapters.store.save({ id: "s", version: 0, messages: longTranscript(size) });
  adapters.count();
  return adapters;
}

/** Counts what one run with ten calls sends to SQLite in a session of a size. Time stands still: a run looks for mail every second, and renews its lease. */
async function countsOf(size: SessionSize, use: readonly Middleware[]): Promise<Counts> {
  using _ = new FakeTime();
  const { count, ...adapters } = await openedWith(size);
  await callingRun(adapters, "s", callingAgent(use));
  return count();
}

const reminder = user("Mind the gap.", "reminder");
const uses: Readonly<Record<string, () => readonly Middleware[]>> = {
  "no middleware": () => [],
  "compaction()": () => [compaction({ at: 100_000_000 })],
  "redact()": () => [redact()],
  "a hook that changes each request": () => [{
    name: "reminder",
    model: ({ request }, next) => next({ request: { messages: [...request.messages, reminder] } }),
  }],
  "a hook that copies the transcript in each turn": () => [{
    name: "copy",
    turn: ({ transcript }, next) => next({ transcript: [...transcript] }),
  }],
  "a hook that adds to the transcript in each turn": () => [{
    name: "reminder",
    turn: ({ transcript }, next) => next({ transcript: [...transcript, reminder] }),
  }],
};
for (const [name, use] of Object.entries(uses)) {
  Deno.test(`a run sends as much after 5,000 messages as after 10, beneath ${name}`, async () => {
    const [few, many] = [await countsOf(short, use()), await countsOf(long, use())];
    assertEquals([many.statements, many.rows], [few.statements, few.rows]);
    assert(many.sent <= 1.3 * few.sent, `${many.sent} characters after 5,000 messages, ${few.sent} after 10`);
  });
}

Deno.test("a regenerated answer is stored as a cut: nothing is stored again, and the history has no removed message", async () => {
  const { count, store } = countedAdapters.SQLite();
  const app = serve(agent({ model: scripted("One.", "Two.") }), { store, wires: [aiSdkUi()] });
  await store.save({ id: "chat", version: 0, messages: longTranscript({ messages: 1_000, characters: 1_000 }) });
  const chat = new Chat(app);
  await chat.sendMessage({ text: "Hi" });
  count();
  await chat.regenerate();
  await app.settled();
  const { sent } = count();
  assert(sent < 20_000, `${sent} characters were sent`);
  const { messages = [] } = await store.history("chat", { limit: 2_000 }) ?? {};
  assertEquals(lines(messages.slice(1_000)), ["user Hi", "assistant Two."]);
});

Deno.test("a request opens the session once, and otherwise reads its head", async () => {
  const opened: string[] = [];
  const { journal } = memory();
  const store = durable({
    ...journal,
    head: (key) => journal.head(key).finally(() => void opened.push("head")),
    open: (key) => journal.open(key).finally(() => void opened.push("open")),
  });
  await store.save({ id: "s", version: 0, messages: longTranscript(short) });
  opened.length = 0;
  const app = serve(callingAgent(), { store, onEnd: () => {} });
  await (await post(app, "/runs", { prompt: "Go", session: "s" })).text();
  await app.settled();
  assertEquals(opened.filter((each) => each === "open"), ["open"]);
});

/** Returns the rows that a turn writes, with one call or with none, beside those of the rest of a run. */
async function rowsOfTurn(name: "D1" | "a Durable Object", calls: boolean): Promise<number> {
  const rowsOf = async (turns: number) => {
    using _ = new FakeTime(); // it stands still
    const { count, ...adapters } = await openedWith(short, name);
    let turn = 0;
    const continuing: Middleware = {
      name: "continuing",
      stop: (_, next) => ++turn < turns ? Promise.resolve({ type: "continue", messages: [user("Go on.")] }) : next(),
    };
    const silent = agent({ model: scripted(...Array(turns).fill("Hm.")), use: [continuing], limits: { turns: 20 } });
    await callingRun(adapters, "s", calls ? callingAgent([], turns) : silent);
    return count().rows;
  };
  return (await rowsOf(9) - await rowsOf(4)) / 5;
}
for (const name of ["D1", "a Durable Object"] as const) {
  Deno.test(`a turn writes at most 8 rows to ${name}, and at most 14 with a call`, async () => {
    const [plain, calling] = [await rowsOfTurn(name, false), await rowsOfTurn(name, true)];
    assert(plain <= 8, `${plain} rows`);
    assert(calling <= 14, `${calling} rows`);
  });
}

for (const name of ["SQLite", "D1", "a Durable Object"] as const) {
  Deno.test(`a run stores a call and a result of 2.5 MB each in ${name}`, async () => {
    const { store } = await openedWith(short, name);
    const large = "漢".repeat(850_000);
    const echo = tool({
      name: "echo",
      description: "",
      input: z.object({ text: z.string() }),
      execute: ({ text }) => text,
    });
    const model = scripted({ calls: [["echo", { text: large }]] }, large);
    await callingRun({ store }, "s", agent({ model, tools: [echo], limits: { output: 10_000_000 } }));
    const { messages = [] } = await store.load("s") ?? {};
    assertEquals(messages.slice(short.messages).map((message) => JSON.stringify(message).split(large).length - 1), [
      0,
      1,
      1,
      1,
    ]);
  });
}

/** A model that says 200 words, 20 milliseconds apart. */
const speaker: Model = {
  id: "speaker",
  async *stream() {
    for (let word = 0; word < 200; word++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield [{ type: "text", text: "word " }];
    }
    yield [{ type: "finish", reason: "stop" }];
  },
};

Deno.test("200 words 20 ms apart are at most 60 appends to a journal", async () => {
  using time = new FakeTime();
  const { store } = await openedWith(short);
  let appends = 0;
  const { append } = store.journal;
  const counted = durable({
    ...store.journal,
    append(key, addition) {
      appends++;
      return append(key, addition);
    },
  });
  await advanceUntilSettled(time, callingRun({ store: counted }, "s", agent({ model: speaker })));
  assert(appends <= 60, `${appends} appends`);
});
