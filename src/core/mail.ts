/**
 * Mail: what others have put in the session of a run for it, while the run says something else there.
 *
 * @module
 */
import type { UserMessage } from "../protocol/message.ts";
import type { Mail, RunRecord, Session } from "../protocol/session.ts";

/** What a save says. */
export type Said = Pick<Session, "messages" | "earlier" | "run" | "last">;

/** What a save says once there is mail. Of a run that has ended, whoever comes next reads it. */
export function having({ run, ...said }: Said, mail: readonly Mail[]): Said {
  return run ? { ...said, run: waiting(run, mail) } : { ...said, messages: [...said.messages, ...messagesOf(mail)] };
}

/** The same, once mail waits too. */
export function waiting<T extends Pick<RunRecord, "inbox" | "finishing">>(record: T, mail: readonly Mail[]): T {
  const finishing = mail.some(({ type }) => type === "finish") || record.finishing;
  return { ...record, inbox: [...record.inbox ?? [], ...messagesOf(mail)], ...(finishing && { finishing }) };
}

function messagesOf(mail: readonly Mail[]): UserMessage[] {
  return mail.flatMap((piece) => piece.type === "message" ? [piece.message] : []);
}
