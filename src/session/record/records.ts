/**
 * The records of runs, wherever the runs are: written, followed, and brought to their end where nobody else does that.
 *
 * @module
 */
import { SessionError } from "../../core/claim.ts";
import type { Event } from "../../protocol/event.ts";
import { noUsage } from "../../protocol/message.ts";
import type { Mail, RunRecord, Session } from "../../protocol/session.ts";
import type { Sink } from "../../stream/channel.ts";
import { lineOf } from "../../stream/line.ts";
import type { Lines, Log, LogPage, RecordsOf } from "../log.ts";
import { type Asker, type Given, type Host, type LiveRun, type Place, recordId } from "./host.ts";
import { post } from "./mail.ts";
import { type Keys, keysIn } from "./keys.ts";
import { patiently } from "./patient.ts";
import { RecordError } from "./record_error.ts";
import { type Recorder, recorder } from "./recorder.ts";

/** The records of runs. To whoever asks, those of others are not there. */
export interface Records extends Keys {
  /** Puts the events of a run on record before `out` hears them; `onLost` is told where that cannot go on. */
  recorder(run: string, asker: Asker, out: Sink<Lines> | undefined, onLost: (error?: unknown) => void): Recorder;
  /**
   * What comes after a place, and then whatever comes until the run ends or pauses; nothing where it has, and nothing is left. Throws a `RecordError`
   * where the place is not there.
   */
  follow(place: Place, asker: Asker, signal: AbortSignal): Promise<AsyncIterable<LogPage> | undefined>;
  /** Ends a run that does not run here: it runs elsewhere, it was lost, or it waits for a person. Gives whether there is such a run. */
  stop(run: string, asker: Asker): Promise<boolean>;
  /** Says something to a run that runs elsewhere. Gives whether there was room for it; nothing where there is no such run. */
  post(run: string, mail: Mail, asker: Asker): Promise<boolean | undefined>;
  /** Ends the run that has a session and does not run here; gives it as it does that, or nothing where somebody else was faster. */
  close(run: string, session: string, reason: string, asker: Asker): Promise<LiveRun | undefined>;
  /** Ends the run that has a session, where it was lost, so that another one may have it. */
  free(session: Session, asker: Asker): Promise<void>;
  /** Brings the record of a paused run to its pause; gives the number of the last event on record of the run that has the session. */
  catchUp(session: Session, asker: Asker): Promise<number | undefined>;
  /** Settles when a run that runs elsewhere has ended or paused, when a lease has passed, and when `signal` aborts. Gives whether that can be told. */
  outlast(run: string, asker: Asker, signal: AbortSignal): Promise<boolean>;
}

/** What a server does with a log: keeps the record of each run, lets clients follow it, and looks after the runs whose processes have died. */
export const records: RecordsOf = recordsOf;

/** Keeps the records that are in `log`, of what `host` runs. */
export function recordsOf(log: Log, host: Host): Records {
  /** How far a record goes: a page without lines. */
  const end = (run: string, asker: Asker) => log.read(recordId(run, asker), Number.MAX_SAFE_INTEGER);

  /** The session of a run, as long as its record says that. */
  async function sessionOf(run: string, asker: Asker): Promise<string | undefined> {
    const page = await log.read(recordId(run, asker), 0);
    const started = page?.lines.find((line) => line.startsWith(`{"type":"run.started"`));
    return started && JSON.parse(started).session;
  }

  /** The session of a run, as it is kept. */
  async function keptOf({ run, session }: Pick<Place, "run" | "session">, asker: Asker): Promise<Session | undefined> {
    const id = session ?? await sessionOf(run, asker);
    return id === undefined ? undefined : await host.load(id, asker);
  }

  /**
   * Looks after a record that has not ended, of a run that does not run here: goes on with the run where it was lost, and adds the last event where the
   * session knows that and the record does not.
   */
  async function mend({ run, session: named }: Pick<Place, "run" | "session">, asker: Asker): Promise<void> {
    const page = host.get(run, asker) ? undefined : await end(run, asker);
    if (!page || page.ended) return;
    const session = named ?? await sessionOf(run, asker);
    if (host.keeps ? session === undefined : !host.isDead(run, asker)) return; // nobody can tell
    const kept = session === undefined ? undefined : await host.load(session, asker);
    const { last: after } = page;
    if (kept?.run?.id !== run || kept.run.status === "paused") {
      await log.append(recordId(run, asker), { after, lines: [lineOf(lastEvent(run, kept))], ended: true });
    } else if (isLost(kept.run, host, asker)) {
      await take({ run, session: kept.id, answers: [], after }, asker);
    }
  }

  /** Whether a run that has paused goes on, of which nothing is on record yet. What comes then is followed. */
  async function goesOn(place: Place, { last }: LogPage, asker: Asker): Promise<boolean> {
    const { run } = place;
    const { run: has } = await keptOf(place, asker) ?? {};
    return has?.id === run && has.status === "running" &&
      await log.append(recordId(run, asker), { after: last, lines: [], ended: false });
  }

  /** Goes on with a run that nobody listens to. */
  async function take(given: Given, asker: Asker): Promise<LiveRun | undefined> {
    try {
      const run = await host.launch(given, asker);
      asker.outlive(run.over);
      return run;
    } catch (error) {
      if (error instanceof SessionError || error instanceof RecordError) return undefined; // somebody else was faster
      throw error;
    }
  }

  const close: Records["close"] = async (run, session, closing, asker) => {
    const { last: after } = await end(run, asker) ?? {};
    return await take(
      { run, session, answers: [], closing, busy: "replace", ...(after !== undefined && { after }) },
      asker,
    );
  };

  async function* pages(page: LogPage, place: Place, asker: Asker, signal: AbortSignal): AsyncGenerator<LogPage> {
    const { first, lines, last, ended } = page;
    if (lines.length > 0) yield page;
    const after = first + lines.length - 1;
    if (ended && after === last) return;
    yield* patiently(log, recordId(place.run, asker), {
      after,
      signal: host.signal ? AbortSignal.any([signal, host.signal]) : signal,
      silence: host.lease,
      look: () => mend(place, asker),
    });
  }

  return {
    recorder: (run, asker, out, onLost) => recorder({ log, id: recordId(run, asker), out, onLost }),
    close,
    async follow(place, asker, signal) {
      const { run, after } = place;
      const page = isId(run) ? await log.read(recordId(run, asker), after) : undefined;
      if (!page) throw new RecordError(`Cannot follow run "${run}": there is none`, "unknown");
      const named = `run "${run}" after event ${after}`;
      if (after > page.last) throw new RecordError(`Cannot follow ${named}: the last is ${page.last}`, "ahead");
      if (page.first > after + 1) {
        throw new RecordError(`Cannot follow ${named}: what comes next is forgotten`, "forgotten");
      }
      const ended = page.ended && (after < page.last || !await goesOn(place, page, asker));
      if (ended && after === page.last) return undefined;
      if (!ended) await mend(place, asker);
      return pages({ ...page, ended }, place, asker, signal);
    },
    async stop(run, asker) {
      const page = isId(run) ? await end(run, asker) : undefined;
      if (!page) return false;
      const kept = await keptOf({ run }, asker);
      if (kept?.run?.id === run) await close(run, kept.id, "stop", asker);
      else await mend({ run }, asker);
      return true;
    },
    async post(run, mail, asker) {
      const session = isId(run) ? await sessionOf(run, asker) : undefined;
      return session === undefined ? undefined : await post({ run, session }, mail, asker, host);
    },
    async free({ id, run }, asker) {
      if (run && isLost(run, host, asker)) await (await close(run.id, id, "lost", asker))?.over;
    },
    async catchUp({ id: session, run }, asker) {
      if (!run) return undefined;
      if (run.status === "paused") {
        const here = host.get(run.id, asker);
        const opened = await here?.opened.catch(() => undefined);
        if (opened && opened.after < run.events) await here?.over; // it paused just now
        await mend({ run: run.id, session }, asker);
      }
      return (await end(run.id, asker))?.last;
    },
    async outlast(run, asker, signal) {
      const page = await end(run, asker);
      if (!page || page.ended) return false;
      const over = new AbortController();
      const timer = setTimeout(() => over.abort(), host.lease);
      for await (const _ of log.tail(recordId(run, asker), page.last, AbortSignal.any([signal, over.signal])));
      clearTimeout(timer);
      return true;
    },
    ...keysIn(log, host),
  };
}

/** Whether a run may have that id: what else is on record has others. */
function isId(run: string): boolean {
  return /^[\w-]+$/.test(run);
}

/** Whether the process of a run that has its session is dead. */
function isLost({ id, status, until = Infinity }: RunRecord, host: Host, asker: Asker): boolean {
  return status === "running" && !host.get(id, asker) && (Date.now() >= until || host.isDead(id, asker));
}

/** The last event of a run that has paused or ended, as its session knows it; one that it does not know was lost. */
function lastEvent(run: string, { run: has, last }: Partial<Session> = {}): Event {
  if (has?.id === run) return { type: "run.paused", questions: has.pending?.questions ?? [], usage: has.usage };
  return last?.run === run ? last.event : { type: "run.aborted", reason: "lost", text: "", usage: noUsage };
}
