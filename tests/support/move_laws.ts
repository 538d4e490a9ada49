/**
 * The laws of databases that version 0.1.0 of the package has written: its sessions are read, moved by their first save, and kept from its processes then.
 *
 * @module
 */
import { agent, type Event, type Message, serve, type Session, state, type Store, textOf, tool } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { type Addition, durable } from "@jizai/jizai/session/durable";
import { memoryLog } from "@jizai/jizai/session/log";
import { assert, assertEquals, AssertionError } from "@std/assert";
import * as z from "zod";
import {
  answered,
  archive,
  archived,
  type EarlierSession,
  finished,
  lost,
  lostKey,
  lostLog,
  paused,
  report,
} from "./earlier_sessions.ts";
import type { EarlierStore } from "./earlier_stores.ts";
import { eventsOf, post } from "./requests.ts";

/** A database with the schema of both versions. */
export interface SharedDatabase {
  readonly earlier: EarlierStore;
  /** Opens a store of this version as a new process does, which dies after a number of requests. Default: it lives. */
  open(requests?: number): Store;
  /** Whether a session that was moved is deleted if a process of version 0.1.0 deletes it. Default: true. */
  readonly forgets?: boolean;
}

/** Returns a function that throws in place of a process that has died: after a number of requests. */
export function dying(requests = Infinity): () => void {
  let left = requests;
  return () => {
    if (left-- <= 0) throw new Error("the process has died");
  };
}

const conversations = [finished, paused, answered, archived, archive, lost];

/** The agent of the recorded sessions. */
function assistant(model: ScriptedModel) {
  const own = state("counting.run", () => 0);
  const all = state("counting.session", () => 0, { lifetime: "session" });
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ amount: z.number() }),
    ask: true,
    execute: ({ amount }) => `Paid ${amount}`,
  });
  const look = tool({ name: "look", description: "Looks", input: z.object({ at: z.string() }), execute: () => "Seen" });
  return agent({
    model,
    tools: [pay, look],
    use: [{
      name: "counting",
      model(ctx, next) {
        for (const each of [own, all]) each.update(ctx, (n) => n + 1);
        return next();
      },
    }],
  });
}

/** Returns a session as it was recorded. */
function recorded({ text, version, lease }: EarlierSession): Session {
  const session = JSON.parse(text);
  return { ...session, version, ...(lease !== null && { lease: { ...session.lease, until: lease } }) };
}

/** Returns a session without the end of its lease, of which processes may see another one by their clocks. */
function withoutEnd(session: Session | undefined): unknown {
  const { lease, ...rest } = session ?? {};
  return { ...rest, ...(lease && { lease: { ...lease, until: 0 } }) };
}

async function putAll(earlier: EarlierStore): Promise<void> {
  for (const session of [...conversations, report]) await earlier.put(session);
}

function texts(messages: readonly Message[] = []): readonly string[] {
  return messages.map((message) =>
    message.role === "tool" ? message.results.map((result) => textOf(result)).join() : textOf(message)
  );
}

/** Continues each conversation in this version, until it is idle. */
async function moveAll(store: Store): Promise<void> {
  for (const { id } of [finished, archived, archive]) {
    const { status } = await assistant(scripted("More.")).run({ prompt: "Go on", session: id, store }).result;
    assertEquals(status, "done");
  }
  for (const session of ["paused", "answered"]) {
    if (!await store.head(session)) continue;
    const answers = [{ callId: "call_3", type: "approve" as const }];
    await assistant(scripted("Moved.")).resume({ session, store, answers }).result;
  }
  const app = serve(assistant(scripted("Recovered.")), { store, onEnd() {} });
  await (await app.recover()).over;
  await app.settled();
}

/** The operations of a process of version 0.1.0, with what it has read before or guesses. Each returns true if it has changed something, or has read the session. */
const attempts: Readonly<
  Record<string, (earlier: EarlierStore, id: string, known: Session, version: number) => Promise<boolean>>
> = {
  "load it": async (earlier, id) => await earlier.load(id) !== undefined,
  "save it": (earlier, id, known, version) => earlier.save({ ...known, id, version }),
  "save it without messages": (earlier, id, _, version) => earlier.save({ id, version, messages: [] }),
  "move its lease": (earlier, id, { lease = { until: 1 } }, version) => earlier.touch({ id, version, lease }, 2 ** 45),
  "find its lease": async (earlier, id) => (await earlier.pending(2 ** 52)).includes(id),
};

/** Checks that a process of version 0.1.0 cannot change a session, or read it. */
async function checkKeptAway({ earlier, open }: SharedDatabase, id: string, known: Session): Promise<void> {
  const store = open();
  const before = await store.load(id);
  assert(before);
  for (const version of new Set([0, 1, known.version, known.version + 1, before.version, before.version + 1])) {
    for (const [name, attempt] of Object.entries(attempts)) {
      const isDone = await attempt(earlier, id, known, version).catch(() => false);
      assertEquals([id, name, version, isDone], [id, name, version, false]);
    }
  }
  assertEquals(withoutEnd(await open().load(id)), withoutEnd(before));
}

const laws: Readonly<Record<string, (database: SharedDatabase) => Promise<void>>> = {
  async "reads the sessions, and changes none of them"({ earlier, open }) {
    await putAll(earlier);
    const store = open();
    for (const session of conversations) {
      assertEquals(withoutEnd(await store.load(session.id)), withoutEnd(recorded(session)));
      assertEquals((await store.history(session.id))?.messages, recorded(session).messages);
      assertEquals(await earlier.load(session.id), recorded(session));
    }
    assertEquals(await store.list(), conversations.map(({ id }) => id).toSorted());
    assertEquals(await store.pending(2 ** 45, 10), [lost.id, report.id]);
  },

  async "takes nothing in a session for a reference to a large value"({ earlier, open }) {
    const text = finished.text.replace('{"at":"x"}', '{"$entry":3}');
    await earlier.put({ ...finished, text });
    assertEquals((await open().head("finished"))?.head, text);
    assertEquals(await open().load("finished"), recorded({ ...finished, text }));
    await assistant(scripted("Yes.")).run({ prompt: "Sure?", session: "finished", store: open() }).result;
    const { messages } = JSON.parse(text);
    assertEquals((await open().load("finished"))?.messages.slice(0, 6), messages);
  },

  async "continues a session with the state of its middleware"({ earlier, open }) {
    await earlier.put(finished);
    const { text, messages } = await assistant(scripted("Yes.")).run({
      prompt: "Sure?",
      session: "finished",
      store: open(),
    }).result;
    assertEquals(text, "Yes.");
    assertEquals(texts(messages), ["Hi", "Hello.", "Look", "", "Saw x", "Seen x.", "Sure?", "Yes."]);
    const stored = await open().load("finished");
    assertEquals([stored?.state, stored?.messages], [[["counting.session", 4]], messages]);
  },

  async "asks the questions of a paused run, one after the other"({ earlier, open }) {
    await earlier.put(paused);
    const answer = (callId: string) =>
      assistant(scripted("It is paid.")).resume({
        session: "paused",
        store: open(),
        answers: [{ callId, type: "approve" }],
      }).result;
    assertEquals((await answer("call_3")).status, "paused");
    const { text, messages } = await answer("call_1");
    assertEquals([text, texts(messages)], ["It is paid.", ["Pay twice", "", "Paid 5,Saw y,Paid 7", "It is paid."]]);
    assertEquals((await open().load("paused"))?.state, [["counting.session", 2]]);
  },

  async "keeps the answers of a run that has paused again"({ earlier, open }) {
    await earlier.put(answered);
    const answers = [{ callId: "call_3", type: "deny" as const }];
    const { status, messages } = await assistant(scripted("One is paid.")).resume({
      session: "answered",
      store: open(),
      answers,
    }).result;
    assertEquals([status, texts(messages)[2]?.startsWith("Paid 5,Saw y,")], ["done", true]);
  },

  async "keeps the name of the session with the transcript before a compaction, which continues too"(
    { earlier, open },
  ) {
    for (const each of [archive, archived]) await earlier.put(each);
    for (const prompt of ["On", "And on"]) {
      await assistant(scripted("Yes.")).run({ prompt, session: "archived", store: open() }).result;
    }
    assertEquals((await open().load("archived"))?.archive, "archive");
    assertEquals(await open().fork("archive", "copy"), true);
    for (const session of ["archive", "copy"]) {
      const { messages } = await assistant(scripted("Yes.")).run({ prompt: "Again", session, store: open() }).result;
      assertEquals(messages.length, 7);
    }
  },

  async "recovers a run that was lost in a batch, with its message, its report and the key of its request"(
    { earlier, open },
  ) {
    for (const each of [lost, report]) await earlier.put(each);
    const log = memoryLog({ expireIn: Infinity });
    await log.append("run_lost", { after: 0, lines: lostLog, ended: false });
    await log.append(lostKey.id, { after: 0, lines: lostKey.lines, ended: true });
    const ends: string[] = [];
    const app = serve(assistant(scripted("Recovered.")), {
      store: open(),
      log,
      onEnd: ({ run, event }) => void ends.push(`${run} ${event.type}`),
    });
    const { runs, over } = await app.recover();
    await over;
    await app.settled();
    assertEquals([runs, ends], [["run_lost"], ["run_lost run.finished"]]);
    const stored = await open().load("lost");
    assertEquals(texts(stored?.messages).filter((_, index) => index !== 2), ["Hang", "", "By the way", "Recovered."]);
    assert(texts(stored?.messages)[2]?.startsWith("Saw z,"));
    assertEquals(stored?.state, [["counting.session", 2]]);
    assertEquals(await open().pending(2 ** 45, 10), []);
    const events: readonly Event[] = await eventsOf(
      post(app, "/runs", { prompt: "Hang", session: "lost" }, { "idempotency-key": "k-lost" }),
    );
    assertEquals([events[0]?.type, events.at(-1)?.type], ["run.started", "run.finished"]);
  },

  async "keeps sessions that were moved from a process of version 0.1.0"(database) {
    const { earlier, open } = database;
    await putAll(earlier);
    await moveAll(open());
    for (const session of conversations) await checkKeptAway(database, session.id, recorded(session));
    assertEquals(await earlier.pending(2 ** 52), []);
  },

  async "keeps sessions that it creates from a process of version 0.1.0"(database) {
    const store = database.open();
    await assistant(scripted("Hello.")).run({ prompt: "Hi", session: "created", store }).result;
    await checkKeptAway(database, "created", { id: "created", version: 0, messages: [] });
  },

  async "creates no session that a process of version 0.1.0 has created meanwhile"({ earlier, open }) {
    const addition = await firstAppend("s", open());
    await earlier.put({ ...finished, id: "s", text: finished.text.replace('"id":"finished"', '"id":"s"') });
    assertEquals(await open().append("s", addition), false);
    assertEquals((await open().load("s"))?.messages, recorded(finished).messages);
  },

  async "moves a session once if two processes move it, and again if an acknowledgement was lost"(
    { earlier, open },
  ) {
    await putAll(earlier);
    for (const { id } of conversations) {
      const moves = [await firstAppend(id, open()), await firstAppend(id, open())];
      const results = await Promise.all(moves.map((move) => open().append(id, move)));
      assertEquals(results.toSorted(), [false, true]);
      const winner = moves[results.indexOf(true)];
      assert(winner);
      const stored = await open().open(id);
      assertEquals(await open().append(id, winner), true);
      const { until: _, ...again } = await open().open(id) ?? {};
      assertEquals({ until: stored?.until, ...again }, { ...stored });
      assertEquals(stored?.mark, winner.to);
    }
  },

  async "reads, recovers and moves a session after a process died in the middle of a move"(database) {
    const { earlier, open } = database;
    for (let requests = 0, isMoved = false; !isMoved; requests++) {
      await earlier.put(lost);
      const move = await firstAppend("lost", open());
      isMoved = await open(requests).append("lost", move).catch(() => false);
      const { version = 0, ...found } = await open().load("lost") ?? {};
      assertEquals(withoutEnd({ ...recorded(lost), ...found, version: lost.version }), withoutEnd(recorded(lost)));
      assertEquals(version, lost.version + Number((await open().head("lost"))?.mark.holder !== ""));
      assertEquals([await open().list(), await open().pending(2 ** 45, 10)], [["lost"], ["lost"]]);
      const { runs, over } = await serve(assistant(scripted("Recovered.")), { store: open() }).recover();
      await over;
      assertEquals([requests, runs], [requests, ["run_lost"]]);
      assertEquals(texts((await open().load("lost"))?.messages).at(-1), "Recovered.");
      await checkKeptAway(database, "lost", recorded(lost));
      assert(requests < 30);
      await open().delete("lost");
      assertEquals([await open().load("lost"), await open().list()], [undefined, []]);
    }
  },

  async "deletes a session for both versions"(database) {
    const { earlier, open, forgets = true } = database;
    await putAll(earlier);
    await open().delete("paused");
    await moveAll(open());
    await open().delete("finished");
    if (forgets) await earlier.delete("archive");
    for (const session of forgets ? [finished, archive] : [finished]) {
      const { id } = session;
      assertEquals([await open().load(id), await earlier.load(id)], [undefined, undefined]);
      assertEquals(await earlier.save(recorded(session)), false);
      assertEquals(await open().save({ id, version: 0, messages: [] }), 1);
      assertEquals(await open().load(id), { id, version: 1, messages: [] });
      await checkKeptAway(database, id, recorded(session));
    }
    assertEquals(await earlier.load("paused"), undefined);
  },
};

/** Returns what the first save of a process appends: that of a new session, or the move of an earlier one. */
async function firstAppend(id: string, store: Store): Promise<Addition> {
  const appended: Addition[] = [];
  const append = (_: string, addition: Addition) => {
    appended.push(addition);
    return Promise.resolve(true);
  };
  await durable({ ...store, append }).save(await store.load(id) ?? { id, version: 0, messages: [] });
  const [addition] = appended;
  assert(addition);
  return addition;
}

/** Tests a database. `make` empties it. Throws an error that names the broken law. */
export async function moveLaws(make: () => SharedDatabase | Promise<SharedDatabase>): Promise<void> {
  for (const [name, law] of Object.entries(laws)) {
    try {
      await law(await make());
    } catch (cause) {
      throw new AssertionError(`It breaks the law that it ${name}: ${cause instanceof Error ? cause.stack : cause}`);
    }
  }
}
