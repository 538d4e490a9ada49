/**
 * One run on the screen of a person, who can steer and stop it.
 *
 * @module
 */
import { ClientError, post, send, type Server } from "../../client/connection.ts";
import type { ClientRun } from "../../client/client.ts";
import { messageOf, type Terminal, visible } from "../terminal/terminal.ts";
import { textOf } from "./event_text.ts";

/** A conversation with one server. */
export interface Conversation {
  readonly server: Server;
  readonly terminal: Terminal;
  /** Lines that were typed during a run and are not sent yet, in order. */
  readonly unsent: string[];
  /** Aborts when the person leaves. */
  readonly leaving: AbortController;
}

/** Writes the events of a run until it ends or pauses. Sends it the lines that are typed. Ctrl-C stops the run, once its id is known, and then leaves. */
export async function showRun(run: ClientRun, conversation: Conversation): Promise<void> {
  const { terminal, unsent, leaving } = conversation;
  let isInterrupted = false;
  let stopping: Promise<boolean> | undefined;
  let sending = Promise.resolve();
  function sendOrders(): void {
    if (run.state.run === undefined) return;
    if (isInterrupted) stopping ??= stopRun(run, conversation);
    for (const line of unsent.splice(0)) sending = sending.then(() => sendLine(run, line, conversation));
  }
  terminal.onInterrupt(() => {
    if (isInterrupted) leave(conversation);
    isInterrupted = true;
    sendOrders();
  });
  terminal.keyboard?.onLine((line) => {
    unsent.push(line);
    sendOrders();
  });
  try {
    for await (const event of run.events) {
      terminal.write(textOf(event));
      sendOrders();
    }
    await Promise.all([stopping, sending]); // neither rejects
  } finally {
    terminal.keyboard?.onLine((line) => void unsent.push(line));
    if (leaving.signal.aborted) terminal.write("\n[left]\n");
  }
}

function leave({ terminal, leaving }: Conversation): void {
  leaving.abort();
  terminal.close();
}

/** Stops a run. Returns whether it was stopped, and writes the reason if it was not. */
export async function stopRun(
  { state }: ClientRun,
  { server, terminal, leaving }: Conversation,
): Promise<boolean> {
  try {
    await send(server, post(`/runs/${state.run}/stop`, {}), leaving.signal);
    return true;
  } catch (error) {
    if (!leaving.signal.aborted) terminal.write(`\n[not stopped: ${visible(messageOf(error))}]\n`);
    return false;
  }
}

/** Sends a line to a run. A line that the run does not take, such as one that came too late, is kept for the next run. */
async function sendLine(
  { state }: ClientRun,
  line: string,
  { server, terminal, unsent, leaving }: Conversation,
): Promise<void> {
  try {
    await send(server, post(`/runs/${state.run}/messages`, { text: line }), leaving.signal);
  } catch (error) {
    const isOver = error instanceof ClientError && error.status === 404;
    if (!isOver && !leaving.signal.aborted) {
      terminal.write(`\n[not sent yet: ${visible(messageOf(error))}]\n`);
    }
    unsent.push(line);
  }
}
