/**
 * Keys: the same request, sent twice, is one run.
 *
 * @module
 */
import { SessionError } from "../../core/claim.ts";
import { hashOf } from "../hash.ts";
import type { Log } from "../log.ts";
import { type Asker, type Host, type Place, recordId } from "./host.ts";
import { RecordError } from "./record_error.ts";

/** A request that is one, however often it is sent. */
export interface Keyed {
  /** By which it is known again. */
  readonly key: string;
  /** What it says: another request says something else. */
  readonly content: string;
  /** Where its events will be; nothing where nothing can begin. */
  readonly place: Required<Place> | undefined;
  /** Whether another request may take the key where nothing begins. Default: false. */
  readonly released?: boolean;
}

/** What is done about a request. */
export interface Ways<T> {
  /** Begins a run, or goes on with one, where nobody has. The run says on record by what `request` is known. */
  begin(place: Required<Place> | undefined, request: string): Promise<T>;
  /** Joins what was begun. */
  join(place: Required<Place>): Promise<T>;
}

/** What is on record of a key. */
interface Claim extends Required<Place> {
  /** The hash of what the request says. */
  readonly content: string;
  /** In milliseconds since 1970. */
  readonly at: number;
}

/** Knows requests again. */
export interface Keys {
  /**
   * Begins what a request asks for, once for each key, and joins it from then on. Whoever was about to begin, and died, is replaced. Throws a `RecordError`
   * where the key is of another request.
   */
  once<T>(request: Keyed, asker: Asker, ways: Ways<T>): Promise<T>;
  /** Whether there is something at a place, or something comes: its run has the session, or had it. The record is there then. */
  hasBegun(place: Required<Place>, asker: Asker): Promise<boolean>;
}

/** Keeps keys in `log`, of what `host` runs. */
export function keysIn(log: Log, host: Host): Keys {
  /** When whoever came last with a key has begun, or never will. */
  const last = new Map<string, Promise<void>>();

  async function beginOrJoin<T>(
    id: string,
    { place, released, ...request }: Keyed,
    asker: Asker,
    { begin, join }: Ways<T>,
  ): Promise<T> {
    const content = await hashOf(request.content);
    const mine: Claim | undefined = place && { ...place, content, at: Date.now() };
    const isMine = mine && await log.append(id, { after: 0, lines: [JSON.stringify(mine)], ended: true });
    const claim = isMine ? mine : await claimOf(id);
    if (!claim) return await begin(place, id);
    if (claim.content !== content) {
      throw new RecordError("Cannot do this: the key is that of another request", "key-reused");
    }
    if (!isMine && await hasBegun(claim, asker)) {
      if (await isOf(claim, asker, id)) return await join(claim);
      throw new SessionError(`Cannot resume session "${claim.session}": it is not paused`, "not-paused");
    }
    if (!isMine && !host.keeps && Date.now() < claim.at + host.lease) {
      throw new RecordError("Cannot do this again: it may have begun elsewhere", "repeated");
    }
    try {
      return await begin(claim, id);
    } catch (error) {
      const mayHaveBegun = error instanceof SessionError && await hasBegun(claim, asker);
      if (mayHaveBegun && await isOf(claim, asker, id)) return await join(claim);
      if (isMine && released) await log.delete(id);
      throw error;
    }
  }

  async function claimOf(id: string): Promise<Claim | undefined> {
    const page = await log.read(id, 0);
    const [line] = page?.lines ?? [];
    return line && JSON.parse(line);
  }

  const hasBegun: Keys["hasBegun"] = async ({ run, session, after }, asker) => {
    const here = host.get(run, asker);
    const opened = await here?.opened.catch(() => undefined);
    if (here && opened && opened.after >= after) {
      await here.begun;
      return true;
    }
    await here?.over; // it has paused just now, or was refused
    const page = await log.read(recordId(run, asker), after);
    if (page && page.last > after) return true;
    const { run: has, last } = await host.load(session, asker) ?? {};
    const began = last?.run === run || (has?.id === run && has.status === "running");
    if (began) await log.append(recordId(run, asker), { after, lines: [], ended: false }); // where it writes on, if it lives
    return began;
  };

  /** Whether what has begun at a place goes on with `request`: a run that begins there does, and one that goes on says so first of all. */
  async function isOf({ run, session, after }: Required<Place>, asker: Asker, request: string): Promise<boolean> {
    if (after === 0) return true;
    const { first, lines: [started] } = await log.read(recordId(run, asker), after) ?? { first: after + 1, lines: [] };
    if (started !== undefined) return first > after + 1 || JSON.parse(started).request === request;
    return (await host.load(session, asker))?.run?.request === request;
  }

  return {
    hasBegun,
    async once(request, asker, ways) {
      const id = `key:${await hashOf(JSON.stringify([asker.owner, request.key]))}`;
      const done = (last.get(id) ?? Promise.resolve()).then(() => beginOrJoin(id, request, asker, ways));
      const settled = done.then(() => {}, () => {}).then(() => { // who waits for it hears of a failure
        if (last.get(id) === settled) last.delete(id);
      });
      last.set(id, settled);
      return await done;
    },
  };
}
