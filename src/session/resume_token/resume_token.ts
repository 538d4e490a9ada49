/**
 * Resume tokens: paused sessions in the hands of their clients, where there is no store.
 *
 * A resume token is a text that holds the whole session, signed: what was said, the run, what a person is asked, and the results that there are. It says
 * which version of this format it is of, and when it expires.
 *
 * - It is signed and not encrypted. Whoever holds it can read the session, with what tools answered and what middleware keep for the run: hand it to
 *   nobody but whom the session belongs to.
 * - It opens until it expires, however often: to open is not to use up. Where an answer must not count twice, keep the session in a store, whose
 *   version tells; or have tools do a thing once for each idempotency key.
 *
 * @module
 */
import type { Session } from "../../protocol/session.ts";
import { isPaused } from "../record/run_state.ts";
import { ResumeTokenError, type ResumeTokenProblem } from "./resume_token_error.ts";
import { type HeldSession, holdSession } from "./held_session.ts";
import { signatures, type SigningKey } from "./signature.ts";

/** What `resumeTokens()` takes. */
export interface ResumeTokenOptions {
  /** The first signs; all of them open. To change keys, put the new one first, and leave the old one out once what it signed has expired. */
  readonly keys: readonly SigningKey[];
  /** Milliseconds after which a resume token does not open any more. Default: 86,400,000, a day. */
  readonly expiresIn?: number;
  /** The most bytes of a resume token, which has a third more than its session has as JSON. Default: 262,144. */
  readonly maxBytes?: number;
  /** Tells the time, in milliseconds since 1970. Default: `Date.now`. */
  readonly now?: () => number;
}

/** What an opened resume token has to be of. */
export interface OpenOptions {
  /** The session. Default: any. */
  readonly session?: string;
}

/** Makes resume tokens and opens them. */
export interface ResumeTokens {
  /** Makes a resume token. Throws a `TypeError` for a session that is not paused, and a `ResumeTokenError` for one that is too large. */
  seal(session: Session): Promise<string>;
  /** Gives the session that was sealed, as it was. Throws a `ResumeTokenError` for anything else. */
  open(text: string, options?: OpenOptions): Promise<Session>;
  /**
   * Opens a resume token for one run that goes on with its session, or makes ready for a new session where there is none: what a server does. Throws as `open()`
   * does.
   */
  hold(text?: string, options?: OpenOptions): Promise<HeldSession>;
}

/** The version of what is in a resume token: another one wherever a session comes to look different. */
const version = 2;

/** What is in a resume token. That it is of this kind, its signature says together with its version. */
interface Sealed {
  readonly version: number;
  /** In milliseconds since 1970. */
  readonly expires: number;
  readonly session: Session;
}

/**
 * Seals paused sessions into texts that their clients keep, and opens what comes back: what somebody changed, made up, or kept too long does not open.
 *
 * Throws a `RangeError` for a key that is too short, for none, and for an option out of range, and a `TypeError` for an id that no resume token can name.
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
 * // One request ends with a question. Nothing is kept of it but the resume token, which the client gets.
 * const store = memory();
 * const { session, questions } = await assistant.run({ prompt: "Drop the users", session: "s1", store }).result;
 * const paused = await store.load(session);
 * const resumeToken = paused ? await seal(paused) : "";
 *
 * // Another request brings the resume token and an answer.
 * const next = memory();
 * await next.save({ ...await open(resumeToken, { session: "s1" }), version: 0 });
 * const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" } as const));
 * const { text } = await assistant.resume({ session: "s1", answers, store: next }).result;
 * assertEquals(text, "It is gone.");
 * ```
 */
export function resumeTokens(
  { keys, expiresIn = 86_400_000, maxBytes = 262_144, now = Date.now }: ResumeTokenOptions,
): ResumeTokens {
  const { sign, verify } = signatures("jizai.resumeToken", keys);
  if (!(expiresIn > 0 && expiresIn < Infinity)) {
    throw new RangeError(`Cannot make resume tokens that expire in ${expiresIn} ms`);
  }
  if (!(maxBytes > 0)) throw new RangeError(`Cannot make resume tokens of at most ${maxBytes} bytes`);

  async function seal(session: Session): Promise<string> {
    const named = `Cannot seal session "${session.id}"`;
    if (!isPaused(session)) throw new TypeError(`${named}: it is not paused`);
    const sealed: Sealed = { version, expires: now() + expiresIn, session };
    const text = await sign(JSON.stringify(sealed));
    if (text.length <= maxBytes) return text;
    throw new ResumeTokenError(`${named}: that takes more than ${maxBytes} bytes`, "too-large");
  }

  async function open(text: string, { session: expected }: OpenOptions = {}): Promise<Session> {
    if (text.length > maxBytes) throw refused("too-large", `it has more than ${maxBytes} bytes`);
    const verified = await verify(text);
    if ("problem" in verified) throw refused(verified.problem, reasons[verified.problem]);
    const { version: made, expires, session }: Sealed = JSON.parse(verified.content); // signed, so made by `seal()`
    if (made !== version) throw refused("version", `it is of version ${made}, and not of version ${version}`);
    if (now() >= expires) throw refused("expired", "it has expired");
    if (expected !== undefined && session.id !== expected) throw refused("other-session", "it is of another session");
    return session;
  }

  return {
    seal,
    open,
    hold: async (text, options) => holdSession(text === undefined ? undefined : await open(text, options), seal),
  };
}

const reasons = { forged: "it is not what was sealed", "unknown-key": "it names a key that is not known" } as const;

function refused(code: ResumeTokenProblem, why: string): ResumeTokenError {
  return new ResumeTokenError(`Cannot open the resume token: ${why}`, code);
}
