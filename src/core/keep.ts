/**
 * The keeping of a run's session: it is saved as the run goes, so that whoever finds it goes on where it ends.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { RunRecord } from "../protocol/session.ts";
import { reasonOf, startTimer } from "./abandon.ts";
import type { Live } from "./live.ts";
import { having, type Said, waiting } from "./mail.ts";
import { persist, withRetries } from "./persist.ts";
import type { Store } from "./store.ts";
import { type Way, wayOf } from "./way.ts";

/** What a session is kept with. */
export interface KeepingOptions {
  readonly store: Store;
  /** The version that is kept; 0 where none is. */
  readonly version: number;
  /** Whether it is kept as it goes; otherwise only where the run pauses. */
  readonly always: boolean;
  readonly owner: string | undefined;
  /** Milliseconds for which a save says that the run lives. */
  readonly lease: number;
}

/** The keeping of one run's session: one save after another, and one in time to say that the run lives. */
export class Keeping {
  readonly #live: Live;
  readonly #store: Store;
  readonly #owner: string | undefined;
  readonly #lease: number;
  #version: number;
  #always: boolean;
  /** The last that was asked for, and one that was asked for and has not begun: it says all that there is to say then. */
  #asked: Promise<unknown> = Promise.resolve();
  #due: Promise<boolean> | undefined;
  /** Whether nothing more is asked for, and whether nothing more is saved. */
  #ending = false;
  #over = false;
  /** The last save, and what it said. */
  #saved: Promise<unknown> = Promise.resolve();
  #said: Said | undefined;
  /** What the one that was asked for is about to say. */
  #saying: Said | undefined;
  /** How far the run was when it began to end. */
  #way: Way | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  /** Begins with what is kept now. */
  constructor(live: Live, { store, version, always, owner, lease }: KeepingOptions) {
    this.#live = live;
    this.#store = store;
    this.#version = version;
    this.#always = always;
    this.#owner = owner;
    this.#lease = lease;
  }

  /** Whether what is saved in the middle of things may be found by somebody: not where it ends with this process. */
  get steady(): boolean {
    return this.#always && !this.#store.volatile;
  }

  /** Saves the session as it is; gives whether it is still this run's. */
  save(): Promise<boolean> {
    if (!this.#always) return Promise.resolve(true);
    this.#due ??= this.#ask(() => {
      this.#due = undefined;
      return this.#record("running");
    });
    return this.#due;
  }

  /** Saves the session for the last time, with the run as it waits for a person. */
  pause(): Promise<boolean> {
    return this.#ask(() => this.#record("paused"), true);
  }

  /** Says no more how far the run is: it is coming to its end, which is kept as a whole or not at all. Nothing is said to it any more. */
  freeze(): void {
    this.#way ??= wayOf(this.#live);
    this.#live.inbox.closed = true;
  }

  /** Saves the session for the last time, with the last event of the run. */
  end(event: Event): Promise<boolean> {
    if (!this.#always) return Promise.resolve(true);
    const { id: run, transcript: { messages, earlier, began: before }, inbox } = this.#live;
    return this.#ask(() => ({
      messages: [...messages, ...inbox.take()], // what has come in the meantime
      ...(earlier !== undefined && { earlier }),
      last: { run, event, before },
    }), true);
  }

  /** Keeps the transcript as it is, in a session of its own, before it is compacted. */
  async archive(): Promise<void> {
    if (!this.#always) return;
    const { messages, earlier } = this.#live.transcript;
    const id = crypto.randomUUID();
    const version = await persist(this.#store, {
      id,
      version: 0,
      messages,
      ...(this.#owner !== undefined && { owner: this.#owner }),
      ...(earlier !== undefined && { earlier }),
    });
    if (version !== undefined) this.#live.transcript.earlier = id; // a store may have room for one session alone
  }

  /** Says no more that the run lives. */
  close(): void {
    this.#ending = true;
    this.#over = true;
    clearTimeout(this.#renewal);
  }

  /**
   * Saves what `say` says then, after what was asked for before, and when all that was told until then is on record: nobody misses what the session knows to
   * have happened.
   */
  #ask(say: () => Said, last = false): Promise<boolean> {
    if (this.#ending) return Promise.resolve(true);
    this.#ending = last;
    const done = this.#asked.then(async () => {
      const said = say();
      this.#saying = said;
      if (last || this.steady) await this.#live.sink.settled?.();
      if (this.#live.left) return false; // somebody else tells what happens
      return await this.#save(() => this.#saying ?? said, last);
    });
    this.#asked = done.catch(() => {}); // whoever asked for it hears of that
    return done;
  }

  /** Says that the run lives, and nothing new of it; it stops where its session is not its own any more. What fails is tried again in time. */
  async renew(): Promise<void> {
    try {
      const lives = await this.#save(() => {
        const { run, ...rest } = this.#said ?? this.#record("running");
        return { ...rest, ...(run && { run: { ...run, until: Date.now() + this.#lease } }) };
      });
      if (!lives) this.#live.abort("lost");
    } catch (error) {
      this.#live.events.report(error);
      this.#renewLater();
    }
  }

  #renewLater(): void {
    if (!this.#over && !this.#store.volatile) this.#renewal = startTimer(() => void this.renew(), this.#lease / 3);
  }

  /** One save after another. Where somebody else has the session, what is told is theirs to tell from then on. */
  #save(say: () => Said, last = false): Promise<boolean> {
    if (this.#over) return Promise.resolve(true);
    this.#over = last;
    const done = this.#saved.then(async () => {
      clearTimeout(this.#renewal);
      while (!await this.#persist(say())) {
        if (await this.#receive()) continue;
        this.#live.sink.yield?.();
        return false;
      }
      this.#always = true;
      this.#renewLater();
      return true;
    });
    this.#saved = done.catch(() => {}); // whoever asked for it hears of that
    return done;
  }

  /** Gives whether nobody else was faster. */
  async #persist(said: Said): Promise<boolean> {
    const { session: id, rules, lasting } = this.#live;
    const version = await persist(this.#store, {
      id,
      version: this.#version,
      ...(this.#owner !== undefined && { owner: this.#owner }),
      ...(lasting.size > 0 && { state: [...lasting] }),
      ...(rules.length > 0 && { rules }),
      ...said,
    });
    if (version === undefined) return false;
    this.#version = version;
    this.#said = said;
    return true;
  }

  /** Takes what others have put in the session for the run, and says that too from now on. Gives whether they have done nothing else to it. */
  async #receive(): Promise<boolean> {
    const { version = 0, run } = await withRetries(() => this.#store.load(this.#live.session)) ?? {};
    const { mail = [] } = run ?? {};
    if (run?.id !== this.#live.id || mail.length === 0 || version !== this.#version + mail.length) return false;
    this.#version = version;
    this.#live.inbox.receive(mail);
    this.#way &&= waiting(this.#way, mail);
    this.#said &&= having(this.#said, mail);
    this.#saying &&= having(this.#saying, mail);
    return true;
  }

  #record(status: RunRecord["status"]): Said {
    const { id, request, startedAt, usage, state, events } = this.#live;
    const { messages, earlier, pending, ...way } = this.#way ?? wayOf(this.#live);
    const { questions = [] } = this.#live.pending ?? {};
    const runs = status === "running";
    const closing = closingOf(this.#live);
    return {
      messages,
      ...(earlier !== undefined && { earlier }),
      run: {
        id,
        status,
        ...(request !== undefined && { request }),
        startedAt,
        ...(runs && !this.#store.volatile && { until: Date.now() + this.#lease }),
        ...(runs && closing !== undefined && { closing }),
        events: runs ? events.count : events.count + 1, // run.paused is still to come
        usage,
        ...way,
        state: [...state],
        ...((pending || questions.length > 0) && { pending: { ...pending, questions } }),
      },
    };
  }
}

/** Why a run is being ended, where it is. */
function closingOf({ closing, aborted, failure, reason }: Live): string | undefined {
  return aborted && !failure ? reasonOf(reason) : closing;
}
