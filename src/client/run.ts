/**
 * A run as its client has it: heard to its end, over as many connections as that takes.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import { ask, type Asking, ClientError, listen, post, type Server } from "./connection.ts";
import { fold } from "./fold.ts";
import type { RunState } from "./state.ts";

/** A run on a server. */
export interface ClientRun {
  /** What it has come to, with the event that was read last. */
  readonly state: RunState;
  /**
   * What happens in it, until it ends or pauses: each event once. The run begins when the first is asked for. Whoever leaves the loop leaves the run,
   * which does not stop it. Throws a `ClientError` where it is refused or given up, and the reason of its signal.
   */
  readonly events: AsyncIterable<Event>;
  /** Reads the events to their end, and gives what the run has come to; where the loop was left, what it had come to then. */
  result(): Promise<RunState>;
  /** Stops it; its events say when it has stopped. Rejects with a `ClientError` where it does not run, or not yet. */
  stop(): Promise<void>;
  /** Answers what it asks while it is paused: gives the rest of it, as a run of its own. */
  answer(answers: readonly PersonAnswer[]): ClientRun;
}

/** Hears what `opening` begins, or the rest of the run that `state` is of. */
export function hear(server: Server, state: RunState, signal?: AbortSignal, opening?: Asking): ClientRun {
  const { at } = state;

  async function* conduct(): AsyncGenerator<Event> {
    const { attempts = 8 } = server;
    let due = opening;
    let cause: unknown;
    for (let tries = 0;; tries++) {
      signal?.throwIfAborted();
      if (tries >= attempts) throw new ClientError(`Gave up after ${attempts} tries`, 0, "lost", { cause });
      if (tries > 0) await pause(Math.min(15_000, 125 * 2 ** tries) * (1 + Math.random()), signal);
      const asking: Asking = (state.run ? due : opening) ?? [`/runs/${state.run}`, { "last-event-id": `${state.at}` }];
      due = undefined;
      try {
        for await (const frame of listen(server, asking, signal)) {
          const before = state;
          state = fold(state, frame);
          if (state === before) continue;
          tries = 0;
          yield frame.event;
        }
      } catch (error) {
        const status = error instanceof ClientError ? error.status : 0;
        if (!isPassing(status, tries)) throw error;
        cause = error;
        if (status === 204) due = opening; // it had not arrived
        else if (state.status === "paused") continue; // it may have gone on since
      }
      if (isOver(state) && (!opening || state.at > at)) return;
    }
  }

  const events = conduct();
  return {
    get state() {
      return state;
    },
    events,
    async result() {
      for await (const _ of events); // it is all in the state
      return state;
    },
    async stop() {
      await ask(server, post(`/runs/${state.run}/stop`, {}));
    },
    answer(answers) {
      const path = `/sessions/${encodeURIComponent(state.session ?? "")}/answers`;
      return hear(
        server,
        state,
        signal,
        post(path, { answers, run: state.run, at: state.at, resumeToken: state.resumeToken }),
      );
    },
  };
}

/** Waits, unless there is nothing to wait for any more. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    }
  });
}

/** Whether another try may end otherwise. One that comes again may be in its own way: it had arrived, and nobody heard of that. */
function isPassing(status: number, tries: number): boolean {
  return status < 300 || status >= 500 || status === 429 || (status === 409 && tries > 0);
}

/** Whether it has ended, or waits. */
function isOver({ status }: RunState): boolean {
  return status !== "starting" && status !== "running";
}
