/**
 * The laws of journals about transcripts: they grow, and a rollback, a regenerated answer or a compaction shortens them or changes them in the middle.
 *
 * @module
 */
import type { Session } from "../../core/session.ts";
import { type Message, user } from "../../protocol/message.ts";
import { type Expect, type Laws, oddText, randomNumbers, runningSession, type TestedStore } from "./laws.ts";

/** Random histories of sessions that several instances of a journal save in turn, compared with plain objects. */
export const transcriptLaws: Laws<TestedStore> = {
  async "returns a transcript that grows, shrinks and changes in the middle as it was saved"(_, expect, signal, all) {
    for (let seed = 1; seed <= 4 && !signal.aborted; seed++) {
      const history = new History(all, expect, seed);
      for (let step = 0; step < 30 && !signal.aborted; step++) await history.step();
    }
  },

  async "shares no session with its callers"(store, expect, _, all) {
    const messages = [user("first"), user("second")];
    await store.save({ id: "s", version: 0, messages: messages });
    const expected = (version: number, ...texts: readonly string[]) => ({
      id: "s",
      version,
      messages: texts.map((text) => user(text)),
    });
    messages.pop();
    edit(messages[0]);
    for (const each of all) {
      expect("load() after the caller changed its list", await each.load("s"), expected(1, "first", "second"));
    }
    for (const each of all) {
      const loaded = await each.load("s");
      edit(loaded?.messages[0]);
      edit(loaded?.messages);
      expect("load() after the loaded session was changed", await each.load("s"), expected(1, "first", "second"));
    }
    const loaded = await store.load("s");
    await store.save({ ...expected(1), messages: [...loaded?.messages ?? [], user("third")] });
    edit(loaded?.messages);
    for (const each of all) {
      expect("load() of the longer one", await each.load("s"), expected(2, "first", "second", "third"));
    }
  },

  async "returns a session again after another instance has saved it"(store, expect, _, all) {
    const other = all.at(-1) ?? store;
    const texts = (...all: readonly string[]) => all.map((text) => user(text));
    await store.save({ id: "s", version: 0, messages: texts("a", "b", "c") });
    const mine = await store.load("s");
    const theirs = await other.load("s");
    expect("save() of the other instance", await other.save({ ...theirs!, messages: theirs!.messages.slice(0, 1) }), 2);
    const late = { ...mine!, messages: [...mine!.messages, user("late")] };
    expect("save() of what was loaded before", await store.save(late), undefined);
    for (const each of all) expect("load()", (await each.load("s"))?.messages, texts("a"));
    expect(
      "save() of what is loaded now",
      await store.save({ ...(await store.load("s"))!, messages: texts("x", "a") }),
      3,
    );
    for (const each of all) expect("load() after that", (await each.load("s"))?.messages, texts("x", "a"));
    await store.delete("s");
    expect("save() of a new session", await other.save({ id: "s", version: 0, messages: texts("new") }), 1);
    for (const each of all) expect("load() of the new session", (await each.load("s"))?.messages, texts("new"));
  },
};

/** Tries to change a value in place. The attempt may fail, since stored values may be frozen. */
function edit(value: unknown): void {
  try {
    if (Array.isArray(value)) value.splice(0, 1, "edited");
    else if (typeof value === "object" && value !== null) Object.assign(value, { role: "edited" });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // how a frozen value refuses
  }
}

/** A random history of two sessions. */
class History {
  readonly #instances: readonly TestedStore[];
  readonly #expect: Expect;
  readonly #seed: number;
  /** Returns a random whole number from 0, below `end`. */
  readonly #below: (end: number) => number;
  #steps = 0;
  /** The sessions as JSON. */
  readonly #model = new Map<string, string>();
  /** Sessions as they were loaded some steps ago. */
  readonly #loaded: Session[] = [];

  constructor(instances: readonly TestedStore[], expect: Expect, seed: number) {
    this.#instances = instances;
    this.#expect = expect;
    this.#seed = seed;
    this.#below = randomNumbers(seed);
  }

  /** Saves, deletes or loads a session in one instance, and compares what every instance returns then. */
  async step(): Promise<void> {
    this.#steps++;
    const id = `${this.#seed}${this.#one(["a", "b"])}`;
    const store = this.#one(this.#instances);
    const known = this.#model.get(id);
    const stored: Session = known === undefined ? { id, version: 0, messages: [] } : JSON.parse(known);
    const action = this.#below(12);
    if (action === 0 && known !== undefined) {
      await store.delete(id);
      this.#model.delete(id);
    } else if (action === 1) await this.#saveLate(store);
    else {
      const session = this.#changed(known === undefined ? stored : await store.load(id) ?? stored, stored);
      const text = JSON.stringify({ ...session, version: stored.version + 1 });
      this.#expect(this.#subject("save()"), await store.save(session), stored.version + 1);
      this.#model.set(id, text);
      if (this.#below(3) === 0) { for (const message of session.messages) edit(message); }
      if (this.#below(3) === 0) edit(session.messages);
    }
    await this.#compare(id);
  }

  /** Saves a session that was loaded earlier: if it has another version now, nothing is stored. */
  async #saveLate(store: TestedStore): Promise<void> {
    const old = this.#loaded.at(this.#below(this.#loaded.length));
    const current = old && this.#model.get(old.id);
    if (!old || (current !== undefined && JSON.parse(current).version === old.version)) return;
    const late = { ...old, messages: [...old.messages, user("late")] };
    this.#expect(this.#subject("save() of an earlier version"), await store.save(late), undefined);
    await this.#compare(old.id);
  }

  /** Returns the session with a changed transcript, or other changed fields. Messages that stay are those that were loaded, or copies. */
  #changed(loaded: Session, stored: Session): Session {
    const source = this.#below(4) === 0 ? stored : loaded;
    const { messages } = source;
    const at = this.#below(messages.length + 1);
    const some = (count: number) => Array.from({ length: count }, () => this.#message());
    const change = this.#below(10);
    const next: readonly Message[] = change < 4
      ? [...messages, ...some(1 + this.#below(3))] // a turn
      : change === 4
      ? messages.slice(0, at) // a rollback
      : change === 5
      ? [...messages.slice(0, at), ...some(1 + this.#below(2))] // a regenerated answer
      : change === 6
      ? [...some(1), ...messages.slice(at)] // a compaction
      : change === 7
      ? [...messages.slice(0, at), ...some(1), ...messages.slice(at + 1)] // a changed message
      : change === 8
      ? [...messages] // another list
      : this.#below(3) === 0
      ? []
      : messages;
    const { run, state: _, mail: __, lease: ___, ...rest } = source;
    const runs = this.#below(3);
    return {
      ...rest,
      version: stored.version,
      messages: next === messages ? messages : [...next],
      ...(runs === 1 && run && { run }),
      ...(runs === 2 && { run: runningSession("r").run! }),
      ...(this.#below(2) === 0 &&
        { state: [["n", this.#steps], ["long", "ж".repeat(this.#below(4) === 0 ? 2_000 : 1)]] }),
    };
  }

  #message(): Message {
    const text = `${this.#steps}: ${
      this.#below(6) === 0 ? oddText : this.#below(40) === 0 ? "漢".repeat(40_000) : "text"
    }`;
    return this.#below(2) === 0 ? user(text) : { role: "assistant", parts: [{ type: "text", text }] };
  }

  async #compare(id: string): Promise<void> {
    const text = this.#model.get(id);
    for (const store of this.#instances) {
      const loaded = await store.load(id);
      this.#expect(this.#subject(`load("${id}")`), loaded, text === undefined ? undefined : JSON.parse(text));
      if (loaded && this.#below(3) === 0) this.#loaded.push(loaded);
    }
  }

  #subject(subject: string): string {
    return `${subject} after step ${this.#steps} of seed ${this.#seed}`;
  }

  #one<T>(choices: readonly T[]): T {
    return choices[this.#below(choices.length)] as T; // there is at least one
  }
}
