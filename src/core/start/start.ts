/**
 * The start of a run, and its handle.
 *
 * @module
 */
import { user, type UserMessage } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import { Steering } from "../features/steering.ts";
import { SessionError } from "../persistence/session_error.ts";
import { expectMessages } from "../lib/repair.ts";
import { RunControl } from "../run/control.ts";
import type { NumberedEvent } from "../run/events.ts";
import { limited } from "../run/limits.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import { live } from "./life.ts";
import { open } from "./open.ts";
import { type Beginning, nullSink, type Opened, type Started, type StartOptions } from "./options.ts";
import { reviewMessage } from "./review.ts";

/** Starts a run, or continues one that has paused or whose process died. */
export function start(
  definition: AgentDefinition<StepScope>,
  options: StartOptions,
  sink: Sink<NumberedEvent>,
): Started {
  const { signal, session = crypto.randomUUID() } = options;
  const limits = limited(definition.limits, options.limits);
  const control = new RunControl();
  const steering = new Steering();
  const onAbort = () => control.abort("signal");
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const closeOther = (closing: string) => {
    const { messages: _, run: __, ...rest } = options;
    return start(definition, { ...rest, answers: [], closing }, nullSink).result;
  };
  const beginning: Beginning = { definition, options, limits, session, sink, control, arrivals: steering, early: [] };
  control.setDeadline(limits.time);
  const ready = open(beginning, closeOther);
  const opened = ready.then(({ id: run, claimed: { start } }): Opened => ({ run, after: start.events }));
  opened.catch(() => {}); // the result reports it too
  const result = live(beginning, ready, opened).finally(() => signal?.removeEventListener("abort", onAbort));

  let reviewed: Promise<unknown> = Promise.resolve();
  /** Runs the `input` hooks for one message after another, so that messages stay in order. */
  function review(engine: EngineRun, message: UserMessage): Promise<readonly UserMessage[]> {
    const next = reviewed.then(() => reviewMessage(engine, engine.scope(), "steering", message));
    reviewed = next.catch(() => {}); // the caller of send() receives the failure
    return next;
  }

  /** Throws if the run is over. */
  function expectOpen(failure: string): void {
    if (steering.closed) throw new SessionError(`${failure}: it is over`, "unknown");
  }

  /** Saves the requests that wait for the run, if a store outlives the process. Throws if the run ends, which may be without them. */
  async function saveNow({ writer }: EngineRun, failure: string): Promise<void> {
    const saved = writer.saveNow?.();
    if (!saved) return;
    await saved;
    if (control.aborted) throw new SessionError(`${failure}: it is ending`, "busy");
  }

  /** Requests the last answer at once, also before the run has its session, and waits until the request is saved. */
  async function finish(): Promise<void> {
    if (!steering.closed) steering.finish();
    const run = await ready;
    const failure = `Cannot finish run "${run.id}"`;
    expectOpen(failure);
    await saveNow(run, failure);
  }

  return {
    session,
    opened,
    result,
    stop: (reason = "stop", stopOptions) => control.abort(reason, stopOptions),
    drain: (reason) => steering.drain(reason),
    finish() {
      const accepted = finish();
      accepted.catch(() => {}); // callers need not wait
      return accepted;
    },
    handOver(grace) {
      const hand = ({ writer }: EngineRun) => writer.handOver ? writer.handOver(grace) : control.abort("shutdown");
      ready.then(hand, () => {}); // a run that cannot open ends by itself
    },
    async send(message, sendOptions) {
      const run = await ready; // messages that waited before come first
      const failure = `Cannot send a message to run "${run.id}"`;
      expectOpen(failure);
      const given = typeof message === "string" ? user(message) : message;
      expectMessages(failure, [given], ["user"]);
      const accepted = definition.reviewsInput ? await review(run, given) : [given];
      expectOpen(failure);
      steering.add(accepted, sendOptions);
      await saveNow(run, failure);
    },
  };
}
