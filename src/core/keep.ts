/**
 * What is kept of a run: its session is saved as it goes, and a run that paused, or whose process died, goes on where its record ends.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { OpenBatch, Pending, RunRecord, Session } from "../protocol/session.ts";
import { later, reasonOf } from "./abandon.ts";
import { canonical } from "./canonical.ts";
import type { Live } from "./live.ts";
import type { Store } from "./store.ts";

/** How often a save is tried that fails, and the milliseconds before each next try, which is later each time. */
const tries = 3;
const backoff = 100;

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
  #over = false;
  /** How far the run was when it began to end. */
  #way: Way | undefined;
  /** The last save that was asked for. */
  #last: Promise<unknown> = Promise.resolve();
  /** One that was asked for and has not begun: it says all that there is to say then. */
  #due: Promise<boolean> | undefined;
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
  save(status: RunRecord["status"] = "running"): Promise<boolean> {
    if (!this.#always && status === "running") return Promise.resolve(true);
    if (status === "paused") return this.#queue(() => this.#write(this.#record(status)), true);
    this.#due ??= this.#queue(() => {
      this.#due = undefined;
      return this.#write(this.#record(status));
    });
    return this.#due;
  }

  /** Says no more how far the run is: it is coming to its end, which is kept as a whole or not at all. */
  hold(): void {
    this.#way ??= wayOf(this.#live);
  }

  /** Saves the session for the last time, with the last event of the run. */
  end(event: Event): Promise<boolean> {
    if (!this.#always) return Promise.resolve(true);
    return this.#queue(() => this.#write({ last: { run: this.#live.id, event } }), true);
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
    this.#over = true;
    clearTimeout(this.#renewal);
  }

  /** `write` after what was asked for before; what comes after the last save is not saved. */
  #queue(write: () => Promise<boolean>, last = false): Promise<boolean> {
    if (this.#over) return Promise.resolve(true);
    this.#over = last;
    const done = this.#last.then(write);
    this.#last = done.catch(() => {}); // whoever asked for it hears of that
    return done;
  }

  async #write(rest: Partial<Session>): Promise<boolean> {
    clearTimeout(this.#renewal);
    const { session: id, transcript: { messages, earlier }, rules, lasting } = this.#live;
    const version = await persist(this.#store, {
      id,
      version: this.#version,
      messages,
      ...(this.#owner !== undefined && { owner: this.#owner }),
      ...(lasting.size > 0 && { state: [...lasting] }),
      ...(rules.length > 0 && { rules }),
      ...(earlier !== undefined && { earlier }),
      ...rest,
    });
    if (version === undefined) return false;
    this.#version = version;
    this.#always = true;
    if (!this.#over && !this.#store.volatile) this.#renewal = later(() => void this.renew(), this.#lease / 3);
    return true;
  }

  /** Says that the run lives; it stops where its session is not its own any more. What fails is tried again in time. */
  async renew(): Promise<void> {
    try {
      if (!await this.save()) this.#live.abort("lost");
    } catch (error) {
      this.#live.events.report(error);
      if (!this.#over) this.#renewal = later(() => void this.renew(), this.#lease / 3);
    }
  }

  #record(status: RunRecord["status"]): Pick<Session, "messages" | "earlier" | "run"> {
    const { id, startedAt, usage, state, events, inbox: { waiting }, aborted, failure, reason } = this.#live;
    const { messages, earlier, pending, ...way } = this.#way ?? wayOf(this.#live);
    const { questions = [] } = this.#live.pending ?? {};
    const runs = status === "running";
    return {
      messages,
      ...(earlier !== undefined && { earlier }),
      run: {
        id,
        status,
        startedAt,
        ...(runs && !this.#store.volatile && { until: Date.now() + this.#lease }),
        ...(runs && aborted && !failure && { closing: reasonOf(reason) }),
        events: runs ? events.count : events.count + 1, // run.paused is still to come
        usage,
        ...way,
        state: [...state],
        ...((pending || questions.length > 0) && { pending: { ...pending, questions } }),
        ...(waiting.length > 0 && { inbox: waiting }),
      },
    };
  }
}

/** How far a run is on its way. */
type Way = Pick<Session, "messages" | "earlier"> & Pick<RunRecord, "used" | "before" | "pending">;

function wayOf(live: Live): Way {
  const { used, transcript: { messages, earlier, began: before }, turning } = live;
  const pending = pendingOf(live);
  const anew = turning === "begun" && !pending?.batch;
  return {
    messages,
    ...(earlier !== undefined && { earlier }),
    used: { ...used, turns: used.turns - (anew ? 1 : 0) },
    before,
    ...(pending && { pending }),
  };
}

/** Where a run would go on. */
function pendingOf({ pending, prompt, batch, answered, compacting, turning, stopping }: Live): Pending | undefined {
  const turned = turning === "done";
  if (!pending && !prompt && !batch && !compacting && answered.length === 0 && !turned && !stopping) return undefined;
  return {
    questions: [],
    ...pending,
    ...(prompt && { prompt }),
    ...(compacting && { compact: compacting }),
    ...(batch && { batch: openBatch(batch) }),
    ...(answered.length > 0 && { answered }),
    ...(turned && { turned }),
    ...(stopping && { stopping }),
  };
}

/** A batch that is being run. */
export interface RunningBatch {
  readonly message: OpenBatch["message"];
  readonly results: ReadonlyMap<string, OpenBatch["results"][number]>;
  readonly started: ReadonlyMap<string, NonNullable<OpenBatch["started"]>[number]>;
  readonly children: ReadonlyMap<string, Session>;
}

function openBatch({ message, results, started, children }: RunningBatch): OpenBatch {
  return {
    message,
    results: [...results.values()],
    started: [...started.values()],
    ...(children.size > 0 && { children: Object.fromEntries(children) }),
  };
}

/** Saves, a few times where that fails: a save that failed may have been made all the same. */
async function persist(store: Store, session: Session): Promise<number | undefined> {
  for (let tried = 0;; tried++) {
    try {
      const kept = tried > 0 ? await store.load(session.id) : undefined;
      if (kept && isSame(kept, session)) return kept.version;
      return await store.save(session);
    } catch (error) {
      if (tried + 1 === tries) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoff * (tried + 1)));
    }
  }
}

function isSame(kept: Session, session: Session): boolean {
  return kept.version === session.version + 1 &&
    canonical({ ...kept, version: 0 }) === canonical({ ...session, version: 0 });
}

/** Goes on where a record ends. */
export function restore(live: Live, record: RunRecord): void {
  const { id, startedAt, events, usage, used, before, state, pending, inbox = [] } = record;
  Object.assign(live, { id, startedAt, usage, used: { ...used } });
  live.events.count = events;
  live.transcript.mark(before);
  for (const [name, value] of state) live.state.set(name, value);
  const { prompt, compact, answered = [], turned = false, stopping = false, ...where } = pending ?? { questions: [] };
  live.prompt = prompt;
  live.compacting = compact;
  live.answered = answered;
  live.pending = where;
  live.turning = turned ? "done" : undefined;
  live.stopping = stopping;
  live.inbox.waiting = inbox;
  live.resumed = true;
}
