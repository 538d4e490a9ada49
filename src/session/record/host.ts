/**
 * Who runs what is on record, and for whom.
 *
 * @module
 */
import type { Started, StartOptions } from "../../core/run.ts";
import type { Session } from "../../protocol/session.ts";
import type { Held } from "../resume_token/held.ts";

/** Who asks for something. They reach what is theirs. */
export interface Asker {
  /** Who it is; nothing where nobody looks at that. */
  readonly owner: string | undefined;
  /** What the agent is told of them. */
  vars(): Promise<unknown>;
  /** Has the platform wait for `work`, which the response does not, where it has to be asked for that. */
  outlive(work: Promise<unknown>): void;
}

/** What a run begins with, or goes on with. */
export interface Given extends
  Partial<
    Pick<StartOptions, "answers" | "after" | "closing" | "busy" | "request" | "at" | "compact" | "tools">
  > {
  /** The run's id. */
  readonly run: string;
  /** Its session. */
  readonly session: string;
  /** What its session is in, where its client keeps that. */
  readonly held?: Held | undefined;
}

/** A run that runs here. */
export interface LiveRun extends Started {
  /** Settles when it has its session, and its first events are on record; rejects where it may not. */
  readonly begun: Promise<void>;
  /** Settles when it has ended, and its events are on record. */
  readonly over: Promise<void>;
}

/** Whoever runs runs. */
export interface Host {
  /** Whether sessions are kept, so that they say what has become of their runs. */
  readonly keeps: boolean;
  /** Milliseconds of silence after which it is looked whether a run was lost. */
  readonly lease: number;
  /** Ends all following. */
  readonly signal: AbortSignal | undefined;
  /** The session of this id, where it is the asker's. */
  load(session: string, asker: Asker): Promise<Session | undefined>;
  /** Keeps a session, as its store does. */
  save(session: Session): Promise<number | undefined>;
  /** The run of this id, where it runs here and is the asker's. */
  get(run: string, asker: Asker): LiveRun | undefined;
  /** Whether it is known that a run runs nowhere. */
  isDead(run: string, asker: Asker): boolean;
  /** Begins a run, or goes on with one; settles when that has begun. */
  launch(given: Given, asker: Asker): Promise<LiveRun>;
}

/** A place in the record of a run. */
export interface Place {
  /** The run. */
  readonly run: string;
  /** The number of the event before the place. */
  readonly after: number;
  /** The run's session. Default: what the record says. */
  readonly session?: string;
}

/** The id of the record of a run. The owner is in it, so that nobody else comes upon it. */
export function recordId(run: string, { owner }: Asker): string {
  return owner === undefined ? run : `${run} ${owner}`;
}

/** A session, where it is the asker's. */
export function theirs(session: Session | undefined, { owner }: Asker): Session | undefined {
  return owner === undefined || session?.owner === owner ? session : undefined;
}
