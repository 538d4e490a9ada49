/**
 * Versions of sessions: the saves of a run's writer and of other processes, and what is read after each of them.
 */
import { memory, user } from "@jizai/jizai";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals, assertRejects } from "@std/assert";
import { changeHead, openHead, openSession, SessionVersion } from "../../src/core/session_version.ts";
import { callingAgent, countedAdapters } from "../support/growth.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";

/** Returns state whose large value contains another one, which changes less often. */
function stateOf(chance: Chance, inner: string) {
  const fields = Array.from({ length: 20 }, (_, index) => [`field${index}`, `${chance.below(3)}`.repeat(100)]);
  return [["large", { ...Object.fromEntries(fields), inner }], ["small", chance.below(9)]] as const;
}

Deno.test("a head is read alone as with its session, after saves of the run and of other processes", async () => {
  for (const seed of seeds(60)) {
    await withSeed(seed, async () => {
      const chance = seeded(seed);
      const store = memory();
      let version = SessionVersion.none;
      let messages = [user("0")];
      let inner = "x".repeat(1_500);
      let state = stateOf(chance, inner);
      for (let step = 1; step <= 12; step++) {
        if (chance.below(3) === 0) inner = chance.one(["y", "z"]).repeat(1_500);
        state = stateOf(chance, inner);
        const isOther = step > 1 && chance.below(3) === 0;
        if (isOther) { // as a process that puts mail into the session
          const { session, version: seen } = await openHead(store, "s");
          assertEquals(await changeHead(store, "s", seen, { ...session!, id: "s", state }), true);
          version = version.followedBy((await openHead(store, "s")).version);
        } else {
          messages = chance.below(5) === 0
            ? messages.slice(0, 1 + chance.below(messages.length))
            : [...messages, user(`${step}`)];
          const next = version.next({ id: "s", state, messages }, { holder: "writer", isWriter: true });
          for (let time = 0; time < 2; time++) assertEquals(await store.append("s", next.addition), true); // its acknowledgement was lost
          version = next.version;
        }
        const { session, version: opened } = await openSession(store, "s");
        const { session: head, version: ofHead } = await openHead(store, "s");
        assertEquals(session, { id: "s", version: step, state, messages });
        assertEquals<unknown>({ ...head, messages }, session);
        for (const each of [opened, ofHead]) {
          assertEquals([each.mark, each.writer, each.last], [version.mark, version.writer, version.last]);
        }
      }
    });
  }
});

Deno.test("a session is unreadable if a large value of its head is missing, or if a newer version has written it", async () => {
  const { addition } = SessionVersion.none.next(
    { id: "s", state: [["a", "x".repeat(2_000)]], messages: [user("Hi")] },
    { holder: "a" },
  );
  const damaged = memory();
  await damaged.append("s", {
    ...addition,
    entries: addition.entries.map(() => ({ type: "message", message: user("Hi") })),
  });
  const newer = memory();
  await newer.append("s", { ...addition, head: addition.head.replace('"format":1', '"format":3') });
  for (const open of [openHead, openSession]) {
    await assertRejects(() => open(damaged, "s"), Error, 'Cannot read session "s": its entry 2 is missing');
    await assertRejects(() => open(newer, "s"), Error, "in format 3; expected 2 or lower");
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
  const run = {
    id: "r",
    startedAt: 0,
    position: { at: "model", turn: 1 },
    state: [],
    answers: [],
    before: 0,
    events: 0,
  };
  const whole = { id: "s", messages: ["a", "b", "c"].map((text) => user(text)), state: [["kept", 1]] as const };
  const session = { ...whole, run: { ...run, counters: {}, usage: {} } };
  const { addition } = SessionVersion.none.next(session as typeof whole, { holder: "a" });
  await store.append("s", addition);
  assertEquals(await store.fork("s", "fork", { at: 2 }), true);
  assertEquals(await store.load("fork"), { ...whole, id: "fork", version: 1, messages: whole.messages.slice(0, 2) });
});

Deno.test("a run stores its lease with its first save, and not again before a third of it has passed", async () => {
  const kept = memory();
  const ends: (number | null | undefined)[] = [];
  const store = durable({
    ...kept,
    append(id, addition) {
      ends.push(addition.until);
      return kept.append(id, addition);
    },
  });
  await callingAgent().run({ prompt: "Go", session: "s", store }).result;
  assertEquals([typeof ends[0], ends.at(-1), ends.slice(1, -1).filter((end) => end !== undefined)], [
    "number",
    null,
    [],
  ]);
});
