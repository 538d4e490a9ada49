/**
 * The start of a run, and its handle.
 *
 * @module
 */
import { user, type UserMessage } from "../../protocol/message.ts";
import { expectNames } from "../../protocol/shape.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import { type SendOptions, Steering } from "../features/steering.ts";
import type { RunResult } from "../hooks/points/run.ts";
import { SessionError } from "../persistence/session_error.ts";
import { expectChoice } from "../lib/expect_option.ts";
import { expectMessages } from "../lib/repair.ts";
import { RunControl, type StopOptions } from "../run/control.ts";
import type { NumberedEvent } from "../run/events.ts";
import { limited } from "../run/limits.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import { live } from "./life.ts";
import { open } from "./open.ts";
import { type Beginning, nullSink, type Opened, type Started, type StartOptions } from "./options.ts";
import { orRefuse, reviewMessage } from "./review.ts";

/** Starts a run, or continues one that has paused or whose process died. */
export function start(
  definition: AgentDefinition<StepScope>,
  options: StartOptions,
  sink: Sink<NumberedEvent>,
): Started {
  const { signal, session = crypto.randomUUID() } = options;
  const limits = options.limits ? limited(definition.limits, options.limits) : definition.limits;
  const control = new RunControl();
  if (signal) control.follow(signal);
  control.setDeadline(limits.time);
  const closeOther = (closing: string) => {
    const { messages: _, run: __, ...rest } = options;
    return start(definition, { ...rest, answers: [], closing }, nullSink).result;
  };
  const early = [...options.early ?? []];
  const beginning = { definition, options, limits, session, sink, control, arrivals: new Steering(), early };
  return new StartedRun(beginning, open(beginning, closeOther));
}

/** A run that has started. A class, because a server keeps one for each stream, and a closure for each operation would take eight times the memory. */
class StartedRun implements Started {
  readonly session: string;
  readonly opened: Promise<Opened>;
  readonly result: Promise<RunResult>;
  readonly #run: Promise<EngineRun>;
  readonly #control: RunControl;
  readonly #steering: Steering;
  /** Settles when the `input` hooks have returned for the messages so far. Never rejects. */
  #reviewed: Promise<unknown> | undefined;

  constructor(beginning: Beginning & { readonly arrivals: Steering }, run: Promise<EngineRun>) {
    this.session = beginning.session;
    this.opened = run.then(({ id, claimed: { start } }): Opened => ({ run: id, after: start.events }));
    this.opened.catch(() => {}); // the result reports it too
    this.result = live(beginning, run, this.opened);
    this.#run = run;
    this.#control = beginning.control;
    this.#steering = beginning.arrivals;
  }

  stop(reason = "stop", options: StopOptions = {}): void {
    expectNames("Cannot stop the run", options, ["rollback", "leave", "undo", "handOver"]);
    this.#control.abort(reason, options);
  }

  drain(reason: string): void {
    this.#steering.drain(reason);
  }

  finish(): Promise<void> {
    const accepted = this.#finish();
    accepted.catch(() => {}); // callers need not wait
    return accepted;
  }

  /** Requests the last answer at once, also before the run has its session, and waits until the request is saved. */
  async #finish(): Promise<void> {
    if (!this.#steering.closed) this.#steering.finish();
    const run = await this.#run;
    const failure = `Cannot finish run "${run.id}"`;
    this.#expectOpen(failure);
    await this.#saveNow(run, failure);
  }

  handOver(grace: number): void {
    const hand = ({ writer, control }: EngineRun) =>
      writer.handOver ? writer.handOver(grace) : control.abort("shutdown");
    this.#run.then(hand, () => {}); // a run that cannot open ends by itself
  }

  async send(message: string | UserMessage, options: SendOptions = {}): Promise<void> {
    const run = await this.#run; // messages that waited before come first
    const failure = `Cannot send a message to run "${run.id}"`;
    expectNames(failure, options, ["after"]);
    expectChoice(failure, "after", options.after ?? "batch", ["batch", "calls"]);
    this.#expectOpen(failure);
    const given = typeof message === "string" ? user(message) : message;
    expectMessages(failure, [given], ["user"]);
    const accepted = run.definition.reviewsInput ? await this.#review(run, given, failure) : [given];
    this.#expectOpen(failure);
    this.#steering.add(accepted, options);
    await this.#saveNow(run, failure);
  }

  /** Runs the `input` hooks for one message after another, so that messages stay in order. */
  #review(run: EngineRun, message: UserMessage, failure: string): Promise<readonly UserMessage[]> {
    const next = Promise.resolve(this.#reviewed).then(() =>
      orRefuse(failure, reviewMessage(run, run.scope(), "steering", message))
    );
    this.#reviewed = next.catch(() => {}); // the caller of send() receives the failure
    return next;
  }

  /** Throws if the run is over. */
  #expectOpen(failure: string): void {
    if (this.#steering.closed) throw new SessionError(`${failure}: it is over`, "unknown");
  }

  /** Saves the requests that wait for the run, if a store outlives the process. Throws if the run ends, which may be without them. */
  async #saveNow({ writer, control }: EngineRun, failure: string): Promise<void> {
    const saved = writer.saveNow?.();
    if (!saved) return;
    await saved;
    if (control.aborted) throw new SessionError(`${failure}: it is ending`, "busy");
  }
}
