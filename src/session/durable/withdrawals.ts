/**
 * Withdrawals: claims of sessions that have failed for their client, and are stored all the same, are undone. So after a refusal nothing has begun, the session is
 * free, and the request can be repeated.
 *
 * @module
 */
import { type Append, type Journal, type JournalHead, reportKey, runIdOf, withdrawn } from "../../core/journal.ts";
import type { FailedClaim } from "../../core/journal_writer.ts";
import { questionsOf, type Unsaved } from "../../core/session.ts";
import type { OpenedSession } from "../../core/session_version.ts";
import { type ClaimWithdrawals, FinalError, StoreDeadlineError } from "../../core/store.ts";
import type { Event } from "../../protocol/event.ts";
import { noUsage } from "../../protocol/message.ts";
import { lineOf } from "../../stream/sse.ts";

/** The most claims that wait. Without room, the runs of the earliest ones count as lost once their leases end. */
const mostWaiting = 1_000;

/** Milliseconds between two retries after one that has failed. */
const retryEvery = 1_000;

/** A claim that may have to be undone. */
interface Withdrawal {
  readonly claim: FailedClaim;
  /** True while the call of the claim has not ended: it may be stored later. */
  isPending: boolean;
  /** True once the store has told whether the claim is stored. */
  isKnown: boolean;
  /** The deletion of a new session. A second one would meet the session of a request that came between. */
  deletion: Promise<void> | undefined;
  readonly over: PromiseWithResolvers<void>;
}

/**
 * Undoes the failed claims of a server. Each is tried at once, when its call ends, when the store works again, and when its journal is read: no request of this
 * server finds it.
 */
export class Withdrawals implements ClaimWithdrawals {
  readonly #journal: Pick<Journal, "append" | "delete">;
  /** The claims that wait, by the key of their journal. */
  readonly #waiting = new Map<string, Set<Withdrawal>>();
  #size = 0;
  #isRetrying = false;
  /** The time of the last retry that has failed. */
  #failedAt = -Infinity;

  /** Undoes claims in a journal, whose calls end within a deadline. */
  constructor(journal: Pick<Journal, "append" | "delete">) {
    this.#journal = journal;
  }

  add(claim: FailedClaim): void {
    const { key, error } = claim;
    if (error instanceof FinalError) return; // the store has refused it
    const withdrawal: Withdrawal = {
      claim,
      isPending: error instanceof StoreDeadlineError,
      isKnown: false,
      deletion: undefined,
      over: Promise.withResolvers(),
    };
    const [[, oldest] = []] = this.#size < mostWaiting ? [] : this.#waiting;
    for (const each of oldest ?? []) this.#remove(each);
    this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(withdrawal));
    this.#size++;
    const attempt = () => void this.#undo(withdrawal).catch(() => {}); // `retry()` tries again
    attempt();
    if (!(error instanceof StoreDeadlineError)) return;
    const end = () => {
      withdrawal.isPending = withdrawal.isKnown = false;
      attempt();
    };
    error.late.then(end, end);
  }

  undone(key: string): Promise<void> | undefined {
    const waiting = this.#waiting.get(key);
    return waiting && Promise.all(Array.from(waiting, ({ over }) => over.promise)).then(() => {});
  }

  /** Returns what `read` reads of a journal, without a claim that has failed: that is undone before. Rejects if the store fails. */
  async read<H extends JournalHead>(key: string, read: () => Promise<H | undefined>): Promise<H | undefined> {
    const head = await read();
    for (const each of this.#waiting.get(key) ?? []) {
      if (!head?.mark.holder.startsWith(each.claim.append.to.holder)) continue; // also one that is undone, and not deleted yet
      await this.#undo(each);
      return await read();
    }
    return head;
  }

  /** Tries again, since a call of the store has succeeded, until one fails. Never rejects. */
  async retry(): Promise<void> {
    if (this.#size === 0 || this.#isRetrying || Date.now() < this.#failedAt + retryEvery) return;
    this.#isRetrying = true;
    const unknown = [...this.#waiting.values()].flatMap((waiting) => [...waiting]).filter(({ isKnown }) => !isKnown);
    for (const each of unknown) {
      const hasFailed = await this.#undo(each).then(() => false, () => true); // the observer of the store knows the failure
      if (!hasFailed) continue;
      this.#failedAt = Date.now();
      break;
    }
    this.#isRetrying = false;
  }

  /** Undoes a claim. It waits longer if it is not stored and its call has not ended. Rejects if the store fails. */
  async #undo(withdrawal: Withdrawal): Promise<void> {
    const { isPending, claim, claim: { key, opened, append: { change }, next, decision: { begins } } } = withdrawal;
    if (!this.#waiting.get(key)?.has(withdrawal)) return;
    if (await this.#appendUndo(claim)) {
      const { run = 0 } = change ?? {};
      const report = begins ? [reportKey({ run: runIdOf({ key, run }), owner: next.head.owner })] : []; // no end is owed
      const gone = [...opened ? [] : [key], ...report];
      if (gone.length > 0) {
        withdrawal.deletion ??= this.#journal.delete(...gone).finally(() => withdrawal.deletion = undefined);
      }
      await withdrawal.deletion;
      this.#remove(withdrawal);
    } else if (!isPending) this.#remove(withdrawal);
    withdrawal.isKnown = true;
  }

  #remove(withdrawal: Withdrawal): void {
    const { key } = withdrawal.claim;
    const waiting = this.#waiting.get(key);
    if (!waiting?.delete(withdrawal)) return;
    this.#size--;
    if (waiting.size === 0) this.#waiting.delete(key);
    withdrawal.over.resolve();
  }

  /** Makes the session what it was before a claim. Resolves to false if the claim is not stored, or if another process has the session since. */
  async #appendUndo(claim: FailedClaim): Promise<boolean> {
    for (let { last } = claim.next.version;;) {
      const outcome = await this.#journal.append(claim.key, undoOf(claim, last));
      if (!outcome || outcome.stored) return outcome !== undefined;
      last = outcome.last; // mail has arrived
    }
  }
}

/**
 * Returns the append that undoes a claim in a journal whose last entry is `last`. The session is as it was before: a run that had paused has paused again, and one
 * that was lost is due. A new session keeps its lease until it is deleted, so that no process takes it meanwhile. The mark is the same each time, so that the
 * append can be repeated, and has the number of the version before, by which resume tokens are known.
 */
function undoOf(claim: FailedClaim, last: number): Append {
  const { opened, append: { to: from }, next: { head, version } } = claim;
  const holder = `${from.holder}-undone`;
  if (!opened) return { from, to: { holder, n: from.n + 1 }, due: head.due };
  const { run, events: after } = head;
  const { session, waiting, readUntil = 0, line } = before(claim, opened);
  const more = [{ type: "ended", run, as: withdrawn, at: Date.now() }] as const;
  const { change } = version.followedBy({ mark: from, last }).next(session, { holder, run, waiting, readUntil, more });
  const isRecorded = claim.append.events !== undefined && claim.append.events.lines.length > 0;
  return {
    from,
    to: { holder, n: opened.head.mark.n },
    change,
    due: change.state === "running" ? 0 : null,
    ...(isRecorded && line && { events: { first: after + 1, lines: [lineOf(line)] } }),
  };
}

/** The state of a session before a claim. */
interface StateBefore {
  readonly session: Unsaved;
  readonly waiting: number;
  readonly readUntil: number | undefined;
  /** The last event of the run, after the first ones of the claim. */
  readonly line?: Event;
}

/** Returns the state of a session before a claim. A new prompt has ended the pause of the run before it, as it would again. */
function before(
  { next, decision: { begins, session: claimed } }: FailedClaim,
  { head, session }: OpenedSession,
): StateBefore {
  if (begins) {
    const { run: _, lease: __, ...idle } = claimed;
    const line = { type: "run.aborted", reason: "unavailable", text: "", usage: noUsage } as const;
    return {
      session: { ...idle, ...(session.last && { last: session.last }) },
      waiting: 0,
      readUntil: next.session.readUntil,
      line,
    };
  }
  const { run, readUntil } = session;
  const line = run?.exit && { type: "run.paused", questions: questionsOf(session), usage: run.usage } as const;
  return { session, waiting: head.waiting, readUntil, ...(line && { line }) };
}
