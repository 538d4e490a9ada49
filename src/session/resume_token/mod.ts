/**
 * Resume tokens: paused sessions that their clients keep, for servers without a store.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/events.ts";
import { type Append, type Appended, headAfter, isSameMark, journalKey } from "../../core/journal.ts";
import { memoryJournal } from "../../core/memory_journal.ts";
import { isPaused, type Session } from "../../core/session.ts";
import { formatFor, inCurrentForm } from "../../core/session_format.ts";
import { readSession, storeSession } from "../../core/session_version.ts";
import { FinalError, type RunStore } from "../../core/store.ts";
import { brand } from "../../protocol/brand.ts";
import type { Event } from "../../protocol/event.ts";
import { expectNames } from "../../protocol/shape.ts";
import { encryption, type SecretKey } from "./encryption.ts";
import { type Sink, SinkFilter } from "../../stream/channel.ts";
import { lineOf } from "../../stream/sse.ts";
export type { SecretKey } from "./encryption.ts";
export type { NumberedEvent } from "../../core/events.ts";
export type { RunStore } from "../../core/store.ts";
export type { Sink } from "../../stream/channel.ts";

// Errors of resume tokens.

/**
 * The reason of a `ResumeTokenError`.
 *
 * - `forged`: the text is not a token of this server, or was changed.
 * - `unknown-key`: the server does not have the key that the text names.
 * - `version`: the token has another version of the format.
 * - `other-session`: the token is of another session.
 * - `expired`: the token has expired.
 * - `too-large`: the token or its session is too large.
 */
export type ResumeTokenProblem = "forged" | "unknown-key" | "version" | "other-session" | "expired" | "too-large";

/** A resume token that cannot be made or opened. Its message may be sent to the client. */
export class ResumeTokenError extends FinalError {
  /** The mark of the class, which its copies share. */
  static override readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ResumeTokenError");

  /** The name of the class. */
  override readonly name = "ResumeTokenError";

  /** Takes the message and the reason. */
  constructor(message: string, readonly code: ResumeTokenProblem) {
    super(message);
  }
}

// A session that its client keeps: the server holds it for one run, and seals it into a resume token when the run pauses.

/** A session that the server holds for one run. */
export interface HeldSession {
  /** The session from the resume token; undefined for a new session. */
  readonly session: Session | undefined;
  /** True if the store of the server shows that the token was used before. */
  readonly isUsed: boolean;
  /** The store for the run: that of the server, or one that holds this session only. */
  readonly store: RunStore;
  /** Passes events on to `sink`. A resume token is added to `run.paused`. */
  to(sink: Sink<NumberedEvent>): Sink<NumberedEvent>;
}

/** Holds `session` for one run, in `kept` or else for itself. `seal` makes the resume token when the run pauses. */
async function holdSession(
  session: Session | undefined,
  seal: (session: Session) => Promise<string>,
  kept: RunStore = { journal: memoryJournal() },
): Promise<HeldSession> {
  const { journal } = kept;
  let resumeToken: string | undefined;
  /** The append of the last pause. */
  let sealed: Append | undefined;
  /** The id under which the operator received the reason why the session was not saved. */
  let unsaved: string | undefined;
  const key = session && journalKey(session.owner, session.id);
  const head = key === undefined ? undefined : await journal.head(key);
  if (session && key !== undefined && !head) await storeSession(journal, key, session, undefined, session.version);

  /** Stores a pause with its token, so that a client which reconnects receives it, too. An append that is repeated stays the same. */
  async function append(key: string, append: Append): Promise<Appended | undefined> {
    if (append.change?.state !== "paused") return await journal.append(key, append);
    if (!sealed || !isSameMark(sealed.to, append.to)) sealed = await sealedAppend(key, append);
    return await journal.append(key, sealed);
  }

  /** Returns the append of a pause with its token in the last event. */
  async function sealedAppend(key: string, append: Append): Promise<Append> {
    const stored = await journal.open(key);
    const head = headAfter(append, stored);
    const { change, events } = append;
    if (!head || !change) return append; // nothing will be stored
    const added = change.entries.map((entry, index) => [change.last + 1 + index, entry] as const);
    const entries = [...stored?.entries ?? [], ...added].filter(([number]) => number >= head.base);
    const { readUntil: _, ...session } = readSession({ ...head, due: null, entries }, head.session ?? key).session; // `readUntil` counts entries, which a token does not have
    const token = resumeToken = await seal(session);
    const lines = events?.lines.map((line, index, all) =>
      index === all.length - 1 ? lineOf(tokenAdded(JSON.parse(line), token)) : line
    );
    return {
      ...append,
      ...(events && lines && { events: { ...events, lines } }),
    };
  }

  /** Returns the event that the client receives. A run whose pause was not saved has failed. */
  function shown(event: Event): Event {
    if (resumeToken !== undefined && event.type === "run.paused") return tokenAdded(event, resumeToken);
    if (event.type !== "run.failed" || event.error !== unsaved) return event;
    return { ...event, message: "The run cannot pause: its session does not fit into a resume token." };
  }

  return {
    session,
    isUsed: head !== undefined && head.mark.n !== session?.version,
    store: { ...kept, journal: { ...journal, append } },
    to: (sink) =>
      new SinkFilter(sink, ({ id, event }) => {
        if (event.type === "warning" && event.code === "session.unsaved") unsaved = event.error;
        sink.write({ id, event: shown(event) });
      }),
  };
}

/** Returns an event with the token, if it is a pause. */
function tokenAdded(event: Event, resumeToken: string): Event {
  return event.type === "run.paused" ? { ...event, resumeToken } : event;
}

// Resume tokens: paused sessions that their clients keep, for servers without a store.

/** Options of `resumeTokens()`. */
export interface ResumeTokenOptions {
  /** The first key encrypts; every key decrypts. To change keys, add the new one as the first, and remove the old one once its tokens have expired. */
  readonly keys: readonly SecretKey[];
  /** Milliseconds after which a token expires. Default: 86,400,000, a day. */
  readonly expiresIn?: number;
  /** The most bytes of a token. A token is a third larger than its session as JSON. Default: 262,144. */
  readonly maxBytes?: number;
  /** Returns the time in milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
}

/** Options of `ResumeTokens.open()`. */
export interface OpenOptions {
  /** The session that the token must contain. Default: every session is accepted. */
  readonly session?: string;
}

/** Options of `ResumeTokens.hold()`. */
export interface HoldOptions extends OpenOptions {
  /** The store of the server, which counts each token once. Default: none; sessions are in their tokens only. */
  readonly store?: RunStore | undefined;
}

/** Makes and opens resume tokens. */
export interface ResumeTokens {
  /** Makes the token of a session. Throws a `TypeError` if the session is not paused, and a `ResumeTokenError` if it is too large. */
  seal(session: Session): Promise<string>;
  /** Returns the session of a token. Throws a `ResumeTokenError` if the text is not a valid token. */
  open(text: string, options?: OpenOptions): Promise<Session>;
  /** Opens a token, or begins a new session without one, and holds the session for one run, as a server does. Throws as `open()` does. */
  hold(text?: string, options?: HoldOptions): Promise<HeldSession>;
}

/** The versions of the format that are read. They change with the form of sessions: versions 4 and 5 contain a session in format 2 and 3. */
const versions = [3, 4, 5];

/** The content of a token. */
interface Sealed {
  readonly version: number;
  /** In milliseconds since 1970. */
  readonly expires: number;
  readonly session: Session;
}

/**
 * Returns an object that seals paused sessions into tokens, and opens them. A token that was changed, forged or kept too long is rejected.
 *
 * Throws a `RangeError` for a key that is too short, for no keys, and for an option out of range, and a `TypeError` for an invalid key id.
 *
 * ```ts
 * import { agent, memory, tool } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { resumeTokens } from "@jizai/jizai/session/resume_token";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const drop = tool({
 *   name: "drop",
 *   description: "Drops a table",
 *   input: z.object({ table: z.string() }),
 *   ask: true,
 *   execute: ({ table }) => `Dropped ${table}`,
 * });
 * const model = scripted({ calls: [["drop", { table: "users" }]] }, "It is gone.");
 * const assistant = agent({ model, tools: [drop] });
 * const { seal, open } = resumeTokens({ keys: [{ id: "k1", secret: "at least 32 bytes of your own choice" }] });
 *
 * // One request ends with a question. The client receives the resume token, and the server keeps nothing.
 * const store = memory();
 * const { session, questions } = await assistant.run({ prompt: "Drop the users", session: "s1", store }).result;
 * const paused = await store.load(session);
 * const resumeToken = paused ? await seal(paused) : "";
 *
 * // Another request contains the resume token and an answer.
 * const next = memory();
 * await next.save({ ...await open(resumeToken, { session: "s1" }), version: 0 });
 * const answers = questions.map(({ callId }) => ({ callId, type: "approve" } as const));
 * const { text } = await assistant.resume({ session: "s1", answers, store: next }).result;
 * assertEquals(text, "It is gone.");
 * ```
 */
export function resumeTokens(options: ResumeTokenOptions): ResumeTokens {
  expectNames("Cannot create resumeTokens()", options, ["keys", "expiresIn", "maxBytes", "now"]);
  const { keys, expiresIn = 86_400_000, maxBytes = 262_144, now = Date.now } = options;
  const { encrypt, decrypt } = encryption("jizai.resumeToken", keys);
  if (!(expiresIn > 0 && expiresIn < Infinity)) {
    throw new RangeError(
      `Cannot create resumeTokens(): \`expiresIn\` is ${expiresIn}; expected a positive number of milliseconds`,
    );
  }
  if (!(maxBytes > 0)) {
    throw new RangeError(
      `Cannot create resumeTokens(): \`maxBytes\` is ${maxBytes}; expected a positive number of bytes`,
    );
  }

  async function seal(session: Session): Promise<string> {
    const named = `Cannot seal session "${session.id}"`;
    if (!isPaused(session)) throw new TypeError(`${named}: it is not paused`);
    const sealed: Sealed = { version: 2 + formatFor(session.run), expires: now() + expiresIn, session };
    const text = await encrypt(JSON.stringify(sealed));
    if (text.length <= maxBytes) return text;
    throw new ResumeTokenError(`${named}: the token has more than ${maxBytes} bytes`, "too-large");
  }

  async function open(text: string, { session: expected }: OpenOptions = {}): Promise<Session> {
    if (text.length > maxBytes) throw refused("too-large", `it has more than ${maxBytes} bytes`);
    const decrypted = await decrypt(text);
    if ("problem" in decrypted) throw refused(decrypted.problem, reasons[decrypted.problem]);
    const { version, expires, session }: Sealed = JSON.parse(decrypted.content); // authentic, so made by `seal()`
    if (!versions.includes(version)) {
      throw refused("version", `it has version ${version}; expected version ${versions.join(" or ")}`);
    }
    if (now() >= expires) throw refused("expired", "it has expired");
    if (expected !== undefined && session.id !== expected) throw refused("other-session", "it is of another session");
    return inCurrentForm(session);
  }

  return {
    seal,
    open,
    async hold(text, { store, ...options } = {}) {
      return await holdSession(text === undefined ? undefined : await open(text, options), seal, store);
    },
  };
}

const reasons = { forged: "it is not authentic", "unknown-key": "its key is unknown" } as const;

function refused(code: ResumeTokenProblem, why: string): ResumeTokenError {
  return new ResumeTokenError(`Cannot open the resume token: ${why}`, code);
}
