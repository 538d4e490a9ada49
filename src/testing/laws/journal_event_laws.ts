/**
 * The laws of journals about events, watchers, leases and lists.
 *
 * @module
 */
import type { Journal } from "../../core/journal.ts";
import {
  at,
  brief,
  change,
  creation,
  events,
  expectStored,
  key,
  linesOf,
  next,
  numbered,
  overNow,
  post,
  sweepAll,
} from "./journal_history.ts";
import { type Laws, oddText } from "./laws.ts";

/** The laws of the events of runs, and of watchers. */
export const eventLaws: Laws<Journal> = {
  async "returns the events of each run after a given event"(journal, expect, _, all) {
    const known = { session: "s", owner: "ada" };
    const lines = ["a", "b", "c", `{"d":"é"}`, "e"];
    const page = (after: number, last: number, over: boolean) => {
      return { first: after + 1, lines: lines.slice(after, last), last, over, ...known };
    };
    await journal.append(key, creation(["1"], { created: known, events: events(1, "a", "b", "c") }));
    await journal.append(key, next(1, { events: events(4, lines[3] ?? "") }));
    for (const each of all) {
      for (const after of [0, 1, 3, 4, 9]) {
        expect(`read() after ${after}`, await each.read(key, 1, after), page(after, 4, false));
      }
      expect("read() of a run that has not begun", await each.read(key, 2, 0), undefined);
      expect("read() of run 0", await each.read(key, 0, 0), undefined);
    }
    await journal.append(key, next(2, { change: change(1, [], { state: "paused" }), events: events(5, "e") }));
    expect("read() of a pause", await journal.read(key, 1, 4), page(4, 5, true));
    await journal.append(key, { from: at("a", 3), to: at("b"), change: change(1), events: events(6) });
    expect("read() of a resumed run", await journal.read(key, 1, 5), page(5, 5, false));
    const later = { from: at("b"), to: at("c"), change: change(1, [], { run: 2 }), events: events(1, "a") };
    await journal.append(key, later);
    for (const each of all) {
      for (const after of [3, 5]) {
        expect(`read() of the run before, after ${after}`, await each.read(key, 1, after), page(after, 5, true));
      }
      expect("read() of the new run", await each.read(key, 2, 0), page(0, 1, false));
      expect("the events of the new run", (await each.head(key))?.events, 1);
    }
    await journal.append(key, { from: at("c"), to: at("d"), change: change(1, [], { run: 3 }) });
    expect("read() of a run without events", await journal.read(key, 3, 0), page(0, 0, false));
  },

  async "begins a journal with later events than the first"(journal, expect, _, all) {
    await journal.append(key, creation([], { events: events(8) }));
    for (const each of all) {
      expect("the number of events", (await each.head(key))?.events, 7);
      const { first, lines, last } = await each.read(key, 1, 3) ?? {};
      expect("read()", [first, lines, last], [8, [], 7]);
    }
    await journal.append(key, next(1, { events: events(8, "h") }));
    for (const each of all) expect("read() of the next", await linesOf(each, 1), ["8 h"]);
  },

  async "returns packed events as they were"(journal, expect, signal, all) {
    const delta = (text: string, part = 0) => JSON.stringify({ type: "text.delta", turn: 1, part, text });
    const lines = Array.from({ length: 300 }, (_, index) => {
      if (index % 90 === 0) return JSON.stringify({ type: "tool.started", index });
      return delta(
        index % 100 === 7 ? "x".repeat(120_000) : index % 7 === 0 ? oddText : `${index} `,
        index > 200 ? index % 2 : 0,
      );
    });
    await journal.append(key, creation());
    let n = 1;
    for (let from = 0; from < lines.length && !signal.aborted; n++) {
      const some = lines.slice(from, from + 1 + n % 5);
      await (all[n % all.length] ?? journal).append(key, next(n, { events: events(from + 1, ...some) }));
      from += some.length;
    }
    const end = next(n, { change: change(0, [], { state: "over" }), events: events(301, "end") });
    await journal.append(key, end);
    const expected = numbered([...lines, "end"]);
    const packing = all.map((each) => each.pack?.(key, 1)); // two may do it at once
    for (const after of [0, 17]) {
      expect(`read() after ${after}, meanwhile`, await linesOf(journal, 1, after), expected.slice(after));
    }
    await Promise.all(packing);
    expect("append() of the end again", await journal.append(key, end), { stored: true, last: 0 });
    for (const each of all) {
      for (const after of [0, 1, 2, 88, 89, 90, 150, 299, 300, 301]) {
        expect(`read() after ${after}`, await linesOf(each, 1, after), expected.slice(after));
      }
    }
    const later = { from: end.to, to: at("b"), change: change(0, [], { run: 2 }), events: events(1, "x") };
    await journal.append(key, later);
    for (const run of [1, 9]) await journal.pack?.(key, run);
    expect("read() of the run before", await linesOf(journal, 1), expected);
    expect("read() of the run after", await linesOf(journal, 2), ["1 x"]);
    await journal.trim(key, 2);
    await journal.pack?.(key, 1);
    expect("read() of the run before, without its events", await journal.read(key, 1, 0), undefined);
  },

  async "deletes the events of earlier runs, and no entry"(journal, expect, _, all) {
    await journal.append(key, creation(["1"], { events: events(1, "a", "b") }));
    await journal.append(key, next(1, { change: change(1, ["2"], { run: 2 }), events: events(1, "c") }));
    const last = change(2, ["3"], { run: 3, state: "over" });
    await journal.append(key, next(2, { change: last, events: events(1, "d", "e") }));
    await journal.trim(key, 3);
    for (const each of all) {
      const earlier = [await each.read(key, 1, 0), await each.read(key, 2, 0)];
      expect("read() of earlier runs", earlier, [undefined, undefined]);
      expect("read() of the last run", await linesOf(each, 3), ["1 d", "2 e"]);
    }
    await journal.trim(key, 4);
    for (const each of all) {
      const { first, lines, last, over } = await each.read(key, 3, 0) ?? {};
      expect("read() of the last run then", [first, lines, last, over], [3, [], 2, true]);
    }
    await expectStored(all, expect, ["1", "2", "3"], { mark: at("a", 3), events: 2 });
  },

  async "sweeps the events of runs that are over, in steps, and nothing else"(journal, expect, _, all) {
    const states = { a: "over", b: "over", c: "over", d: "running", e: "paused" } as const;
    const keys = new Map(Object.entries(states).map(([letter, state]) => [letter.repeat(22), state]));
    for (const [key, state] of keys) {
      const created = { session: key, owner: "ada" };
      const added = { created, change: change(0, ["1"], { state }), events: events(1, "x", "y") };
      await journal.append(key, creation([], added));
    }
    expect("sweep() of what is over for a day", await journal.sweep(9, 86_400_000), 0);
    const swept: number[] = [];
    for (const each of [journal, all.at(-1) ?? journal, journal]) swept.push(await each.sweep(2, overNow));
    expect("sweep() of at most two", swept, [2, 1, 0]);
    for (const each of all) {
      for (const [key, state] of keys) {
        const { first, lines, last, over } = await each.read(key, 1, 0) ?? {};
        const expected = state === "over" ? [3, [], 2, true] : [1, ["x", "y"], 2, state !== "running"];
        expect(`read() of a run that is ${state}`, [first, lines, last, over], expected);
        expect("open()", (await each.open(key))?.entries.map(brief), ["1 1"]);
      }
      expect("list()", await each.list({ owner: "ada" }), [...keys.keys()]);
    }
  },

  async "sweeps no event of a run that has begun after another one was over"(journal, expect, _, all) {
    await journal.append(key, creation([], { change: change(0, ["1"], { state: "over" }), events: events(1, "a") }));
    await journal.append(key, next(1, { change: change(1, ["2"], { run: 2 }), events: events(1, "b") }));
    await sweepAll(journal);
    for (const each of all) expect("read() of the run", await linesOf(each, 2), ["1 b"]);
    await journal.append(key, next(2, { change: change(2, [], { run: 2, state: "over" }), events: events(2, "c") }));
    await sweepAll(journal);
    for (const each of all) {
      const runs = [await each.read(key, 1, 0), (await each.read(key, 2, 0))?.lines];
      expect("read() once it is over", runs, [undefined, []]);
    }
    await expectStored(all, expect, ["1", "2"], { mark: at("a", 3), events: 2 });
  },

  async "notifies the watchers of a journal of its changes"(journal, expect) {
    let lefts = 0;
    const leave = journal.watch(key, { notify: () => void lefts++, fail() {} });
    const found: unknown[] = []; // what a watcher has read, once it was notified
    const read = async () => {
      found.push(await journal.head(key).then((head) => head ? [head.last, head.events] : "none", String));
    };
    const end = journal.watch(key, { notify: () => void read(), fail() {} });
    const changed = async (name: string, work: () => Promise<unknown>, expected: unknown) => {
      const before = found.length;
      await work();
      const isSeen = () => found.length > before && JSON.stringify(found.at(-1)) === JSON.stringify(expected);
      for (let turns = 0; turns < 1_000 && !isSeen(); turns++) await journal.head(key);
      expect(`what a watcher reads when ${name} has notified it`, found.slice(before).at(-1), expected);
    };
    await changed("a creation", () => journal.append(key, creation(["1"])), [1, 0]);
    await changed("an append", () => journal.append(key, next(1, { events: events(1, "x") })), [1, 1]);
    leave();
    const before = lefts;
    await changed("a post", () => journal.post(key, post("m")), [2, 1]);
    await changed("a delete", () => journal.delete(key), "none");
    end();
    expect("the notifications of a watcher that has left", lefts, before);
  },
};

/** The laws of what is due, and of lists. */
export const indexLaws: Laws<Journal> = {
  async "finds the journals that are due"(journal, expect, _, all) {
    const [c, a, b, later, never] = ["c", "a", "b", "d", "e"].map((letter) => letter.repeat(22)) as [
      string,
      ...string[],
    ]; // five keys
    const dues = [[c, -2_000], [a, -1_000], [b, -3_000], [later, 2 ** 40], [never, null]] as const;
    for (const [key = "", due] of dues) await journal.append(key, creation([], { due }));
    for (const each of all) {
      expect("pending()", await each.pending(9), [b, c, a]);
      expect("pending() of at most two", await each.pending(2), [b, c]);
      expect("pending() within a time", await each.pending(9, 2 ** 41), [b, c, a, later]);
      const heads = await Promise.all(dues.map(([key = ""]) => each.head(key)));
      const isDue = heads.map((head) => (head?.due ?? Infinity) <= 0);
      expect("whether each is due", isDue, [true, true, true, false, false]);
    }
    const left = (await journal.head(later ?? ""))?.due ?? 0;
    expect("the time that is left", left > 2 ** 40 - 60_000 && left <= 2 ** 40, true);
    await journal.append(a ?? "", next(1, { change: change(0) })); // it stays due
    await journal.append(b ?? "", next(1, { due: null }));
    await journal.append(c, next(1, { due: 2 ** 40 }));
    await journal.append(later ?? "", next(1, { due: 0 }));
    for (const each of all) expect("pending() after appends", await each.pending(9), [a, later]);
    await journal.delete(a ?? "");
    expect("pending() after a delete", await journal.pending(9), [later]);
  },

  async "lists the sessions of an owner, page by page"(journal, expect, _, all) {
    const names = ["a", "a/b", "ab", "A", "b", "1", "10", " ", "ä", "漢", "__proto__", "%", "a'b", "null", "\u0001"];
    names.unshift("2f1c9a04-7f0e-4c57-9d0b-5a1e3b6c8d72", "long".repeat(50), "漢".repeat(85)); // an id, 200 characters, 255 bytes
    const owners = [undefined, "ada", "a", "漢", "%"];
    const namesOf = (owner: number) => names.slice(0, names.length - owner);
    for (const [number, owner] of owners.entries()) {
      for (const [index, session] of namesOf(number).entries()) {
        await journal.append(`${number}_${index}`.padEnd(22, "x"), creation([], { created: { session, owner } }));
      }
    }
    await journal.append(key, creation([], { created: { owner: "ada" } })); // not listed
    for (const each of all) {
      for (const [number, owner] of owners.entries()) {
        const whole = await each.list({ owner });
        expect(`list() of ${owner}, sorted`, whole.toSorted(), namesOf(number).toSorted());
        for (const limit of [1, 4, 100]) {
          const found: string[] = [];
          for (let page = await each.list({ owner, limit }); page.length > 0 && found.length <= names.length;) {
            found.push(...page);
            page = await each.list({ owner, limit, after: found.at(-1) ?? "" });
          }
          expect(`list() of ${owner} by ${limit}`, found, whole);
        }
      }
    }
    expect("list() of an owner without sessions", await journal.list({ owner: "none" }), []);
  },
};
