/**
 * Runs of another system, as hooks see them.
 *
 * @module
 */
import { defaultLimits, End, type Event, noUsage, Pause, type Run, type Scope } from "../../../mod.ts";

/** The most runs, and sessions, of which state is kept. */
const most = 1_000;

/** A run of another system. */
export interface Foreign {
  /** As hooks see it. */
  readonly run: Run;
  /** What a hook ended it with. */
  readonly ended: () => End | undefined;
}

/** What is known of a run of another system. */
export interface ForeignRun {
  /** The run's id. */
  readonly id: string;
  /** The session's id. */
  readonly session: string;
  /** The agent's name. */
  readonly agent: string;
}

/** Told of what went wrong. */
export type OnError = (error: unknown) => void;

/** Keeps runs of another system: the same for the same id. */
export function runsOf(onError: OnError): (about: ForeignRun) => Foreign {
  const runs = new Map<string, Foreign>();
  const sessions = new Map<string, Map<string, unknown>>();
  return (about) => {
    const lasting = kept(sessions, about.session, () => new Map());
    return kept(runs, about.id, () => foreign(about, lasting, onError));
  };
}

/** What is kept under a key; the oldest is forgotten where there is too much, which `forget` is told. */
export function kept<T>(all: Map<string, T>, key: string, make: () => T, forget: (value: T) => void = () => {}): T {
  const value = all.get(key) ?? make();
  all.delete(key);
  all.set(key, value);
  const [oldest] = all;
  if (all.size > most && oldest) {
    all.delete(oldest[0]);
    forget(oldest[1]);
  }
  return value;
}

function foreign({ id, session, agent }: ForeignRun, lasting: Map<string, unknown>, onError: OnError): Foreign {
  let ended: End | undefined;
  const run: Run = {
    id,
    session,
    agent,
    startedAt: Date.now(),
    path: [],
    answers: [],
    parent: undefined,
    call: undefined,
    state: new Map(),
    sessionState: lasting,
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

/** The scope of what happens in a run; `hear` is told of it. */
export function scopeOf({ run }: Foreign, hear: (event: Event) => void = () => {}): Scope {
  return { run, signal: new AbortController().signal, emit: hear, vars: undefined };
}

/** Why a run ends that an interrupt unwinds. */
export function reasonOf(interrupt: Error): string {
  if (interrupt instanceof End) return interrupt.reason;
  return interrupt instanceof Pause ? questionsOf(interrupt) : interrupt.message;
}

function questionsOf({ questions }: Pause): string {
  return questions.flatMap(({ questions }) => questions).join("\n");
}
