/**
 * The laws of journals about whole sessions: they are returned as they were saved, and one of several writers wins.
 *
 * @module
 */
import { journalKey } from "../../core/journal.ts";
import { type Laws, long, sessions, sessionWith, type TestedStore } from "./laws.ts";

/** The laws of whole sessions, which `load()` and `save()` make of a journal. */
export const sessionLaws: Laws<TestedStore> = {
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
    const change = { run: 1, state: "running" as const, base: 1, waiting: 0, head, last: 0, entries };
    const [key, to] = [journalKey(undefined, "s"), { holder: "newer", n: 3 }];
    const append = { from: undefined, to, created: { session: "s" }, change, due: 2 ** 40 };
    expect("append()", await store.journal.append(key, append), { stored: true, last: 1 });
    const operations = {
      load: () => store.load("s"),
      save: () => store.save(sessionWith("s", "late", 3)),
      history: () => store.history("s"),
      fork: () => store.fork("s", "copy"),
    };
    const error =
      'Cannot read session "s": a newer version of the package has written it, in format 99; expected 3 or lower';
    for (const [name, operation] of Object.entries(operations)) {
      const seen = await operation().then(() => "nothing", (error) => error.message);
      expect(`the error of ${name}()`, seen, error);
    }
    const { mark, last, head: stored } = await store.journal.head(key) ?? {};
    expect("head() after that", [mark, last, stored], [to, 1, head]);
    expect("entries() after that", await store.journal.entries(key, 1, 1), [[1, entries[0]]]);
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

/** Lists all ids, `limit` at a time. */
async function paged(store: TestedStore, limit: number): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  for (let after: string | undefined = ""; after !== undefined && pages.length < 100; after = pages.at(-1)?.at(-1)) {
    pages.push(await store.list({ after, limit }));
  }
  return pages;
}
