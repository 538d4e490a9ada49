/**
 * Messages to a run that another process executes. They are saved in the run's session, where the run's own next save finds them.
 *
 * @module
 */
import { maxWaiting } from "../../core/steering.ts";
import { reviewForRemoteRun, reviewsInput } from "../../core/start.ts";
import type { Mail, SessionHead } from "../../core/session.ts";
import type { Requester, RunHost } from "./run_host.ts";
import { addMail, isRunning, waitingMessages } from "./run_state.ts";

/** Runs the `input` hooks for a message. Returns nothing if the run is over. */
async function reviewedFor(
  run: string,
  id: string,
  message: Mail,
  requester: Requester,
  { load, agent, onError }: RunHost,
): Promise<Mail | undefined> {
  if (message.type !== "message" || !reviewsInput(agent)) return message;
  const session = await load(id, requester);
  if (!session || !isRunning(session, run)) return undefined;
  return await reviewForRemoteRun(agent, { session, mail: message, vars: requester.vars, onError });
}

/** Saves a message for a run, whatever the run saves meanwhile. The `input` hooks review it before. Returns whether there was room for it; nothing if the run is over. */
export async function sendToRemoteRun(
  { run, session: id }: { readonly run: string; readonly session: string },
  given: Mail,
  requester: Requester,
  host: RunHost,
): Promise<boolean | undefined> {
  let message = given;
  for (let reviewed = given.type !== "message";;) {
    if (!reviewed) {
      const review = await reviewedFor(run, id, message, requester, host);
      if (!review) return undefined;
      message = review;
      reviewed = true;
    }
    let isFull = false;
    const add = (head: SessionHead) => {
      if (!isRunning(head, run)) return undefined;
      isFull = message.type === "message" && waitingMessages(head) >= maxWaiting;
      return isFull ? undefined : addMail(head, message);
    };
    const isSaved = await host.changeHead(id, requester, add);
    if (isFull) return false;
    if (isSaved !== false) return isSaved;
  }
}
