/**
 * Keys: the same request, sent twice, is one run.
 *
 * @module
 */
import { SessionError } from "../../core/claim.ts";
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

/** Begins what each request asks for, or joins it where that has begun. Whoever was about to begin, and died, is replaced. */
export function onceIn(log: Log, host: Host): <T>(request: Keyed, asker: Asker, ways: Ways<T>) => Promise<T> {
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
    const claim = isMine ? mine : await claimOf(log, id);
    if (!claim) return await begin(place, id);
    if (claim.content !== content) {
      throw new RecordError("Cannot do this: the key is that of another request", "key-reused");
    }
    if (!isMine && await hasBegun(log, host, asker, claim)) {
      if (await isOf(log, host, asker, claim, id)) return await join(claim);
      throw new SessionError(`Cannot resume session "${claim.session}": it is not paused`, "not-paused");
    }
    if (!isMine && !host.keeps && Date.now() < claim.at + host.lease) {
      throw new RecordError("Cannot do this again: it may have begun elsewhere", "repeated");
    }
    try {
      return await begin(claim, id);
    } catch (error) {
      const mayHaveBegun = error instanceof SessionError && await hasBegun(log, host, asker, claim);
      if (mayHaveBegun && await isOf(log, host, asker, claim, id)) return await join(claim);
      if (isMine && released) await log.delete(id);
      throw error;
    }
  }

  return async (request, asker, ways) => {
    const id = `key:${await hashOf(JSON.stringify([asker.owner, request.key]))}`;
    const done = (last.get(id) ?? Promise.resolve()).then(() => beginOrJoin(id, request, asker, ways));
    const settled = done.then(() => {}, () => {}).then(() => { // who waits for it hears of a failure
      if (last.get(id) === settled) last.delete(id);
    });
    last.set(id, settled);
    return await done;
  };
}

async function claimOf(log: Log, id: string): Promise<Claim | undefined> {
  const page = await log.read(id, 0);
  const [line] = page?.lines ?? [];
  return line && JSON.parse(line);
}

/** Whether there is something at a place, or something comes: its run has the session, or had it. The record is there then. */
export async function hasBegun(log: Log, host: Host, asker: Asker, place: Required<Place>): Promise<boolean> {
  const { run, session, after } = place;
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
}

/** Whether what has begun at a place goes on with `request`: a run that begins there does, and one that goes on says so first of all. */
async function isOf(log: Log, host: Host, asker: Asker, place: Required<Place>, request: string): Promise<boolean> {
  const { run, session, after } = place;
  if (after === 0) return true;
  const { first, lines: [started] } = await log.read(recordId(run, asker), after) ?? { first: after + 1, lines: [] };
  if (started !== undefined) return first > after + 1 || JSON.parse(started).request === request;
  return (await host.load(session, asker))?.run?.request === request;
}

/** The SHA-256 of a text. */
async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
