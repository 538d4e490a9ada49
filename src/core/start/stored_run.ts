/**
 * A run as its session's writer sees it.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import type { Steering } from "../features/steering.ts";
import type { RunResult } from "../hooks/points/run.ts";
import { reasonOf } from "../lib/cancellation.ts";
import type { Claimed } from "../persistence/claim_options.ts";
import type { Mail, Session } from "../persistence/session.ts";
import type { WriterRun } from "../persistence/store.ts";
import type { RunControl } from "../run/control.ts";
import type { NumberedEvent } from "../run/events.ts";
import type { Exit } from "../run/position.ts";
import type { EngineRun, StepScope } from "../run/run.ts";

/** A session with the run as it is now. The store adds the version. */
type CurrentSession = Omit<Session, "version">;

/** The parts of a run that exist before it has its session. */
interface StoredRunOptions {
  readonly definition: Pick<AgentDefinition<StepScope>, "savers">;
  readonly control: RunControl;
  readonly steering: Steering;
  readonly sink: Sink<NumberedEvent>;
  readonly claimed: Claimed;
  /** Returns the run once it exists: its writer exists before it. */
  readonly engine: () => EngineRun;
}

/** The state that the writer of a run reads, and what it tells the run. */
export class StoredRun implements WriterRun {
  readonly #options: StoredRunOptions;
  #pause: Exit | undefined;
  #frozen: CurrentSession | undefined;
  /** Resolves when the run was released for another process, and never rejects. Undefined if it is not handed over. */
  released: Promise<void> | undefined;

  constructor(options: StoredRunOptions) {
    this.#options = options;
  }

  read(): CurrentSession {
    return this.#frozen ?? this.restored ?? this.current();
  }

  /** Returns the session with the run as it is now, also once it is frozen. */
  current(): CurrentSession {
    const { definition, engine, claimed } = this.#options;
    return savedForm(definition, sessionOf(engine(), claimed.owner, this.#pause));
  }

  /** Copies the session, which every later save stores: hooks that unwind may change its state. */
  freeze(): CurrentSession {
    return this.#frozen ??= markShown(
      JSON.parse(JSON.stringify(this.current())),
      this.#options.engine().work.partial !== undefined,
    );
  }

  /** Saves the run as paused as it was before. */
  keepPause(): void {
    this.#pause = this.#options.claimed.exit;
  }

  /** The session as it was before a start that is undone, if a run had it. A run that was to be closed is not restored. */
  get restored(): CurrentSession | undefined {
    const { control, claimed: { before, closing } } = this.#options;
    if (!control.stop.undo || !before || closing !== undefined) return undefined;
    const { version: _, lease, ...session } = before;
    return { ...session, ...(lease?.released && { lease }) }; // it was not lost before
  }

  get leave(): boolean {
    return this.#options.control.stop.leave;
  }
  get closing(): string | undefined {
    const { control, claimed, engine } = this.#options;
    const stops = control.aborted && !control.stop.handOver && !this.restored;
    const isStopping = stops && engine().exit.current?.status !== "failed";
    return isStopping ? reasonOf(control.reason) : claimed.closing;
  }
  get rollback(): boolean {
    return this.#options.control.stop.rollback;
  }
  get rolledBack(): boolean {
    return this.#options.engine().loop.transcript.rolledBack;
  }

  abort(reason: string): void {
    this.#options.control.abort(reason);
  }
  onStop(listener: () => void): void {
    this.#options.control.onAbort(listener);
  }
  receive(mail: readonly Mail[]): void {
    this.#options.steering.receive(mail);
  }
  report(error: unknown): void {
    this.#options.engine().events.report(error);
  }
  logged(): Promise<boolean> {
    return this.#options.sink.settled?.() ?? Promise.resolve(true);
  }
  stopLogging(): void {
    this.#options.sink.yield?.();
  }
}

/** Returns a session as the middleware of an agent lets the store keep it. */
export function savedForm(
  { savers }: Pick<AgentDefinition<StepScope>, "savers">,
  session: CurrentSession,
): CurrentSession {
  return savers.reduce((form, save) => save(form), session);
}

/** Returns a result and its last event as the middleware of the agent lets callers and clients see them: also if no hook has seen the end. */
export function shownForm(
  { id, definition }: EngineRun,
  result: RunResult,
  last: Event,
  stored: StoredRun,
): { readonly result: RunResult; readonly last: Event } {
  if (definition.savers.length === 0) return { result, last };
  const { messages, last: form } = savedForm(definition, { ...stored.read(), last: { run: id, event: last } });
  const event = form?.event ?? last;
  const reason = "reason" in event && event.reason !== undefined && { reason: event.reason };
  return { result: { ...result, messages, ...("text" in event && { text: event.text }), ...reason }, last: event };
}

/** Returns the session with a note that clients have seen a part of an answer, which the next process takes back. */
function markShown(session: CurrentSession, shown: boolean): CurrentSession {
  const { run } = session;
  if (!shown || run?.position.at !== "model") return session;
  return { ...session, run: { ...run, position: { ...run.position, shown } } };
}

/** Returns the session of a run as it is now. */
function sessionOf(engine: EngineRun, owner: string | undefined, pause: Exit | undefined): CurrentSession {
  const { session: id, rules, sessionState, loop: { transcript: { messages, archive } } } = engine;
  return {
    id,
    messages,
    run: pause ? { ...engine.snapshot(), exit: pause } : engine.snapshot(),
    ...(owner !== undefined && { owner }),
    ...(archive !== undefined && { archive }),
    ...(sessionState.size > 0 && { state: [...sessionState] }),
    ...(rules.length > 0 && { rules }),
  };
}
