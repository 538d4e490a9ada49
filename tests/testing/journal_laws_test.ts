/**
 * `journalLaws()` finds what breaks a journal.
 */
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import type { Journal } from "../../src/core/journal.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { journalLaws } from "../../src/testing/laws/journal_laws.ts";

/** Changes a journal in memory. */
type Change = (journal: Journal) => Partial<Journal>;

const cases: Readonly<Record<string, readonly [change: Change, broken: readonly string[]]>> = {
  "takes an append after any mark": [({ append, head }) => ({
    append: async (key, addition) =>
      append(key, { ...addition, ...(addition.from && { from: (await head(key))?.mark }) }),
  }), [
    "finds no journal that was never created",
    "refuses an append whose mark is not stored, and changes nothing",
    "accepts an append that is repeated, and stores it once",
    "does not take a journal that was deleted and created anew for the one before",
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
    "deletes what has expired",
  ]],
  "refuses an append that is repeated": [({ append, head }) => ({
    async append(key, addition) {
      const { mark } = await head(key) ?? {};
      return mark?.holder === addition.to.holder && mark.n === addition.to.n ? undefined : await append(key, addition);
    },
  }), [
    "accepts an append that is repeated, and stores it once",
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
  ]],
  "stores a change whose writer has not read all mail": [({ append, head }) => ({
    async append(key, { change, ...addition }) {
      const { last = 0 } = await head(key) ?? {};
      return await append(key, { ...addition, ...(change && { change: { ...change, last } }) });
    },
  }), [
    "does the same as a plain model, whatever several instances do",
    "stores nothing of an append whose writer has not read all mail",
    "loses neither posts nor appends that happen at once",
  ]],
  "counts no posts": [({ post }) => ({ post: (key, { most: _, ...addition }) => post(key, addition) }), [
    "does the same as a plain model, whatever several instances do",
    "counts the posts that wait, up to a number",
  ]],
  "loses mail that is posted at the same time": [({ post }) => {
    const posting = new Map<string, ReturnType<Journal["post"]>>();
    return {
      post(key, addition) {
        const done = posting.get(key) ?? post(key, addition).finally(() => posting.delete(key));
        posting.set(key, done);
        return done;
      },
    };
  }, ["counts the posts that wait, up to a number", "loses neither posts nor appends that happen at once"]],
  "packs events to fewer": [({ trim }) => ({ pack: (key, run) => trim(key, run + 1) }), [
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
  ]],
  "returns the keys that are due in any order": [({ pending }) => ({
    pending: async (limit) => (await pending(limit)).toReversed(),
  }), ["finds the journals that are due"]],
  "notifies of no post": [({ post, watch }) => {
    let isPosting = false;
    return {
      async post(key, addition) {
        isPosting = true;
        return await post(key, addition).finally(() => isPosting = false);
      },
      watch: (key, watcher) => watch(key, { ...watcher, notify: () => isPosting || watcher.notify() }),
    };
  }, ["notifies the watchers of a journal of its changes"]],
  "keeps nothing longer for a lease": [({ append }) => ({
    append: (key, { due, ...addition }) => append(key, { ...addition, ...(due !== undefined && { due: null }) }),
  }), [
    "does the same as a plain model, whatever several instances do",
    "finds the journals that are due",
    "keeps a journal until its lease has ended",
  ]],
};

for (const [name, [change, expected]] of Object.entries(cases)) {
  Deno.test(`journalLaws() finds a journal that ${name}`, async () => {
    using time = new FakeTime();
    const make = (options: { expireIn?: number }) => {
      const journal = memoryJournal(options);
      return { ...journal, ...change(journal) };
    };
    const { message } = await assertRejects(() => journalLaws(make, { pass: (ms) => time.tick(ms) }), Error);
    assertEquals(Array.from(message.matchAll(/It breaks the law that it (.*):/g), ([, law]) => law), [...expected]);
  });
}
