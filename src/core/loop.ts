/**
 * The loop: the only writer of a run's position, counters and transcript, and of its exit.
 *
 * @module
 */
import type { RunControl } from "./control.ts";
import type { Events } from "./events.ts";
import { End, Pause } from "./interrupt.ts";
import {
  type AnsweredQuestion,
  type Checkpoint,
  type Exit,
  exits,
  type Move,
  type Position,
  type Region,
  type RunSnapshot,
  type Step,
  type Steps,
} from "./position.ts";
import type { StepScope } from "./run.ts";
import type { SessionWriter } from "./session_writer.ts";
import type { Transcript } from "./transcript.ts";
import type { Message } from "../protocol/message.ts";
import { shareSchemas } from "../protocol/question.ts";

// The exit of a run: once set, only one of a higher rank replaces it.

/** The exit of a run, and the error that unwinds the run to it. */
export class ExitState {
  readonly #control: RunControl;
  #current: Exit | undefined;
  #interrupt: unknown;

  constructor(control: RunControl) {
    this.#control = control;
  }

  get current(): Exit | undefined {
    return this.#current;
  }
  /** The error that unwinds the run. */
  get interrupt(): unknown {
    return this.#interrupt;
  }
  /** True if the run pauses or ends before its prompt has an answer. */
  get isInterrupted(): boolean {
    return this.#current !== undefined && exits[this.#current.status].rank > exits.done.rank;
  }
  /** True if the run ends, and does not pause. */
  get isEnding(): boolean {
    return this.#current !== undefined && exits[this.#current.status].rank > exits.paused.rank;
  }

  /** Sets the exit, unless one of the same or a higher rank is set. `interrupt` unwinds the run. */
  offer(exit: Exit, interrupt: unknown): void {
    if (this.#current && exits[exit.status].rank <= exits[this.#current.status].rank) return;
    this.#current = exit;
    this.#interrupt = interrupt;
  }

  /** Sets the exit of an interrupt. Other errors set none: a hook may catch them. */
  offerInterrupt(error: unknown): void {
    if (error instanceof Pause) this.offer({ status: "paused", questions: error.questions }, error);
    if (!(error instanceof End)) return;
    const { as, reason, rollback, withhold } = error;
    const status = as === "done" ? "ended" : as === "limit" ? "limited" : as;
    this.offer({ status, reason, rollback, withhold, ...(as === "failed" && { error }) }, error);
  }

  /** Sets the exit of an aborted run. */
  settle(): void {
    const { stop, reason } = this.#control;
    if (stop) this.offer({ status: stop.exit, reason: stop.reason }, reason);
  }

  /** Throws if the run has an exit or was aborted. */
  check(): void {
    this.settle();
    if (this.#current) throw this.#interrupt;
  }
}

// The loop: calls the step for each position, and applies its move.

/** The services of the loop. */
interface LoopOptions {
  readonly snapshot: RunSnapshot;
  readonly transcript: Transcript;
  readonly exit: ExitState;
  readonly writer: SessionWriter;
  readonly events: Events;
}

/** The state of a run. Steps return moves, and the loop applies them. */
export class Loop {
  readonly transcript: Transcript;
  readonly #exit: ExitState;
  readonly #writer: SessionWriter;
  readonly #events: Events;
  /** The state that the run started from. */
  readonly #snapshotAtStart: RunSnapshot;
  #moved = false;
  #detached = false;
  #position: Position;
  #counters: RunSnapshot["counters"];
  #finish: RunSnapshot["finish"];
  #answers: readonly AnsweredQuestion[];
  #stop: (() => void) | undefined;

  constructor({ snapshot: start, transcript, exit, writer, events }: LoopOptions) {
    this.transcript = transcript;
    this.#exit = exit;
    this.#writer = writer;
    this.#events = events;
    this.#position = start.position;
    this.#counters = start.counters;
    this.#finish = start.finish;
    this.#answers = start.answers;
    this.#snapshotAtStart = start;
  }

  get position(): Position {
    return this.#position;
  }
  /** True once a move was applied. Until then, the run is where it was saved. */
  get moved(): boolean {
    return this.#moved;
  }
  /** True once the run waits for no step. */
  get detached(): boolean {
    return this.#detached;
  }
  get counters(): RunSnapshot["counters"] {
    return this.#counters;
  }
  /** The finish reason of the last response. */
  get finish(): RunSnapshot["finish"] {
    return this.#finish;
  }
  get answers(): readonly AnsweredQuestion[] {
    return this.#answers;
  }

  /** Returns the snapshot with the usage, the state and the number of events that the run started with. Only a paused run has an exit in it. */
  get snapshot(): RunSnapshot {
    const exit = this.#exit.current?.status === "paused" ? this.#exit.current : undefined;
    const position = this.#position;
    return {
      ...this.#snapshotAtStart,
      position: position.at === "tools" ? { ...position, calls: [...position.calls] } : position, // the step updates its calls
      counters: this.#counters,
      ...(this.#finish && { finish: this.#finish }),
      answers: this.#answers,
      before: this.transcript.before,
      ...(exit && { exit: shareSchemas(exit) }),
    };
  }

  /** Calls `stop` at each safe place, before the next work begins. */
  stopAtSafePlace(stop: () => void): void {
    this.#stop = stop;
  }

  /** Marks a place where the saved state of the run is complete. Throws if the run has an exit or was aborted. */
  safePlace(): void {
    this.#stop?.();
    this.#exit.check();
  }

  /** Runs steps until the position is not in `steps`, or the run is over. `first` is applied before. Throws as soon as the run is interrupted. */
  async advance(scope: StepScope, steps: Steps, first?: Move): Promise<Position> {
    if (first) await this.apply(first, scope);
    for (;;) {
      this.safePlace();
      const position = this.#position;
      const step = steps[position.at] as Step | Region | undefined; // the step of this very position
      if (!step) return position;
      try {
        const move = typeof step === "function"
          ? await step(scope, position, this.#checkpoint)
          : await step.enter(scope, position, (inner, first) => this.advance(inner, step.steps, first));
        const saved = this.apply(move, scope);
        if (saved) await saved;
      } catch (error) {
        this.#exit.offerInterrupt(error);
        throw error;
      }
      if (this.#exit.current) return this.#position;
    }
  }

  /** Applies a move, emits its events, and saves both. Returns no promise if there is nothing to wait for. */
  apply(
    { to, add, keep, replace, counters, finish, events, exit, error }: Move,
    scope: StepScope,
  ): Promise<void> | undefined {
    if (this.#detached) throw this.#exit.interrupt ?? new End("the run is over");
    this.#moved = true;
    if (keep !== undefined) this.transcript.keep(keep);
    if (replace) this.transcript.replace(replace);
    if (add) this.transcript.push(add);
    if (counters) this.#counters = { ...this.#counters, ...counters };
    if (finish) this.#finish = finish;
    if (to) this.#position = to;
    if (to?.at === "turnEnd") this.#answers = this.#answers.filter(({ answer }) => answer.callId === undefined);
    if (error) throw error.thrown;
    if (exit) return void this.#exit.offer(exit, undefined);
    this.#exit.check(); // an end is saved once, as a whole
    for (const event of events ?? []) {
      this.#events.emitThrough(event.type === "prompt.accepted" ? scope.outside : scope.emit, event);
    }
    const urgent = events !== undefined || replace !== undefined || to?.at === "model" || to?.at === "prompt";
    if (urgent) return this.#checkpoint(this.#position);
    if (to && to.at !== "tools") void this.#checkpoint(to, { urgent: false }); // never rejects; the tools step saves its own progress
    return undefined;
  }

  /** Replaces the transcript and saves it, in the middle of a step. */
  async replaceTranscript(messages: readonly Message[]): Promise<void> {
    if (this.#detached) return;
    this.transcript.replace(messages);
    await this.#checkpoint(this.#position);
  }

  /** Sets the answers before the first step. */
  receive(answers: readonly AnsweredQuestion[]): void {
    this.#answers = answers;
  }

  /** Appends messages at the end of the run, after the last move. */
  append(messages: readonly Message[]): void {
    this.transcript.push(messages);
  }

  /** Restores the transcript to the start of the run. */
  rollBack(): void {
    this.transcript.rollBack();
  }

  /** Ignores moves and checkpoints from now on: those of steps that the run has abandoned. Saves the run as it is now, if `save` is true. */
  detach({ save = false } = {}): Promise<void> | undefined {
    const saves = save && !this.#detached;
    this.#detached = true;
    return saves ? this.#orFail(this.#writer.saveFrozen()) : undefined;
  }

  /** Ends the work on the position. Nothing is saved before the end. */
  close(messages: readonly Message[]): void {
    this.append(messages);
    if (this.#position.at !== "tools") return;
    this.#position = { at: "turnEnd", turn: this.#position.turn, added: messages.length };
  }

  readonly #checkpoint: Checkpoint = (to, { counters, answers, save = true, urgent = true } = {}) => {
    if (this.#detached) return undefined;
    this.#position = to;
    if (counters) this.#counters = { ...this.#counters, ...counters };
    if (answers) this.#answers = answers;
    return save ? this.#orFail(this.#writer.checkpoint(to, urgent)) : undefined;
  };

  /** Fails the run if a save fails. */
  #orFail(saved: Promise<void> | undefined): Promise<void> | undefined {
    return saved?.catch((error) => this.#exit.offer({ status: "failed", reason: "store", error }, error));
  }
}
