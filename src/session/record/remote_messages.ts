/**
 * Messages to a run that another process executes. They are saved in the run's session, where the run's own next save finds them.
 *
 * @module
 */
import { maxWaiting } from "../../core/features/steering.ts";
import { reviewForRemoteRun } from "../../core/start/remote_review.ts";
import type { Mail } from "../../core/persistence/session.ts";
import type { Requester, RunHost } from "./run_host.ts";
import { addMail, isRunning, waitingMessages } from "./run_state.ts";

/** Saves a message for a run, whatever the run saves meanwhile. The `input` hooks review it before. Returns whether there was room for it; nothing if the run is over. */
export async function sendToRemoteRun(
  { run, session: id }: { readonly run: string; readonly session: string },
  given: Mail,
  requester: Requester,
  host: RunHost,
): Promise<boolean | undefined> {
  const { agent, onError } = host;
  let message = given;
  for (let reviewed = false;;) {
    const session = await host.load(id, requester);
    if (session && isRunning(session, run) && message.type === "message" && !reviewed) {
      const { vars } = requester;
      message = await reviewForRemoteRun(agent, { session, mail: message, vars, onError });
      reviewed = true;
    }
    const changed = session && isRunning(session, run) ? addMail(session, message) : undefined;
    if (!changed) return undefined;
    if (message.type === "message" && waitingMessages(session) >= maxWaiting) return false;
    if (await host.save(changed, requester) !== undefined) return true;
  }
}
