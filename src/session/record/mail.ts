/**
 * Mail: what is said to a run that runs elsewhere. It is put in the run's session, where its own next save comes upon it.
 *
 * @module
 */
import { most } from "../../core/inbox.ts";
import type { Mail, RunRecord } from "../../protocol/session.ts";
import type { Asker, Host } from "./host.ts";

/** Puts a piece of mail in the session of a run, whatever the run saves meanwhile. Gives whether there was room; nothing where it does not run. */
export async function post(
  { run: id, session }: { readonly run: string; readonly session: string },
  piece: Mail,
  asker: Asker,
  host: Host,
): Promise<boolean | undefined> {
  for (;;) {
    const kept = await host.load(session, asker);
    const { run } = kept ?? {};
    if (!kept || run?.id !== id || run.status !== "running") return undefined;
    if (piece.type === "message" && waiting(run) >= most) return false;
    const mail = [...run.mail ?? [], piece];
    if (await host.save({ ...kept, run: { ...run, mail } }) !== undefined) return true;
  }
}

/** How many messages wait, as far as its record knows. */
function waiting({ inbox = [], mail = [] }: RunRecord): number {
  return inbox.length + mail.filter(({ type }) => type === "message").length;
}
