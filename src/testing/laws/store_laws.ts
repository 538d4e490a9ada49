/**
 * The laws of stores, and of their leases.
 *
 * @module
 */
import { sessionsOf } from "../../core/session_version.ts";
import type { StoreAdapter } from "../../core/store.ts";
import { appendLaws } from "./append_laws.ts";
import {
  checkLaws,
  expireIn,
  type ExpiryLaws,
  isList,
  type LawOptions,
  type Laws,
  long,
  type Make,
  runningSession,
  sessions,
  sessionWith,
  type TestedStore,
} from "./laws.ts";
import { transcriptLaws } from "./transcript_laws.ts";

// The laws of stores about leases.

/** The laws about finding the sessions whose process may have died, and about giving them to one process. */
const leaseLaws: Laws<TestedStore> = {
  async "finds the sessions whose lease has ended"(store, expect) {
    const ends = [["c", 3_000], ["a'b", 1_000], ["😀", 2_000], ["late", 2 ** 45]] as const;
    for (const [id, until] of ends) await store.save({ ...sessionWith(id, "Hi"), lease: { until } });
    await store.save(sessionWith("free", "Hi"));
    expect("pending() before all of them", await store.pending(999, 10), []);
    expect("pending() at the end of one", await store.pending(1_000, 10), ["a'b"]);
    expect("pending()", await store.pending(5_000, 10), ["a'b", "😀", "c"]);
    expect("pending() of at most two", await store.pending(5_000, 2), ["a'b", "😀"]);
    await store.save({ ...sessionWith("a'b", "Hi", 1), lease: { until: 4_000, closing: "stop" } });
    await store.save(sessionWith("😀", "Hi", 1));
    expect("pending() after saves", await store.pending(5_000, 10), ["c", "a'b"]);
    const { lease } = await store.load("a'b") ?? {};
    expect("the lease that load() gave", lease, { until: 4_000, closing: "stop" });
    await store.delete("c");
    expect("pending() after delete()", await store.pending(5_000, 10), ["a'b"]);
    expect("pending() of all times", await store.pending(Number.MAX_SAFE_INTEGER, 10), ["a'b", "late"]);
  },

  async "moves a lease only for a caller that knows the session"(store, expect) {
    const leased = (version: number, until: number) => ({ ...sessionWith("s", "Hi", version), lease: { until } });
    await store.save(leased(0, 1_000));
    await store.save(sessionWith("free", "Hi"));
    expect("touch() with another lease", await store.touch(leased(1, 999), 5_000), false);
    expect("touch() without the lease", await store.touch(sessionWith("s", "Hi", 1), 5_000), false);
    expect("touch() with another version", await store.touch(leased(2, 1_000), 5_000), false);
    expect("touch() of no session", await store.touch({ ...leased(1, 1_000), id: "none" }, 5_000), false);
    expect("touch() of a session without a lease", await store.touch(sessionWith("free", "Hi", 1), 5_000), false);
    expect("pending() after that", await store.pending(1_000, 10), ["s"]);
    expect("touch()", await store.touch(leased(1, 1_000), 5_000), true);
    expect("load()", await store.load("s"), leased(1, 5_000));
    expect("pending()", [await store.pending(4_999, 10), await store.pending(5_000, 10)], [[], ["s"]]);
    expect("touch() again with the old lease", await store.touch(leased(1, 1_000), 9_000), false);
    expect("touch() with the new lease", await store.touch(leased(1, 5_000), 7_000), true);
    expect("save() of that version", await store.save(leased(1, 6_000)), 2);
    expect("load() after save()", await store.load("s"), leased(2, 6_000));
    expect("pending() after save()", [await store.pending(6_999, 10), await store.pending(5_999, 10)], [["s"], []]);
  },

  async "lets one of several processes move a lease"(store, expect) {
    for (const until of [1_000, 2_000, 3_000]) {
      const before = (await store.load("s"))?.version ?? 0;
      const session = { ...sessionWith("s", "x".repeat(100_000), before), lease: { until } };
      const version = await store.save(session) ?? 0;
      const found = { ...session, version };
      const moved = await Promise.all([10, 20, 30, 40].map((more) => store.touch(found, until + more)));
      expect("what touch() gave, sorted", moved.toSorted(), [false, false, false, true]);
      const end = until + 10 * (moved.indexOf(true) + 1);
      expect("the session after that", await store.load("s"), { ...found, lease: { until: end } });
      const both = await Promise.all([
        store.touch({ ...found, lease: { until: end } }, end + 1),
        store.save({ ...found, lease: { until: end + 2 } }),
      ]);
      const last = both[1] === undefined ? end + 1 : end + 2;
      expect("the lease after touch() and save() at once", (await store.load("s"))?.lease, { until: last });
      expect("pending() after that", await store.pending(last, 10), ["s"]);
      expect("pending() before that", await store.pending(last - 1, 10), []);
    }
  },
};

/** The laws about leases of sessions that expire. */
const leaseExpiryLaws: ExpiryLaws<TestedStore> = (pass) => ({
  async "deletes the lease of what has expired"(store, expect) {
    const lease = { until: 1_000 };
    await store.save({ ...sessionWith("old", "Hi"), lease });
    await store.save({ ...sessionWith("used", "Hi"), lease: { until: 2_000 } });
    await pass(expireIn - 100);
    expect("pending() before it expires", await store.pending(5_000, 10), ["old", "used"]);
    const used = { ...sessionWith("used", "Hi", 1), lease: { until: 2_000 } };
    expect("touch() before it expires", await store.touch(used, 3_000), true);
    await pass(200);
    expect("pending()", await store.pending(5_000, 10), ["used"]);
    const old = { ...sessionWith("old", "Hi", 1), lease };
    expect("touch() of what has expired", await store.touch(old, 9_000), false);
    expect("load() of what was touched", (await store.load("used"))?.lease, { until: 3_000 });
  },

  async "keeps a session until its lease has ended"(store, expect) {
    const end = Date.now() + 86_400_000;
    const leased = (version: number, until: number) => ({ ...runningSession("s", version), lease: { until } });
    await store.save(leased(0, end));
    await pass(expireIn + 100);
    expect("load() during the lease", await store.load("s"), leased(1, end));
    expect("touch() during the lease", await store.touch(leased(1, end), end + 1), true);
    await pass(expireIn + 100);
    expect("load() after touch()", await store.load("s"), leased(1, end + 1));
    expect("list() after touch()", await store.list(), ["s"]);
    expect("pending() after touch()", await store.pending(end + 1, 10), ["s"]);
    expect("save() without a lease", await store.save(sessionWith("s", "Hi", 1)), 2);
    await pass(expireIn - 100);
    expect("load() before it expires", await store.load("s"), sessionWith("s", "Hi", 2));
    await pass(200);
    expect("load() after it has expired", await store.load("s"), undefined);
    expect("list() after it has expired", await store.list(), []);
  },
});

// The laws of stores, which the adapter of a user is tested with.

/**
 * Tests a store against the laws of the port. `make` creates a new, empty store for each law. Throws an `Error` that names each broken law, and how it
 * is broken. A store
 *
 * - returns every session as it was saved, of every length, in a copy;
 * - counts the saves of a session, and refuses a save of another version, so that one of several writers wins;
 * - returns a session before or after a save, and never in between;
 * - returns nothing of a session that was deleted or has expired;
 * - keeps a session until its lease has ended;
 * - lists the ids in a stable order;
 * - finds the sessions whose lease has ended, and moves a lease for one of several processes;
 * - keeps what a newer version of the package has written, which this one does not read;
 * - returns a transcript that grows, shrinks and changes in the middle as it was saved, whichever instance saved it, and shares nothing with its callers.
 *
 * `make` may return several instances on one database. They are used in turn, as processes that share the database would use them.
 *
 * ```ts
 * import { memory } from "@jizai/jizai";
 * import { storeLaws } from "@jizai/jizai/testing";
 * import { assertRejects } from "@std/assert";
 *
 * await storeLaws(() => memory());
 *
 * const forgetful = () => ({ ...memory(), open: () => Promise.resolve(undefined) });
 * await assertRejects(() => storeLaws(forgetful), Error, "returns a session as it was saved");
 * ```
 */
export async function storeLaws(make: Make<StoreAdapter>, options: LawOptions = {}): Promise<void> {
  const expiry: ExpiryLaws<TestedStore> = (pass) => ({ ...expiryLaws(pass), ...leaseExpiryLaws(pass) });
  const makeTested: Make<TestedStore> = async (options) => {
    const made = await make(options);
    return (isList(made) ? made : [made]).map((adapter) => ({ ...adapter, ...sessionsOf(adapter) }));
  };
  await checkLaws(makeTested, { ...laws, ...appendLaws, ...transcriptLaws, ...leaseLaws }, expiry, options);
}

const laws: Laws<TestedStore> = {
  async "finds no session that was never saved"(store, expect) {
    expect("load()", await store.load("none"), undefined);
    expect("list()", await store.list(), []);
    await store.delete("none");
    expect("save() of version 3", await store.save(sessionWith("none", "Hi", 3)), undefined);
    expect("load() after that", await store.load("none"), undefined);
  },

  async "returns a session as it was saved"(store, expect) {
    for (const session of sessions) {
      expect("save()", await store.save(session), 1);
      expect(`load("${session.id}")`, await store.load(session.id), { ...session, version: 1 });
    }
  },

  async "returns a long session as it was saved"(store, expect) {
    for (const [version, text] of long.entries()) {
      expect("save()", await store.save(sessionWith("long", text, version)), version + 1);
      expect(`load() of text number ${version}`, await store.load("long"), sessionWith("long", text, version + 1));
    }
  },

  async "copies what it saves and what it returns"(store, expect) {
    const text = "as it was";
    const parts = [{ type: "text" as const, text }];
    const session = { ...sessionWith("mine", text), messages: [{ role: "user" as const, parts }] };
    await store.save(session);
    parts.push({ type: "text", text: "more" });
    session.messages.length = 0;
    const loaded = await store.load("mine");
    expect("load() after the given object has changed", loaded, sessionWith("mine", text, 1));
    try {
      Object.assign(loaded?.messages[0] ?? {}, { role: "unknown" });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // a frozen object cannot be changed either
    }
    expect("load() after the loaded object has changed", await store.load("mine"), sessionWith("mine", text, 1));
  },

  async "counts the saves of a session"(store, expect) {
    for (let version = 0; version < 5; version++) {
      expect("save()", await store.save(sessionWith("counted", `${version}`, version)), version + 1);
      expect("load()", await store.load("counted"), sessionWith("counted", `${version}`, version + 1));
    }
    expect("save() of another session", await store.save(sessionWith("another", "Hi")), 1);
    expect("load() of the first", await store.load("counted"), sessionWith("counted", "4", 5));
  },

  async "refuses a save of another version"(store, expect) {
    await store.save(sessionWith("s", "1"));
    await store.save(sessionWith("s", "2", 1));
    for (const version of [0, 1, 3]) {
      expect(`save() of version ${version}`, await store.save(sessionWith("s", "late", version)), undefined);
    }
    expect("load()", await store.load("s"), sessionWith("s", "2", 2));
  },

  async "leaves a session in a newer format alone"(store, expect) {
    const head = '{"format":99,"id":"s","run":{"position":{"at":"unknown"}},"new":{"$entry":7}}';
    const entries = [{ type: "message" as const, message: { role: "user" as const, parts: [] } }];
    const [to, first, base, until] = [{ holder: "newer", n: 3 }, 1, 1, 2 ** 45];
    const addition = { from: undefined, to, head, entries, first, base, until, owner: undefined, run: undefined };
    expect("append()", await store.append("s", addition), true);
    const operations = {
      load: () => store.load("s"),
      save: () => store.save(sessionWith("s", "late", 3)),
      history: () => store.history("s"),
      fork: () => store.fork("s", "copy"),
    };
    const error =
      'Cannot read session "s": a newer version of the package has written it, in format 99; expected 2 or lower';
    for (const [name, operation] of Object.entries(operations)) {
      const seen = await operation().then(() => "nothing", (error) => error.message);
      expect(`the error of ${name}()`, seen, error);
    }
    const { mark, last, head: stored } = await store.head("s") ?? {};
    expect("head() after that", [mark, last, stored], [to, 1, head]);
    expect("entries() after that", await store.entries("s", 1, 1), [[1, entries[0]]]);
    expect("list() after that", await store.list(), ["s"]);
  },

  async "accepts one of several concurrent writers"(store, expect) {
    for (const [version, length] of [[0, 1], [1, 1], [2, 400_000], [3, 400_000]] as const) {
      const texts = ["a", "b", "c", "d"].map((writer) => writer.repeat(length));
      const saves = await Promise.all(texts.map((text) => store.save(sessionWith("s", text, version))));
      expect("the results of save()", saves.filter((save) => save !== undefined), [version + 1]);
      const won = texts[saves.findIndex((save) => save !== undefined)];
      expect("load() after the saves", await store.load("s"), sessionWith("s", won ?? "", version + 1));
    }
  },

  async "never returns a partial write"(store, expect) {
    const text = (version: number) => `${version}`.repeat(200_000);
    const write = async () => {
      for (let version = 0; version < 8; version++) await store.save(sessionWith("s", text(version), version));
    };
    const look = async (from: number) => {
      for (let version = from, looks = 0; version < 8 && looks < 1_000; looks++) {
        const kept = await store.load("s");
        version = kept?.version ?? 0;
        if (kept) expect("load() during a save", kept, sessionWith("s", text(version - 1), version));
      }
    };
    await Promise.all([write(), look(0), look(0)]);
  },

  async "returns nothing after a delete"(store, expect) {
    await store.save(sessionWith("gone", "x".repeat(200_000)));
    await store.save(sessionWith("stays", "Hi"));
    await store.delete("gone");
    expect("load()", await store.load("gone"), undefined);
    expect("list()", await store.list(), ["stays"]);
    expect("save() of the version before", await store.save(sessionWith("gone", "late", 1)), undefined);
    expect("save() of a new one", await store.save(sessionWith("gone", "new")), 1);
    expect("load() of the new one", await store.load("gone"), sessionWith("gone", "new", 1));
    expect("load() of another", await store.load("stays"), sessionWith("stays", "Hi", 1));
  },

  async "lists all ids, page by page"(store, expect) {
    const ids = [
      "a",
      "a/b",
      "a:b",
      "ab",
      "A",
      "b",
      "1",
      "10",
      "2",
      " ",
      "ä",
      "漢",
      "😀",
      "\uffee",
      "__proto__",
      "*",
      "%",
      "a'b",
      "{a}",
      "}",
      "null",
      "1e5",
      "e\u0301",
      "\u0001",
      "\ufeffa",
      "\uffff",
    ];
    for (const id of ids) await store.save(sessionWith(id, id));
    const all = await store.list();
    expect("all ids, sorted", [...all].sort(), [...ids].sort());
    for (const limit of [1, 2, 7, 18, 100]) {
      const pages = await paged(store, limit);
      expect(`what is on pages of ${limit}`, pages.flat(), all);
      expect(`the length of pages of ${limit}`, pages.find(({ length }) => length > limit), undefined);
    }
    for (const id of all.slice(0, 4)) await store.delete(id);
    expect("list() after a deleted id", await store.list({ after: all[1] ?? "" }), all.slice(4));
    await store.save(sessionWith(all[9] ?? "", "again", 1));
    expect("the order after a save", await store.list({ limit: 100 }), all.slice(4));
    for (const id of all.slice(4)) expect(`load("${id}")`, (await store.load(id))?.id, id);
  },
};

const expiryLaws: ExpiryLaws<TestedStore> = (pass) => ({
  async "deletes what has expired"(store, expect) {
    const long = "x".repeat(200_000);
    await store.save(sessionWith("old", long));
    await store.save(sessionWith("used", long));
    await pass(expireIn - 100);
    await store.save(sessionWith("used", `${long}y`, 1));
    expect("load() before it expires", await store.load("old"), sessionWith("old", long, 1));
    await pass(200);
    expect("load()", await store.load("old"), undefined);
    expect("list()", await store.list(), ["used"]);
    expect("save() of the version before", await store.save(sessionWith("old", "late", 1)), undefined);
    await pass(expireIn - 300);
    expect("load() of a newer session", await store.load("used"), sessionWith("used", `${long}y`, 2));
    expect("save() of a new one", await store.save(sessionWith("old", "new")), 1);
    expect("load() of the new one", await store.load("old"), sessionWith("old", "new", 1));
  },
});

/** Lists all ids, `limit` at a time. */
async function paged(store: TestedStore, limit: number): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  for (let after: string | undefined = ""; after !== undefined && pages.length < 100; after = pages.at(-1)?.at(-1)) {
    pages.push(await store.list({ after, limit }));
  }
  return pages;
}
