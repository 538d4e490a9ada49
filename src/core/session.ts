/**
 * Sessions: the data that outlives a run. Plain JSON. The file also has the errors of sessions.
 *
 * @module
 */
import { type RunSnapshot, type Stop, stopFor, stops } from "./position.ts";
import { brand } from "../protocol/brand.ts";
import type { Event } from "../protocol/event.ts";
import type { Message, UserMessage } from "../protocol/message.ts";
import { type Question, restoreSchemas } from "../protocol/question.ts";

// Errors of sessions.

/** A session that cannot be claimed. */
export class SessionError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "SessionError");

  /** The name of the class. */
  override readonly name = "SessionError";

  /** Creates the error with a code for programs. */
  constructor(
    message: string,
    readonly code: "busy" | "unknown" | "not-paused" | "unasked" | "invalid" | "refused",
    /** The run that has the session, if it is busy. */
    readonly run?: string,
    /** The messages of a session that the caller may see. */
    readonly messages: readonly Message[] = [],
  ) {
    super(message);
  }
}

// The session, and its head.

/** A conversation, and the run that has it. */
export interface Session {
  /** The session's id. */
  readonly id: string;
  /** The number of its saves. 0: not saved yet. */
  readonly version: number;
  /** The transcript. It is always valid: the open calls of a run are in its position. */
  readonly messages: readonly Message[];
  /** The number of compactions of the transcript. The store keeps the messages from before each one. Default: 0. */
  readonly compactions?: number;
  /** The session with the transcript from before the last compaction that version 0.1.0 of the package has made. It is deleted with this one. */
  readonly archive?: string;
  /** The run that has the session: it runs, has paused, or its process died. */
  readonly run?: RunSnapshot;
  /** The owner, if there is one. */
  readonly owner?: string;
  /** State of middleware for the session, by name. */
  readonly state?: readonly (readonly [string, unknown])[];
  /** Questions that a person always allows. */
  readonly rules?: readonly Rule[];
  /** The last event of the last run, for clients that have missed it, the number of messages before that run, and its end in milliseconds since 1970. */
  readonly last?: { readonly run: string; readonly event: Event; readonly before?: number; readonly at?: number };
  /** The lease of a running run. */
  readonly lease?: Lease;
  /** Messages and requests of other processes that the run has not read. */
  readonly mail?: readonly Mail[];
  /** The number of the last entry with mail that the run has read. */
  readonly readUntil?: number;
  /** Set in an entry that is not a conversation: it remembers that the end of a run has to be reported. Written by servers with the `onEnd` option. */
  readonly report?: ExpectedReport;
}

/** A session without its version. */
export type Unsaved = Omit<Session, "version">;

/** A session without its messages. */
export type SessionHead = Omit<Session, "messages">;

/** The claim of a process on a session. */
export interface Lease {
  /** The end of the lease, in milliseconds since 1970. The run is lost if it is not renewed before. */
  readonly until: number;
  /** The reason why the run is being stopped, if it is. A process that takes over ends the run. */
  readonly closing?: string;
  /** True if a caller has given the reason. Default: it is one of the engine. */
  readonly requested?: boolean;
  /** True if the transcript is restored to the start of the run then. */
  readonly rollback?: boolean;
  /** True if the process gave the run back when it shut down. Default: the run is lost at the end of the lease. */
  readonly released?: boolean;
}

/** Returns the stop that a lease tells of. */
export function stopOf({ closing, requested = false }: Lease): Stop | undefined {
  if (closing === undefined) return undefined;
  const known = Object.values(stops).find(({ reason }) => reason === closing);
  return known && !requested ? known : stopFor(closing);
}

/** A run whose end has to be reported. */
export interface ExpectedReport {
  /** The run. */
  readonly run: string;
  /** Its session. */
  readonly session: string;
  /** The owner of both, if there is one. */
  readonly owner?: string;
  /** The start of the run, in milliseconds since 1970. */
  readonly at: number;
  /** The pause to report, if its run was resumed before that. Default: the pause or the end of the run, which its session or its log knows. */
  readonly end?: { readonly event: Event; readonly id: number };
}

/** A question that needs no further answer of a person: about the calls of a tool, or about those with one input. A deny still wins. */
export interface Rule {
  /** The name of the tool. */
  readonly tool: string;
  /** The names of the tools whose agents the tool belongs to. Default: it belongs to the agent that runs. */
  readonly path?: readonly string[];
  /** The input, as the person saw it. Default: matches every input. */
  readonly input?: unknown;
  /** The middleware that asked, or the tool itself, and the key of its question. A rule of an earlier version has none, and matches nothing. */
  readonly askedBy?: { readonly middleware?: string; readonly key: string };
}

/** A request of another process to a run: a message, or to finish. */
export type Mail =
  | {
    readonly type: "message";
    readonly message: UserMessage;
    /** The context that `input` hooks added to the message. It is delivered before the message. */
    readonly context?: readonly UserMessage[];
    readonly after?: "batch" | "calls";
  }
  | { readonly type: "finish" };

/** Returns true if the session's run has paused. */
export function isPaused(session: SessionHead | undefined): boolean {
  return session?.run?.exit?.status === "paused";
}

/** Returns the questions of a paused run. */
export function questionsOf(session: Pick<Session, "run"> | undefined): readonly Question[] {
  const exit = session?.run?.exit;
  return exit ? restoreSchemas(exit).questions ?? [] : [];
}

/** Returns the messages among the requests of other processes, with their context. */
export function mailedMessages(mail: readonly Mail[]): readonly UserMessage[] {
  return mail.flatMap((request) => request.type === "message" ? [...request.context ?? [], request.message] : []);
}
