/**
 * The writer of durable sessions, which renews a lease, retries, and receives messages from other processes.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { clearTurn, turn } from "../../stream/turn.ts";
import { startTimer } from "../lib/cancellation.ts";
import type { Position } from "../run/position.ts";
import { saveWithRetries, withRetries } from "./retries.ts";
import { type Lease, type Mail, mailedMessages, type Session } from "./session.ts";
import {
  endedSession,
  type OpenWriter,
  type RunStore,
  type SessionWriter,
  type WriterOptions,
  type WriterRun,
} from "./store.ts";

/** Creates the writer of a run in a store that outlives the process. */
export const durableWriter: OpenWriter = (store, run, options) => new DurableWriter(store, run, options);

/** A session without its version. */
type Unsaved = Omit<Session, "version">;

/** A session to save, and the messages from other processes that have arrived since it was read. */
interface Draft {
  readonly session: Unsaved;
  readonly arrived: Mail[];
}

/** Writes the session of one run. Saves run one at a time, in order. */
class DurableWriter implements SessionWriter {
  readonly durable: boolean;
  readonly #store: Omit<RunStore, "writer">;
  readonly #run: WriterRun;
  readonly #id: string;
  readonly #runId: string;
  readonly #lease: number;
  #version: number;
  /** The lease that is stored. */
  #held: Lease | undefined;
  #released = false;
  /** Messages that arrive after the run has taken its last ones, until the last draft is read. */
  #late: Mail[] | undefined;
  #saves: boolean;
  /** The last requested save, and one that was requested and has not begun. */
  #requested: Promise<unknown> = Promise.resolve();
  #pending: Promise<boolean> | undefined;
  /** The last save that has begun. */
  #running: Promise<unknown> = Promise.resolve();
  /** The draft that is stored, and the one that is being saved. */
  #stored: Draft | undefined;
  #saving: Draft | undefined;
  #ending = false;
  #closed = false;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  /** A checkpoint that waits for the next turn of the event loop. */
  #later: ReturnType<typeof setTimeout> | undefined;

  constructor(
    store: Omit<RunStore, "writer">,
    run: WriterRun,
    { version, always, lease, session, run: id }: WriterOptions,
  ) {
    this.#store = store;
    this.#run = run;
    this.#id = session;
    this.#runId = id;
    this.#lease = lease;
    this.#version = version;
    this.#saves = always;
    this.durable = always;
  }

  claim(): Promise<boolean> {
    return this.#save();
  }

  async checkpoint(_: Position, urgent: boolean): Promise<void> {
    if (!urgent) this.#later ??= turn(() => void this.checkpoint(_, true).catch((error) => this.#run.report(error)));
    else if (!await this.#save()) this.#run.abort("lost");
  }

  end(last: Event | undefined): Promise<boolean> {
    if (last && !this.#saves) return Promise.resolve(true);
    if (last) this.#late ??= [];
    return this.#request(() => last ? endedSession(this.#run.read(), last) : this.#run.read(), true);
  }

  release(session: Unsaved): Promise<boolean> {
    this.#late ??= [];
    const saved = this.#request(() => {
      this.#released = true;
      return session;
    }, true);
    return saved.finally(() => this.close());
  }

  async archive(): Promise<string | undefined> {
    if (!this.#saves) return undefined;
    const { messages, owner, archive } = this.#run.read();
    const id = crypto.randomUUID();
    const version = await saveWithRetries(this.#store, {
      id,
      version: 0,
      messages,
      ...(owner !== undefined && { owner }),
      ...(archive !== undefined && { archive }),
    });
    return version === undefined ? undefined : id;
  }

  close(): void {
    this.#ending = true;
    this.#closed = true;
    clearTimeout(this.#renewal);
    clearTurn(this.#later);
  }

  /** Saves the run as it is when the save begins. Requests that arrive before share it. */
  #save(): Promise<boolean> {
    if (!this.#saves) return Promise.resolve(true);
    return this.#pending ??= this.#request(() => {
      this.#pending = undefined;
      return this.#run.read();
    }, false);
  }

  /** Queues a save. It waits until the events that the session knows of are logged. */
  #request(read: () => Unsaved, last: boolean): Promise<boolean> {
    if (this.#ending) return Promise.resolve(true);
    this.#ending = last;
    clearTurn(this.#later);
    this.#later = undefined;
    const done = this.#requested.then(async () => {
      const draft: Draft = { session: read(), arrived: (last && this.#late) || [] };
      if (last) this.#late = undefined;
      this.#saving = draft;
      await this.#run.logged();
      if (this.#run.leave) return true;
      return await this.#write(draft, last);
    });
    this.#requested = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }

  /** Writes one save after another. If another process has the session, it also logs the events from then on. */
  #write(draft: Draft, last: boolean): Promise<boolean> {
    if (this.#closed) return Promise.resolve(true);
    this.#closed = last;
    return this.#inTurn(() => this.#put(draft));
  }

  /** Changes the stored session after the change before, until that succeeds. Resolves to false if another process has the session. */
  #inTurn(change: () => Promise<boolean>): Promise<boolean> {
    const done = this.#running.then(async () => {
      clearTimeout(this.#renewal);
      while (!await change()) {
        if (await this.#receive()) continue;
        this.#run.stopLogging();
        return false;
      }
      this.#saves = true;
      this.#renewLater();
      return true;
    });
    this.#running = done.catch(() => {}); // the caller of save() handles the failure
    return done;
  }

  /** Stores a draft with a lease. Returns false if another process was faster. */
  async #put(draft: Draft): Promise<boolean> {
    const session = this.#complete(draft);
    const version = await saveWithRetries(this.#store, { ...session, version: this.#version });
    if (version === undefined) return false;
    this.#version = version;
    this.#held = session.lease;
    this.#stored = draft;
    return true;
  }

  /** Adds the lease of a running run, and the messages that have arrived. */
  #complete({ session, arrived }: Draft): Unsaved {
    if (!session.run) return { ...session, messages: [...session.messages, ...mailedMessages(arrived)] };
    const { closing, rollback } = this.#run;
    const lease: Lease = {
      until: Math.ceil(Date.now() + (this.#released ? 0 : this.#lease)),
      ...(this.#released && { released: true }),
      ...(closing !== undefined && { closing, ...(rollback && { rollback }) }),
    };
    return {
      ...session,
      ...(!session.run.exit && { lease }),
      ...(arrived.length > 0 && { mail: [...arrived] }),
    };
  }

  /** Takes the messages that other processes put into the session. Returns false if they changed anything else. */
  async #receive(): Promise<boolean> {
    const { version = 0, run, mail = [], lease } = await withRetries(() => this.#store.load(this.#id)) ?? {};
    const arrived = mail.slice(this.#stored?.arrived.length ?? 0);
    const isOwn = run !== undefined && run.id === this.#runId;
    if (!isOwn || arrived.length === 0 || version !== this.#version + arrived.length) return false;
    this.#version = version;
    this.#held = lease;
    this.#run.receive(arrived);
    this.#late?.push(...arrived);
    for (const draft of new Set([this.#stored, this.#saving])) draft?.arrived.push(...arrived);
    return true;
  }

  /** Renews the lease, and saves nothing else. A failure is retried at the next renewal. */
  async #renew(): Promise<void> {
    try {
      if (!await this.#renewed()) this.#run.abort("lost");
    } catch (error) {
      this.#run.report(error);
      this.#renewLater();
    }
  }

  #renewed(): Promise<boolean> {
    const stored = this.#stored;
    const isKnown = this.#held !== undefined && this.#held.closing === this.#run.closing;
    if (!isKnown && stored) return this.#write(stored, false); // a process that takes over has to know that the run ends
    return this.#closed ? Promise.resolve(true) : this.#inTurn(() => this.#extend());
  }

  /** Moves the end of the stored lease. A move that failed may have been stored all the same, which counts as a success. */
  async #extend(): Promise<boolean> {
    const { closing } = this.#held ?? {};
    const until = Math.ceil(Date.now() + this.#lease);
    const moved = await withRetries(async (attempt) => {
      const session = { id: this.#id, version: this.#version, ...(this.#held && { lease: this.#held }) };
      if (await this.#store.touch(session, until)) return true;
      if (attempt === 0) return false;
      const { version, lease } = await this.#store.load(this.#id) ?? {};
      return version === this.#version && lease?.until === until;
    });
    if (moved) this.#held = { until, ...(closing !== undefined && { closing }) };
    return moved;
  }

  #renewLater(): void {
    if (this.#closed) return;
    this.#renewal = startTimer(() => void this.#renew(), this.#lease / 3); // #renew() reports its failures
  }
}
