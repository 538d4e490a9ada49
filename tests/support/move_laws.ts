/**
 * The laws of databases that earlier versions of the package have written. A session moves to a journal once it is read, or once the lease of its run has ended.
 *
 * @module
 */
import { agent, type Message, serve, type Session, state, type Store, textOf, tool } from "@jizai/jizai";
import { scripted, type ScriptedModel } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, AssertionError, assertRejects } from "@std/assert";
import * as z from "zod";
import {
  answered,
  archive,
  archived,
  type EarlierSession,
  finished,
  lost,
  paused,
  readWithEntries,
  report,
  withEntries,
} from "./earlier_sessions.ts";
import type { EarlierStore } from "./earlier_stores.ts";

/** A database with the schema of both versions. */
export interface SharedDatabase {
  readonly earlier: EarlierStore;
  /** Opens a store of this version as a new process does, which dies after a number of requests. Default: it lives. */
  open(requests?: number): Store;
}

/** Returns a function that throws in place of a process that has died: after a number of requests. */
export function dying(requests = Infinity): () => void {
  let left = requests;
  return () => {
    if (left-- <= 0) throw new Error("the process has died");
  };
}

/** A time that is later than the end of each lease, in milliseconds. */
const anyTime = 2 ** 42;

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
    if (!await store.load(session)) continue;
    const answers = [{ callId: "call_3", type: "approve" as const }];
    await assistant(scripted("Moved.")).resume({ session, store, answers }).result;
  }
  const app = serve(assistant(scripted("Recovered.")), { store, onEnd() {} });
  await (await app.recover()).over;
  await app.settled();
}

const laws: Readonly<Record<string, (database: SharedDatabase) => Promise<void>>> = {
  async "lists and reads the sessions, which move then"({ earlier, open }) {
    await putAll(earlier);
    assertEquals(await open().list(), conversations.map(({ id }) => id).toSorted());
    assertEquals([await open().list({ limit: 2 }), await open().list({ after: "archived", limit: 2 })], [
      ["answered", "archive"],
      ["finished", "lost"],
    ]);
    for (const session of conversations) {
      assertEquals(withoutEnd(await open().load(session.id)), withoutEnd(recorded(session)));
      assertEquals((await open().history(session.id))?.messages, recorded(session).messages);
      assertEquals(await earlier.load(session.id), undefined);
    }
    assertEquals(await open().list(), conversations.map(({ id }) => id).toSorted());
    assertEquals((await open().journal.pending(10, anyTime)).length, 2); // of the lost run, and of its report
  },

  async "moves a session with entries: its history, its large values, its rules and its mail"({ earlier, open }) {
    await earlier.putEntries(withEntries);
    assertEquals(await open().list(), ["entries"]);
    assertEquals(withoutEnd(await open().load("entries")), readWithEntries.session);
    assertEquals(await open().list(), ["entries"]);
    assertEquals((await open().history("entries"))?.messages, readWithEntries.history);
    assertEquals(await open().fork("entries", "before", { at: 3 }), true);
    assertEquals(texts((await open().load("before"))?.messages), ["Plan a trip", "See the temples.", "And food?"]);
  },

  async "recovers a run of a session with entries, with its message"({ earlier, open }) {
    await earlier.putEntries(withEntries);
    const { runs, over } = await serve(assistant(scripted("Recovered.")), { store: open() }).recover();
    await over;
    assertEquals(runs, ["run_entries"]);
    const { messages, state, version = 0 } = await open().load("entries") ?? {};
    const [plan, summary, hang, calls, , message, answer, ...more] = texts(messages);
    assertEquals([plan, hang, calls, message, answer, more], [
      "Plan a trip",
      "Hang",
      "",
      "By the way",
      "Recovered.",
      [],
    ]);
    assert(summary?.startsWith("This is a summary"));
    assertEquals([state?.[0], state?.[1]?.[0], version > 4], [["counting.session", 2], "notes", true]);
    assertEquals(await open().journal.pending(10, anyTime), []);
  },

  async "keeps the sessions of owners apart"({ earlier, open }) {
    for (const owner of ["ada", "bob"]) {
      const id = JSON.stringify([owner, "s1"]);
      const session = { ...JSON.parse(finished.text), id, owner };
      await earlier.put({ ...finished, id, text: JSON.stringify(session) });
    }
    await earlier.put(finished);
    const listed = (owner?: string) => open().list({ owner });
    const all = [["finished"], ["s1"], ["s1"], []];
    assertEquals([await listed(), await listed("ada"), await listed("bob"), await listed("eve")], all);
    const stranger = { owner: "eve" };
    assertEquals([await open().load("s1"), await open().load("s1", stranger)], [undefined, undefined]);
    assertEquals(await open().load('["ada","s1"]'), undefined);
    const odd = '["eve","s1"]'; // an id of a session without an owner
    await earlier.put({
      ...finished,
      id: odd,
      text: finished.text.replace('"id":"finished"', `"id":${JSON.stringify(odd)}`),
    });
    assertEquals([await open().load("s1"), await open().load("s1", stranger)], [undefined, undefined]);
    assertEquals((await open().load(odd))?.messages, recorded(finished).messages);
    await open().delete(odd);
    const { id, owner, messages } = await open().load("s1", { owner: "ada" }) ?? {};
    assertEquals([id, owner, messages], ["s1", "ada", recorded(finished).messages]);
    assertEquals([await listed(), await listed("ada"), await listed("bob"), await listed("eve")], all);
  },

  async "throws for a session that is damaged, leaves it as it is, and recovers the others"({ earlier, open }) {
    for (const each of [lost, report]) await earlier.put(each);
    await earlier.put({ ...lost, id: "damaged", text: '{"messages":7,"id":"damaged"}' });
    for (const load of [() => open().load("damaged"), () => open().journal.pending(10)]) {
      await assertRejects(load, Error, 'Cannot read session "damaged"');
    }
    const store = open();
    await store.journal.pending(10).catch(() => {});
    assertEquals((await store.journal.pending(10)).length, 2);
    assertEquals(await store.list(), ["damaged", "lost"]);
    await store.delete("damaged");
    assertEquals(await open().load("damaged"), undefined);
  },

  async "takes nothing in a session for a reference to a large value"({ earlier, open }) {
    const text = finished.text.replace('{"at":"x"}', '{"$entry":3}');
    await earlier.put({ ...finished, text });
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

  async "recovers a run that was lost in a batch, with its message and its report"(
    { earlier, open },
  ) {
    for (const each of [lost, report]) await earlier.put(each);
    const ends: string[] = [];
    const app = serve(assistant(scripted("Recovered.")), {
      store: open(),
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
    assertEquals(await open().journal.pending(10, anyTime), []);
  },

  async "moves a session once if two processes read it"({ earlier, open }) {
    await putAll(earlier);
    for (const { id } of conversations) {
      const [one, other] = await Promise.all([open().load(id), open().load(id)]);
      assertEquals(withoutEnd(one), withoutEnd(other));
      assertEquals((await open().load(id))?.version, one?.version);
    }
    await moveAll(open());
    assertEquals([await open().list(), await open().journal.pending(10, anyTime)], [
      conversations.map(({ id }) => id).toSorted(),
      [],
    ]);
  },

  async "reads, recovers and deletes a session after a process died in the middle of a move"({ earlier, open }) {
    for (let requests = 0, isMoved = false; !isMoved; requests++) {
      await earlier.put(lost);
      isMoved = await open(requests).load("lost").then(() => true, () => false);
      const store = open();
      assertEquals([await store.list(), (await store.journal.pending(10)).length], [["lost"], 1]);
      assertEquals(withoutEnd(await store.load("lost")), withoutEnd(recorded(lost)));
      const { runs, over } = await serve(assistant(scripted("Recovered.")), { store: open() }).recover();
      await over;
      assertEquals([requests, runs], [requests, ["run_lost"]]);
      assertEquals(texts((await open().load("lost"))?.messages).at(-1), "Recovered.");
      assert(requests < 30);
      await open().delete("lost");
      assertEquals([await open().load("lost"), await open().list()], [undefined, []]);
      assertEquals(await earlier.load("lost"), undefined);
    }
  },

  async "deletes a session that has not moved, and creates it anew"({ earlier, open }) {
    await putAll(earlier);
    await open().delete("paused");
    assertEquals([await open().load("paused"), await earlier.load("paused")], [undefined, undefined]);
    assertEquals(await open().save({ id: "paused", version: 0, messages: [] }), 1);
    assertEquals(await open().fork("archive", "finished"), false); // there is one
    assertEquals(await open().save({ id: "archive", version: 0, messages: [] }), undefined);
  },
};

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
