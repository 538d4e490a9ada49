/**
 * Versions of sessions: the saves of a run's writer and of other processes, and what is read after each of them.
 */
import { memory, user } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { journalKey } from "../../src/core/journal.ts";
import { noCounters } from "../../src/core/position.ts";
import { openHead, openSession, SessionVersion } from "../../src/core/session_version.ts";
import { callingAgent, countedAdapters } from "../support/growth.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";

const key = journalKey(undefined, "s");

/** The parts of a change of a session without a run and mail. */
const unposted = { run: 0, waiting: 0, readUntil: 0 };

/** Returns state whose large value contains another one, which changes less often. */
function stateOf(chance: Chance, inner: string) {
  const fields = Array.from({ length: 20 }, (_, index) => [`field${index}`, `${chance.below(3)}`.repeat(100)]);
  return [["large", { ...Object.fromEntries(fields), inner }], ["small", chance.below(9)]] as const;
}

Deno.test("a head is read alone as with its session, after saves of the run and of other processes", async () => {
  for (const seed of seeds(60)) {
    await withSeed(seed, async () => {
      const chance = seeded(seed);
      const { journal } = memory();
      let version = SessionVersion.none;
      let messages = [user("0")];
      let inner = "x".repeat(1_500);
      let state = stateOf(chance, inner);
      for (let step = 1; step <= 12; step++) {
        if (chance.below(3) === 0) inner = chance.one(["y", "z"]).repeat(1_500);
        state = stateOf(chance, inner);
        const isOther = step > 1 && chance.below(3) === 0;
        if (isOther) { // as a process that gives a pause another number
          const seen = await openHead(journal, key);
          assert(seen);
          const { run, waiting } = seen.head;
          const other = { run, waiting, readUntil: seen.session.readUntil ?? 0, holder: "other" };
          const { from, to, change } = seen.version.next({ ...seen.session, state }, other);
          assertEquals((await journal.append(key, { from, to, change }))?.stored, true);
          version = version.followedBy((await openHead(journal, key))?.version ?? version);
        } else {
          messages = chance.below(5) === 0
            ? messages.slice(0, 1 + chance.below(messages.length))
            : [...messages, user(`${step}`)];
          const next = version.next({ id: "s", state, messages }, { ...unposted, holder: "writer" });
          for (let time = 0; time < 2; time++) { // its acknowledgement was lost
            const append = { ...next, ...(!next.from && { created: { session: "s" } }) };
            assertEquals((await journal.append(key, append))?.stored, true);
          }
          version = next.version;
        }
        const opened = await openSession(journal, key);
        const head = await openHead(journal, key);
        assertEquals(opened?.session, { id: "s", version: step, state, messages });
        assertEquals<unknown>({ ...head?.session, messages }, opened?.session);
        for (const each of [opened, head]) {
          assertEquals([each?.version.mark, each?.version.last], [version.mark, version.last]);
        }
      }
    });
  }
});

Deno.test("a session is unreadable if a large value of its head is missing, or if a newer version has written it", async () => {
  const session = { id: "s", state: [["a", "x".repeat(2_000)]], messages: [user("Hi")] } as const;
  const { change, ...marks } = SessionVersion.none.next(session, { ...unposted, holder: "a" });
  const created = { session: "s" };
  const [damaged, newer] = [memory().journal, memory().journal];
  const entries = change.entries.map(() => ({ type: "message", message: user("Hi") } as const));
  await damaged.append(key, { ...marks, created, change: { ...change, entries } });
  const head = change.head.replace('"format":1', '"format":4');
  await newer.append(key, { ...marks, created, change: { ...change, head } });
  for (const open of [openHead, openSession]) {
    await assertRejects(() => open(damaged, key), Error, 'Cannot read session "s": its entry 2 is missing');
    await assertRejects(() => open(newer, key), Error, "in format 4; expected 3 or lower");
  }
});

Deno.test("a session that was opened cannot be changed: neither its list of messages nor a part of them", async () => {
  for (const store of [memory(), countedAdapters.SQLite().store]) {
    await store.save({ id: "s", version: 0, messages: [user("Hi")] });
    const { messages = [] } = await store.load("s") ?? {};
    const [message] = messages;
    assertEquals([messages, message, message?.role === "user" && message.parts[0]].map(Object.isFrozen), [
      true,
      true,
      true,
    ]);
  }
});

Deno.test("a fork has the transcript as it was after an entry, and neither the run nor its mail", async () => {
  const store = memory();
  const position = { at: "model", turn: 1 } as const;
  const none = { counters: noCounters, usage: { input: 0, output: 0 }, state: [], answers: [] };
  const run = { id: "r", startedAt: 0, position, ...none, before: 0, events: 0 };
  const whole = { id: "s", messages: ["a", "b", "c"].map((text) => user(text)), state: [["kept", 1]] as const };
  const mail = [{ type: "finish" }] as const;
  assertEquals(await store.save({ ...whole, version: 0, run, mail }), 1);
  assertEquals((await store.load("s"))?.mail, mail);
  assertEquals(await store.fork("s", "fork", { at: 2 }), true);
  assertEquals(await store.load("fork"), { ...whole, id: "fork", version: 1, messages: whole.messages.slice(0, 2) });
});

Deno.test("a run stores its lease with its first save, and not again before a third of it has passed", async () => {
  const { journal } = memory();
  const dues: (number | null | undefined)[] = [];
  const store = durable({
    ...journal,
    append(key, append) {
      dues.push(append.due);
      return journal.append(key, append);
    },
  });
  await callingAgent().run({ prompt: "Go", session: "s", store }).result;
  assertEquals([dues[0], dues.at(-1), dues.slice(1, -1).filter((due) => due !== undefined)], [30_000, null, []]);
});
