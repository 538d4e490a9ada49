/**
 * The laws of journals: what one append stores, when it is refused, and what happens to mail.
 *
 * @module
 */
import type { Append, Journal, JournalEntry } from "../../core/journal.ts";
import { user } from "../../protocol/message.ts";
import { eventLaws, indexLaws } from "./journal_event_laws.ts";
import {
  at,
  brief,
  change,
  creation,
  events,
  expectStored,
  JournalHistory,
  key,
  linesOf,
  next,
  numbered,
  overNow,
  post,
  sweepAll,
} from "./journal_history.ts";
import { sessionsIn } from "../../core/sessions.ts";
import { sessionLaws } from "./session_laws.ts";
import { transcriptLaws } from "./transcript_laws.ts";
import {
  checkLaws,
  expireIn,
  type ExpiryLaws,
  type LawOptions,
  type Laws,
  long,
  type Make,
  oddText,
  type TestedStore,
} from "./laws.ts";

/**
 * Tests a journal against the laws of the port. `make` creates a new, empty journal for each law. Throws an `Error` that names each broken law, and how it is
 * broken. A journal
 *
 * - stores all of an append or nothing, for one of several writers, and once if it is repeated;
 * - keeps mail in order between the entries, and refuses an append whose writer has not read it;
 * - returns every entry and every event as it was stored, by range and page by page, also once they are packed;
 * - finds the journals that are due, and the sessions of an owner;
 * - sweeps what has expired, and the events of runs that are over, and nothing else;
 * - returns nothing of what was deleted or has expired, and shares nothing with its callers;
 * - keeps whole sessions: those whose transcript grows, shrinks and changes in the middle, and those that a newer version of the package has written.
 *
 * `make` may return several instances on one database. They are used in turn, as processes that share the database would use them.
 *
 * ```ts
 * import { memory } from "@jizai/jizai";
 * import { journalLaws } from "@jizai/jizai/testing";
 * import { assertRejects } from "@std/assert";
 *
 * await journalLaws(() => memory().journal);
 *
 * const forgetful = () => ({ ...memory().journal, open: () => Promise.resolve(undefined) });
 * await assertRejects(() => journalLaws(forgetful), Error, "returns a session as it was saved");
 * ```
 */
export async function journalLaws(make: Make<Journal>, options: LawOptions = {}): Promise<void> {
  const laws = { ...appendLaws, ...mailLaws, ...eventLaws, ...indexLaws, ...ofSessions };
  await checkLaws(make, laws, expiryLaws, options);
}

function storeOf(journal: Journal): TestedStore {
  return { journal, ...sessionsIn(journal) };
}

/** The laws of whole sessions, for journals. */
const ofSessions: Laws<Journal> = Object.fromEntries(
  Object.entries({ ...sessionLaws, ...transcriptLaws }).map(([name, law]): [string, Laws<Journal>[string]] => [
    name,
    (journal, expect, signal, all) => law(storeOf(journal), expect, signal, all.map(storeOf)),
  ]),
);

const stored = (last: number) => ({ stored: true, last });

// The laws of appends.

const appendLaws: Laws<Journal> = {
  async "finds no journal that was never created"(journal, expect) {
    expect("head() and open()", [await journal.head(key), await journal.open(key)], [undefined, undefined]);
    expect("entries()", await journal.entries(key, 1, 9), []);
    expect("read()", await journal.read(key, 1, 0), undefined);
    expect("post()", await journal.post(key, post("m")), { status: "over" });
    expect("append()", await journal.append(key, next(1)), undefined);
    expect("pending() and list()", [await journal.pending(9), await journal.list()], [[], []]);
    await journal.trim(key, 9);
    await journal.delete(key);
  },

  async "appends entries and replaces the head"(journal, expect, _, all) {
    const created = { session: "s", owner: "ada" };
    expect("append() that creates", await journal.append(key, creation(["1", "2"], { created })), stored(2));
    const first = { ...created, run: 1, state: "running", events: 0, waiting: 0, due: null } as const;
    await expectStored(all, expect, ["1", "2"], { ...first, mark: at("a") });
    const later = { run: 7, state: "paused", waiting: 3, base: 2 } as const;
    expect("append()", await journal.append(key, next(1, { change: change(2, [oddText], later) })), stored(3));
    const texts = ["1", "2", oddText];
    await expectStored(all, expect, texts, { ...created, ...later, mark: at("a", 2) });
    expect("append() of the mark alone", await journal.append(key, next(2)), stored(3));
    await expectStored(all, expect, texts, { ...later, mark: at("a", 3), head: change(2).head });
    const over = next(3, { change: change(3, [], { state: "over" }) });
    expect("append() of a head", await journal.append(key, over), stored(3));
    await expectStored(all, expect, texts, { mark: at("a", 4), state: "over", base: 1 });
    for (const [first, last] of [[1, 3], [2, 2], [3, 9], [2, 1], [0, 1], [4, 5]] as const) {
      const expected = numbered(texts).slice(Math.max(first - 1, 0), last);
      expect(`entries() from ${first} to ${last}`, (await journal.entries(key, first, last)).map(brief), expected);
    }
  },

  async "refuses an append whose mark is not stored, and changes nothing"(journal, expect, _, all) {
    await journal.append(key, creation(["1"]));
    for (const from of [at("b"), at("a", 2), at("", 1), undefined]) {
      const late = { from, to: at("c"), change: change(1, ["late"], { state: "over" }), events: events(1, "late") };
      const seen = await journal.append(key, { ...late, created: { session: "s" }, due: -1 });
      expect(`append() from ${from?.holder} ${from?.n}`, seen, undefined);
    }
    await expectStored(all, expect, ["1"], { mark: at("a"), state: "running", events: 0 });
    expect("read()", await linesOf(journal, 1), []);
    expect("pending()", await journal.pending(9), []);
  },

  async "accepts an append that is repeated, and stores it once"(journal, expect, _, all) {
    const second = next(1, { change: change(1, ["2"]), events: events(3, "three") });
    const lines = next(2, { events: events(4, "four") });
    for (
      const [append, last] of [[creation(["1"], { events: events(1, "one", "two") }), 1], [second, 2], [
        lines,
        2,
      ]] as const
    ) {
      for (const each of [journal, ...all]) expect("append()", await each.append(key, append), stored(last));
    }
    expect("append() of an earlier one", await journal.append(key, second), undefined);
    await journal.post(key, post("m"));
    expect("append() again, after a post", await journal.append(key, lines), stored(3));
    await expectStored(all, expect, ["1", "2", "m"], { mark: at("a", 3), events: 4 });
    for (const each of all) expect("read()", await linesOf(each, 1), ["1 one", "2 two", "3 three", "4 four"]);
  },

  async "stores one of several appends at once"(journal, expect, _, all) {
    await journal.append(key, creation(["1"]));
    const texts = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(index % 2 === 0 ? 1 : 150_000));
    const outcomes = await Promise.all(texts.map((text, index) => {
      const append = {
        from: at("a"),
        to: at(`w${index}`),
        change: change(1, [text]),
        events: events(1, text, `${index}`),
      };
      return (all[index % all.length] ?? journal).append(key, append);
    }));
    const won = outcomes.findIndex((outcome) => outcome?.stored);
    expect("the appends that were stored", outcomes.filter((outcome) => outcome?.stored).length, 1);
    await expectStored(all, expect, ["1", texts[won] ?? ""], { mark: at(`w${won}`), events: 2 });
    expect("read()", await linesOf(journal, 1), [`1 ${texts[won]}`, `2 ${won}`]);
  },

  async "stores one of several creations at once"(journal, expect, _, all) {
    const holders = ["a", "b", "c", "d", "e"];
    const outcomes = await Promise.all(holders.map((holder, index) => {
      return (all[index % all.length] ?? journal).append(key, creation([holder, holder], { to: at(holder) }));
    }));
    const holder = holders[outcomes.findIndex((outcome) => outcome?.stored)] ?? "";
    expect("the creations that were stored", outcomes.filter((outcome) => outcome?.stored).length, 1);
    await expectStored(all, expect, [holder, holder], { mark: at(holder) });
  },

  async "does not take a journal that was deleted and created anew for the one before"(journal, expect, _, all) {
    const other = key.toUpperCase();
    await journal.append(key, creation(["old", "older"], { events: events(1, "x", "y"), due: -1 }));
    await journal.append(other, creation(["stays"], { created: { session: "t" } }));
    await journal.delete(key);
    await expectStored(all, expect, undefined);
    expect("read()", await journal.read(key, 1, 0), undefined);
    expect("pending() and list()", [await journal.pending(9), await journal.list()], [[], ["t"]]);
    const late = next(1, { change: change(2, ["late"]) });
    expect("append() after the delete", await journal.append(key, late), undefined);
    expect("append() of a new one", await journal.append(key, creation(["new"], { to: at("b") })), stored(1));
    expect("append() of the old one", await journal.append(key, late), undefined);
    await expectStored(all, expect, ["new"], { mark: at("b"), events: 0 });
    expect("read() of the new one", await linesOf(journal, 1), []);
    expect("the other one", (await journal.open(other))?.entries.map(brief), ["1 stays"]);
    await journal.delete(other, "none".padEnd(22, "x"), key);
    for (const each of all) expect("list() after the delete of several", await each.list(), []);
    for (const gone of [key, other]) expect("head() of each", await journal.head(gone), undefined);
  },

  async "keeps entries, heads and events of every length, and many of them"(journal, expect, _, all) {
    const texts = [...long, "", oddText];
    const lines = [...long, oddText].map((text) => JSON.stringify(text));
    await journal.append(key, creation(texts, { events: events(1, ...lines) }));
    const many = Array.from({ length: 1_500 }, (_, index) => `${index}`);
    const head = JSON.stringify("漢".repeat(20_000)); // 60 KB
    const second = { change: change(texts.length, many, { head }), events: events(lines.length + 1, ...many) };
    expect("append() of many", await journal.append(key, next(1, second)), stored(texts.length + many.length));
    for (const each of all) {
      expect("the head", (await each.head(key))?.head, head);
      expect("entries()", (await each.entries(key, 1, 9_999)).map(brief), numbered([...texts, ...many]));
      for (const after of [0, 3, lines.length, lines.length + 700]) {
        expect(`read() after ${after}`, await linesOf(each, 1, after), numbered([...lines, ...many]).slice(after));
      }
    }
    const middle = (await journal.entries(key, 1_000, 1_000)).map(brief);
    expect("entries() of one in the middle", middle, [numbered([...texts, ...many])[999]]);
  },

  async "does the same as a plain model, whatever several instances do"(_, expect, signal, all) {
    for (let seed = 1; seed <= 12 && !signal.aborted; seed++) {
      const history = new JournalHistory(all, expect, seed);
      for (let step = 0; step < 60 && !signal.aborted; step++) await history.step();
      await history.end();
    }
  },

  async "shares nothing with its callers"(journal, expect, _, all) {
    const entries: JournalEntry[] = [{ type: "message", message: user("1") }];
    const made: Append = creation([], { to: at("a"), change: change(0, [], { entries }), events: events(1, ...["x"]) });
    const mail = post("m");
    await journal.append(key, made);
    await journal.post(key, mail);
    edit(made);
    edit(mail);
    expect("the entry that its caller has changed", JSON.stringify(entries).includes('"text":"edited"'), true);
    for (let time = 0; time < 2; time++) {
      await expectStored(all, expect, ["1", "m"], { mark: at("a") });
      for (const each of all) {
        expect("read()", await linesOf(each, 1), ["1 x"]);
        edit(await each.open(key));
        edit(await each.head(key));
        edit(await each.entries(key, 1, 2));
        edit(await each.read(key, 1, 0));
      }
    }
    expect("append() after that", await journal.append(key, next(1, { change: change(2, ["2"]) })), stored(3));
    await expectStored(all, expect, ["1", "m", "2"]);
  },
};

/** Changes a value and everything in it in place. A frozen part stays as it is. */
function edit(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) edit(part);
  for (const name of Object.keys(value)) {
    if (typeof Reflect.get(value, name) !== "object") Reflect.set(value, name, "edited");
  }
  if (Array.isArray(value) && !Object.isFrozen(value)) value.push("edited");
}

// The laws of mail.

const mailLaws: Laws<Journal> = {
  async "adds mail to a running run only, and never moves the mark"(journal, expect, _, all) {
    await journal.append(key, creation(["1"]));
    for (const [index, each] of all.entries()) {
      expect("post()", await each.post(key, post(`m${index}`)), { status: "posted", last: 2 + index });
    }
    const texts = ["1", ...all.map((_, index) => `m${index}`)];
    await expectStored(all, expect, texts, { mark: at("a"), waiting: 0 });
    expect("post() to a run before", await journal.post(key, post("m", { run: 0 })), { status: "over" });
    expect("post() to a run that has not begun", await journal.post(key, post("m", { run: 2 })), { status: "over" });
    for (const [n, state] of [[1, "paused"], [2, "over"]] as const) {
      await journal.append(key, next(n, { change: change(texts.length, [], { state }) }));
      expect(`post() to a run that is ${state}`, await journal.post(key, post("m")), { status: "over" });
    }
    await expectStored(all, expect, texts, { mark: at("a", 3) });
  },

  async "stores nothing of an append whose writer has not read all mail"(journal, expect, _, all) {
    await journal.append(key, creation(["1"]));
    await (all.at(-1) ?? journal).post(key, post("m"));
    for (const [index, last] of [...all.map(() => 1), 3].entries()) {
      const late = { change: change(last, ["2"], { state: "over" }), events: events(1, "x"), due: -1 };
      const seen = await (all[index] ?? journal).append(key, next(1, late));
      expect(`append() after entry ${last}`, seen, { stored: false, last: 2 });
    }
    await expectStored(all, expect, ["1", "m"], { mark: at("a"), state: "running", events: 0 });
    expect("pending()", await journal.pending(9), []);
    expect("append() of events alone", await journal.append(key, next(1, { events: events(1, "x") })), stored(2));
    expect("append() with the mail", await journal.append(key, next(2, { change: change(2, ["2"]) })), stored(3));
    await expectStored(all, expect, ["1", "m", "2"], { mark: at("a", 3), events: 1 });
  },

  async "counts the posts that wait, up to a number"(journal, expect, _, all) {
    await journal.append(key, creation());
    const posts = [1, 2, 3, 4, 5, 6].map((id) =>
      (all[id % all.length] ?? journal).post(key, post(`${id}`, { most: 4 }))
    );
    const statuses = (await Promise.all(posts)).map(({ status }) => status);
    expect("the outcomes", statuses.toSorted(), ["full", "full", "posted", "posted", "posted", "posted"]);
    expect("post() that is not counted", await journal.post(key, post("free")), { status: "posted", last: 5 });
    expect("the posts that wait", (await journal.head(key))?.waiting, 4);
    await journal.append(key, next(1, { change: change(5, [], { waiting: 3 }) }));
    expect("post() after one was taken", await journal.post(key, post("more", { most: 4 })), {
      status: "posted",
      last: 6,
    });
    expect("post() after that", await journal.post(key, post("no", { most: 4 })), { status: "full" });
    expect("the posts that wait then", (await journal.head(key))?.waiting, 4);
  },

  async "keeps mail of every length"(journal, expect) {
    await journal.append(key, creation());
    for (const [index, text] of [...long, oddText].entries()) {
      const mail = post(`m${index}`, { text });
      expect("post()", await journal.post(key, mail), { status: "posted", last: index + 1 });
      expect("entries()", await journal.entries(key, index + 1, index + 1), [[index + 1, mail.entry]]);
    }
  },

  async "loses neither posts nor appends that happen at once"(journal, expect, signal, all) {
    await journal.append(key, creation(["0"]));
    const posters = Array.from({ length: 4 }, async (_, poster) => {
      const numbers: (readonly [string, number])[] = [];
      for (let each = 0; each < 10; each++) {
        const posted = await (all[(poster + each) % all.length] ?? journal).post(key, post(`m${poster}.${each}`));
        if (posted.status === "posted") numbers.push([`m${poster}.${each}`, posted.last]);
      }
      return numbers;
    });
    const own: (readonly [string, number])[] = [["0", 1]];
    for (let n = 1, last = 1; n <= 10 && !signal.aborted;) {
      const outcome = await journal.append(key, next(n, { change: change(last, [`${n}`]) }));
      if (outcome?.stored) own.push([`${n++}`, last + 1]);
      last = outcome?.last ?? last;
    }
    const known = [...(await Promise.all(posters)).flat(), ...own].toSorted(([, a], [, b]) => a - b);
    const entries = (await journal.entries(key, 1, 9_999)).map(brief);
    expect("the entries", entries, known.map(([text, number]) => `${number} ${text}`));
    expect("the number of entries", entries.length, 51);
  },
};

// The laws of expiry.

const expiryLaws: ExpiryLaws<Journal> = (pass) => ({
  async "deletes what has expired"(journal, expect, _, all) {
    const other = key.toUpperCase();
    await journal.append(key, creation([], { change: change(0, ["1"], { state: "over" }), events: events(1, "x") }));
    await journal.append(other, creation(["1"], { created: { session: "t" } }));
    await pass(expireIn - 100);
    await expectStored(all, expect, ["1"], { mark: at("a") });
    await journal.post(other, post("m"));
    await pass(200);
    await expectStored(all, expect, undefined);
    expect("the one that was posted to", (await journal.open(other))?.entries.map(brief), ["1 1", "2 m"]);
    expect("list()", await journal.list(), ["t"]);
    expect("read()", await journal.read(key, 1, 0), undefined);
    expect("entries()", await journal.entries(key, 1, 1), []);
    expect("append()", await journal.append(key, next(1, { change: change(1, ["2"]) })), undefined);
    expect("append() of a new one", await journal.append(key, creation(["new"], { to: at("b") })), stored(1));
    await expectStored(all, expect, ["new"], { mark: at("b"), events: 0 });
    expect("read() of the new one", await linesOf(journal, 1), []);
  },

  async "sweeps what has expired, and nothing that was created anew"(journal, expect, _, all) {
    const kept = key.toUpperCase();
    for (const each of [key, "x".repeat(22), "y".repeat(22), kept]) {
      await journal.append(each, creation(["1"], { created: { session: each }, events: events(1, "x") }));
    }
    await pass(expireIn - 100);
    await journal.post(kept, post("m"));
    await pass(200);
    const again = creation(["new"], { to: at("b"), created: { session: key } });
    expect("append() of a new one", await journal.append(key, again), stored(1));
    await sweepAll(journal);
    expect("sweep() after that", await journal.sweep(9, overNow), 0);
    await expectStored(all, expect, ["new"], { mark: at("b") });
    for (const each of all) {
      expect("the one that was posted to", (await each.open(kept))?.entries.map(brief), ["1 1", "2 m"]);
      expect("list()", (await each.list()).toSorted(), [key, kept].toSorted());
    }
    await pass(2 * expireIn);
    await sweepAll(journal);
    expect("head() after that", [await journal.head(key), await journal.head(kept)], [undefined, undefined]);
  },

  async "keeps a journal until its lease has ended"(journal, expect, _, all) {
    await journal.append(key, creation(["1"], { due: 4 * expireIn }));
    await pass(2 * expireIn);
    await expectStored(all, expect, ["1"]);
    await pass(2 * expireIn + 500);
    expect("pending()", await journal.pending(9), [key]);
    expect("append() that ends the lease", await journal.append(key, next(1, { due: null })), stored(1));
    await pass(expireIn - 100);
    await expectStored(all, expect, ["1"]);
    await pass(200);
    await expectStored(all, expect, undefined);
    expect("pending() after it has expired", await journal.pending(9), []);
  },

  async "deletes a journal after a time of its own"(journal, expect, _, all) {
    const created = { session: "s", expireIn: 400 };
    await journal.append(key, creation([], { created, change: change(0, ["1"], { state: "over" }) }));
    await pass(300);
    expect("append()", await journal.append(key, next(1)), stored(1));
    await pass(300);
    await expectStored(all, expect, ["1"]);
    await pass(200);
    await expectStored(all, expect, undefined);
  },
});
