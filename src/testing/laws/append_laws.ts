/**
 * The laws of stores about marks and entries: what one append stores, when it is refused, and when it is repeated.
 *
 * @module
 */
import type { Entry } from "../../core/entries.ts";
import type { Addition, Mark, OpenedSession, StoredHead } from "../../core/store.ts";
import { user } from "../../protocol/message.ts";
import { type Expect, type Laws, oddText, type TestedStore } from "./laws.ts";

/** Returns an append of texts as entries. */
function addition(
  from: Mark | undefined,
  to: Mark,
  first: number,
  texts: readonly string[],
  change: Partial<Addition> = {},
): Addition {
  const entries = texts.map((text): Entry => ({ type: "message", message: user(text) }));
  return {
    from,
    to,
    head: head(to),
    entries,
    first,
    base: 1,
    until: null,
    owner: undefined,
    run: undefined,
    ...change,
  };
}

function head({ holder, n }: Mark): string {
  return JSON.stringify({ holder, n, oddText });
}

/** Returns a session as it should be opened. */
function opened(
  mark: Mark,
  texts: readonly string[],
  { base = 1, until = null }: { readonly base?: number; readonly until?: number | null } = {},
): OpenedSession {
  const entries = texts.map((text, index) => [index + 1, { type: "message", message: user(text) }] as const);
  return { mark, base, last: texts.length, until, head: head(mark), entries: entries.slice(base - 1) };
}

/** Compares what every instance returns of a session. Instances may see the ends of leases a few milliseconds apart: each compares the clocks by itself. */
async function expectStored(
  all: readonly TestedStore[],
  expect: Expect,
  session: OpenedSession | undefined,
): Promise<void> {
  for (const store of all) {
    const seen = (until: number | null | undefined) => store === all[0] || until === null ? until : "some time";
    const opened = await store.open("s");
    const head = await store.head("s");
    const { mark, base = 1, last = 0, until, head: text, entries = [] } = session ?? {};
    const expected = session && { mark, base, last, until: seen(until), head: text };
    const compare = (subject: string, { mark, base, last, until, head }: StoredHead) =>
      expect(subject, { mark, base, last, until: seen(until), head }, expected);
    if (opened) compare("open()", opened);
    if (head) compare("head()", head);
    expect("whether open() and head() find it", [opened !== undefined, head !== undefined], [!!session, !!session]);
    expect("the entries of open()", opened?.entries ?? [], entries);
    if (session) expect("entries()", await store.entries("s", base, last), entries);
  }
}

const [a, b]: readonly [Mark, Mark] = [{ holder: "a", n: 1 }, { holder: "b", n: 1 }];

/** The laws of `append()`, `open()`, `head()` and `entries()`. */
export const appendLaws: Laws<TestedStore> = {
  async "appends entries, and replaces the head"(store, expect, _, all) {
    expect("append() of a new session", await store.append("s", addition(undefined, a, 1, ["1", "2"])), true);
    await expectStored(all, expect, opened(a, ["1", "2"]));
    const [a2, a3, a4]: readonly [Mark, Mark, Mark] = [{ holder: "a", n: 2 }, { holder: "a", n: 3 }, {
      holder: "a",
      n: 4,
    }];
    expect("append() of an entry", await store.append("s", addition(a, a2, 3, [oddText])), true);
    expect("append() of a head", await store.append("s", addition(a2, a3, 4, [], { until: 2 ** 45 })), true);
    await expectStored(all, expect, opened(a3, ["1", "2", oddText], { until: 2 ** 45 }));
    expect("append() with a base", await store.append("s", addition(a3, a4, 4, ["4", "5"], { base: 2 })), true);
    await expectStored(all, expect, opened(a4, ["1", "2", oddText, "4", "5"], { base: 2 }));
    const whole = opened(a4, ["1", "2", oddText, "4", "5"]).entries;
    for (const [first, last] of [[1, 5], [2, 2], [2, 4], [5, 5], [3, 2]] as const) {
      expect(`entries() from ${first} to ${last}`, await store.entries("s", first, last), whole.slice(first - 1, last));
    }
  },

  async "stores the lease only with a save that moves it"(store, expect, _, all) {
    const [a2, a3]: readonly [Mark, Mark] = [{ holder: "a", n: 2 }, { holder: "a", n: 3 }];
    const { until: _until, ...keeping } = addition(a, a2, 1, []);
    await store.append("s", addition(undefined, a, 1, [], { until: 1_000 }));
    expect("append() without a lease", await store.append("s", keeping), true);
    await expectStored(all, expect, opened(a2, [], { until: 1_000 }));
    expect("pending()", await store.pending(1_000, 10), ["s"]);
    expect("append() that ends the lease", await store.append("s", addition(a2, a3, 1, [])), true);
    await expectStored(all, expect, opened(a3, []));
    expect("pending() without a lease", await store.pending(Number.MAX_SAFE_INTEGER, 10), []);
  },

  async "refuses an append whose mark is not stored, and changes nothing"(store, expect, _, all) {
    const late = (from: Mark | undefined, holder: string, n: number) =>
      store.append("s", addition(from, { holder, n }, 1, ["late"], { until: 1_000 }));
    expect("append() to no session", await late(a, "a", 2), false);
    await expectStored(all, expect, undefined);
    await store.append("s", addition(undefined, a, 1, ["1"]));
    expect("append() as if there were none", await late(undefined, "b", 1), false);
    expect("append() after the mark of another holder", await late(b, "a", 2), false);
    expect("append() after another number", await late({ holder: "a", n: 2 }, "a", 3), false);
    expect("append() with the number and another holder", await late({ holder: "a", n: 2 }, "b", 1), false);
    await expectStored(all, expect, opened(a, ["1"]));
    expect("pending()", await store.pending(1_000, 10), []);
  },

  async "accepts an append that is repeated, and stores it once"(store, expect, _, all) {
    const first = addition(undefined, a, 1, ["1", "2"]);
    const second = addition(a, { holder: "a", n: 2 }, 3, ["3"]);
    for (let time = 1; time <= 3; time++) expect("append() of a new session", await store.append("s", first), true);
    await expectStored(all, expect, opened(a, ["1", "2"]));
    for (const each of [store, ...all]) expect("append() again", await each.append("s", second), true);
    await expectStored(all, expect, opened(second.to, ["1", "2", "3"]));
    expect("append() of the first one", await store.append("s", first), false);
    await expectStored(all, expect, opened(second.to, ["1", "2", "3"]));
  },

  async "does not take a session that was deleted and saved anew for the one before"(store, expect, _, all) {
    await store.append("s", addition(undefined, a, 1, ["old", "older"], { until: 1_000 }));
    await store.delete("s");
    await expectStored(all, expect, undefined);
    expect(
      "append() after the delete",
      await store.append("s", addition(a, { holder: "a", n: 2 }, 3, ["late"])),
      false,
    );
    expect("append() of a new one", await store.append("s", addition(undefined, b, 1, ["new"])), true);
    expect("append() of the old one", await store.append("s", addition(a, { holder: "a", n: 2 }, 3, ["late"])), false);
    await expectStored(all, expect, opened(b, ["new"]));
  },

  async "accepts one of several appends at once"(store, expect, _, all) {
    await store.append("s", addition(undefined, a, 1, ["1"]));
    const texts = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(index % 2 === 0 ? 1 : 150_000));
    const marks = texts.map((_, index): Mark => ({ holder: `${index}`, n: 2 }));
    const appends = texts.map((text, index) => {
      const from = all[index % all.length] ?? store;
      return from.append("s", addition(a, marks[index] ?? a, 2, [text]));
    });
    const results = await Promise.all(appends);
    expect("what append() gave, sorted", results.toSorted(), [...Array(7).fill(false), true]);
    const winner = results.indexOf(true);
    await expectStored(all, expect, opened(marks[winner] ?? a, ["1", texts[winner] ?? ""]));
  },

  async "keeps entries of every length, and many of them"(store, expect, _, all) {
    const long = [
      "x".repeat(70_000),
      "漢".repeat(70_000),
      `.${"😀".repeat(150_000)}`,
      "",
      "x".repeat(1_500_000),
      "漢".repeat(900_000),
    ]; // rows of D1 and of Durable Objects have at most 2 MB
    const many = Array.from({ length: 1_500 }, (_, index) => `${index}`);
    await store.append("s", addition(undefined, a, 1, long));
    const second = { holder: "a", n: 2 };
    expect("append() of many", await store.append("s", addition(a, second, long.length + 1, many)), true);
    await expectStored(all, expect, opened(second, [...long, ...many]));
    const large = {
      ...addition(second, { holder: "a", n: 3 }, long.length + many.length + 1, []),
      head: JSON.stringify("漢".repeat(20_000)),
    };
    expect("append() of a head of 60 KB", await store.append("s", large), true);
    for (const each of all) expect("head() of 60 KB", (await each.head("s"))?.head.length, large.head.length);
  },
};
