/**
 * Claims of sessions in journals, as a server makes them.
 *
 * @module
 */
import type { MailEntry } from "../../src/core/journal.ts";
import {
  claimOpened,
  type JournalClaim,
  type JournalWriter,
  type JournalWriterOptions,
} from "../../src/core/journal_writer.ts";
import { type OpenedSession, openSession } from "../../src/core/session_version.ts";
import { withRetries } from "../../src/core/store.ts";

/** Decides about a claim. `run` is the number of a new run. It throws if the session cannot be claimed. */
type Decide = (opened: OpenedSession | undefined, run: number) => JournalClaim | Promise<JournalClaim>;

/** Opens and claims a session, and decides again if another process was faster. `onMail` receives what a run that continues has not taken. */
export async function claimSession(options: JournalWriterOptions, decide: Decide): Promise<JournalWriter> {
  const { journal, key } = options;
  for (;;) {
    const early: MailEntry[] = [];
    let receive = (entry: MailEntry): unknown => early.push(entry);
    const opened = await withRetries(() => openSession(journal, key));
    const claim = await decide(opened, (opened?.head.run ?? 0) + 1);
    if (!claim.begins) early.push(...opened?.mail ?? []);
    const writer = await claimOpened({ ...options, onMail: (entry) => void receive(entry) }, opened, claim);
    if (!writer) continue;
    receive = (entry) => options.onMail?.(entry);
    early.forEach(receive);
    return writer;
  }
}
