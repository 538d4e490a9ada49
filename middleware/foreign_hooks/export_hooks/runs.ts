/**
 * Runs of another system, as hooks see them.
 *
 * @module
 */
import { defaultLimits, End, type Event, noUsage, Pause, type Run, type Scope } from "../../../mod.ts";
import { remember } from "../kit/remember.ts";

/** A run of another system. */
export interface ForeignRun {
  /** The run that hooks receive. */
  readonly run: Run;
  /** Returns the end that a hook has requested. */
  readonly ended: () => End | undefined;
}

/** The ids of a run of another system. */
export interface RunIds {
  readonly id: string;
  readonly session: string;
  readonly agent: string;
}

/** Receives errors that the other system must not see. */
export type OnError = (error: unknown) => void;

/** Creates runs of another system: one per id, with state that belongs to the run and its session. */
export function runsOf(onError: OnError): (ids: RunIds) => ForeignRun {
  const runs = new Map<string, ForeignRun>();
  const sessions = new Map<string, Map<string, unknown>>();
  return (ids) => {
    const sessionState = remember(sessions, ids.session, () => new Map());
    return remember(runs, ids.id, () => foreignRun(ids, sessionState, onError));
  };
}

function foreignRun({ id, session, agent }: RunIds, sessionState: Map<string, unknown>, onError: OnError): ForeignRun {
  let ended: End | undefined;
  const run: Run = {
    id,
    session,
    agent,
    owner: undefined,
    startedAt: Date.now(),
    now: Date.now,
    path: [],
    answers: [],
    parent: undefined,
    call: undefined,
    state: new Map(),
    sessionState,
    usage: noUsage,
    finishing: false,
    used: { turns: 0, calls: 0, continuations: 0 },
    limits: defaultLimits,
    report(error) {
      onError(error);
      return crypto.randomUUID();
    },
    end(reason, options) {
      ended ??= new End(reason, options);
      return ended;
    },
    pause: (question, asked) => new Pause([{ questions: [question], ...asked }]),
  };
  return { run, ended: () => ended };
}

/** Returns the scope of hooks in a run. `emit` receives their events. */
export function scopeOf({ run }: ForeignRun, emit: (event: Event) => void = () => {}): Scope {
  return { run, signal: new AbortController().signal, emit, vars: undefined };
}

/** Returns the reason of an interrupt. */
export function reasonOf(interrupt: Error): string {
  if (interrupt instanceof End) return interrupt.reason;
  return interrupt instanceof Pause ? questionsOf(interrupt) : interrupt.message;
}

function questionsOf({ questions }: Pause): string {
  return questions.flatMap(({ questions }) => questions).join("\n");
}
