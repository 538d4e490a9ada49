/**
 * The format of stored sessions: in which one a session is stored, how one of an earlier version of the package is read, and which ones are refused.
 *
 * @module
 */
import type { Session, SessionHead } from "./session.ts";

/** A head as it is stored. Its lease has no time: a journal tells when it is due. */
export type FormattedHead = Omit<SessionHead, "version" | "mail" | "lease"> & {
  readonly format?: number;
  readonly lease?: Omit<NonNullable<Session["lease"]>, "until">;
};

/** The newest format of heads and entries that this version of the package reads. */
const newestFormat = 3;

/** The positions that this version of the package continues. */
const positions: readonly unknown[] = [
  "incoming",
  "prompt",
  "model",
  "tools",
  "turnEnd",
  "stop",
  "promptEnd",
  "compact",
];

/** The names of two positions in format 1, and those that they have now. */
const renamed: ReadonlyMap<unknown, string> = /* @__PURE__ */ new Map([["arrived", "incoming"], ["input", "prompt"]]);

/** Returns a head whose position has the name of today, without events that an earlier version has not sent: they are those of a process that has died. */
export function inCurrentForm<H>(head: H): H {
  const { run: found } = Object(head);
  if (!found) return head;
  const { unsent: _, ...run } = found;
  const at = renamed.get(run.position?.at);
  return { ...head, run: at === undefined ? run : { ...run, position: { ...run.position, at } } };
}

/**
 * Returns the format of a head with this run, or of its paused children. It is 3 if a call has journaled steps, which earlier versions of the package would repeat,
 * and 2 at a position that has another name in format 1. Those versions leave such a session alone. All other runs are written in format 1, so that they can
 * continue them.
 */
export function formatFor(run: unknown): number {
  const { at, calls } = Object(Object(run).position);
  if (at === "incoming" || at === "prompt") return 2;
  if (!Array.isArray(calls)) return 1;
  return Math.max(1, ...calls.map((call) => Object(call).steps ? 3 : formatFor(Object(Object(call).saved).run)));
}

/** Throws a `TypeError` for a head of a newer version, of which nothing else is read. */
export function checkFormat(head: string): void {
  const written = Number(/^\{"format":(\d+)/.exec(head)?.[1] ?? 0);
  if (written <= newestFormat) return;
  throw new TypeError(
    `a newer version of the package has written it, in format ${written}; expected ${newestFormat} or lower`,
  );
}

/** Throws a `TypeError` for a head with a field of another type, or with a position of a newer version. */
export function checkHead(head: unknown): asserts head is FormattedHead {
  const { run, lease, state = [], rules = [], readUntil = 0, report } = Object(head);
  const lists = [state, rules];
  if (run !== undefined) {
    const { id, position, counters, usage, answers, state, before, events } = Object(run);
    if (!positions.includes(position?.at)) {
      throw new TypeError(`its run is at position "${position?.at}", which is unknown`);
    }
    lists.push(answers, state);
    if (position.at === "tools") lists.push(position.calls, position.message?.parts);
    const isWhole = typeof id === "string" && typeof counters === "object" && typeof usage === "object" &&
      Number.isInteger(before) && Number.isInteger(events);
    if (!isWhole) throw new TypeError("a field of its run has another type");
  }
  const isLease = lease === undefined || Object(lease) === lease;
  const isReport = report === undefined || (typeof report?.run === "string" && typeof report.session === "string");
  const isWhole = Object(head) === head && !Array.isArray(head) && Number.isInteger(readUntil);
  if (!isWhole || !isLease || !isReport || !lists.every(Array.isArray)) {
    throw new TypeError("one of its fields has another type");
  }
}
