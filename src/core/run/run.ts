/**
 * A run of the engine: its services, which steps use and never replace.
 *
 * @module
 */
import type { Emit } from "../../protocol/event.ts";
import { addUsage, type Message, type Usage, type UserMessage } from "../../protocol/message.ts";
import type { Rule } from "../persistence/session.ts";
import type { RunWriter } from "../persistence/store.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition, AnswerFormat } from "../agent/definition.ts";
import { type OpenSettings, openSettings } from "../agent/settings.ts";
import type { Settings } from "../hooks/points/run.ts";
import type { Run, Scope } from "../hooks/scope.ts";
import { OpenWork, type RunControl } from "./control.ts";
import { Events, type NumberedEvent, type OnError } from "./events.ts";
import { ExitState } from "./exit_state.ts";
import type { Limits } from "./limits.ts";
import { logError } from "./log_error.ts";
import { Loop } from "./loop.ts";
import type { RunSnapshot } from "./position.ts";
import type { Arrivals, TurnState } from "./step.ts";
import { Transcript } from "./transcript.ts";
import { RunView } from "./view.ts";

/** The scope of the steps: the public scope, and the values that the surrounding hooks passed inward. */
export interface StepScope extends Scope {
  readonly engine: EngineRun;
  /** The `emit` outside of the prompt's hooks. */
  readonly outside: Emit;
  /** The prompt and the context, as the `prompt` hooks changed them. */
  readonly prompt?: { readonly message: UserMessage; readonly context: readonly string[] };
  /** The turn in progress. */
  readonly turn?: TurnState;
}

/** The values and services that a run receives when it starts. */
export interface EngineRunOptions {
  readonly definition: AgentDefinition<StepScope>;
  readonly session: string;
  readonly owner: string | undefined;
  readonly sink: Sink<NumberedEvent>;
  readonly vars: unknown;
  readonly limits: Limits;
  readonly control: RunControl;
  readonly arrivals: Arrivals;
  readonly start: RunSnapshot;
  /** The session's messages, and the session that keeps those from before the last compaction. */
  readonly transcript: { readonly messages: readonly Message[]; readonly archive?: string | undefined };
  readonly rules: Rule[];
  readonly sessionState: Map<string, unknown>;
  readonly onError?: OnError | undefined;
  /** The format of the final answer, if the agent has none of its own. */
  readonly answerFormat?: AnswerFormat | undefined;
  readonly writer: RunWriter;
  /** The reason to end a run that is only closed, once its open calls have results. */
  readonly closing?: string | undefined;
  readonly parent?: { readonly run: EngineRun; readonly call: string; readonly tool: string } | undefined;
}

/** A run: its services and its loop. */
export class EngineRun {
  readonly id: string;
  readonly startedAt: number;
  readonly definition: AgentDefinition<StepScope>;
  readonly session: string;
  readonly owner: string | undefined;
  readonly vars: unknown;
  readonly parent: EngineRun | undefined;
  readonly answerFormat: AnswerFormat | undefined;
  /** The id of the parent's call that this run works for. */
  readonly call: string | undefined;
  readonly path: readonly string[];
  /** The names of the tools that lead to this run, outermost first. Unlike the names of agents, they are unique in an agent. */
  readonly toolPath: readonly string[];
  readonly view: Run;
  readonly control: RunControl;
  readonly arrivals: Arrivals;
  readonly sink: Sink<NumberedEvent>;
  readonly events: Events;
  readonly exit: ExitState;
  readonly loop: Loop<StepScope>;
  /** The work in progress, which the end of the run cuts short. */
  readonly work = new OpenWork();
  readonly state: Map<string, unknown>;
  readonly sessionState: Map<string, unknown>;
  /** Calls that a person always allows, in the whole tree of agents. */
  readonly rules: Rule[];
  /** Failures that the `error` hooks have seen. */
  readonly seenErrors = new Set<unknown>();
  readonly onError: OnError;
  readonly writer: RunWriter;
  readonly closing: string | undefined;
  readonly #limits: Limits;
  #usage: Usage;
  #settings: OpenSettings | undefined;

  constructor(options: EngineRunOptions) {
    const { definition, start, sink, control, parent, onError = logError, writer } = options;
    this.id = start.id;
    this.startedAt = start.startedAt;
    this.onError = onError;
    this.writer = writer;
    this.closing = options.closing;
    this.definition = definition;
    this.owner = parent ? parent.run.owner : options.owner;
    this.answerFormat = definition.format ?? options.answerFormat;
    this.session = options.session;
    this.vars = options.vars;
    this.parent = parent?.run;
    this.call = parent?.call;
    this.path = this.parent ? [...this.parent.path, this.parent.definition.name] : [];
    this.toolPath = parent ? [...parent.run.toolPath, parent.tool] : [];
    this.control = control;
    this.arrivals = options.arrivals;
    this.sink = sink;
    this.events = new Events(start.id, start.events, {
      sink,
      observers: definition.observers,
      onError,
      derive: definition.format?.stream?.derive(),
    });
    this.state = new Map(start.state);
    this.sessionState = options.sessionState;
    this.rules = options.rules;
    this.#limits = options.limits;
    this.#usage = start.usage;
    this.exit = new ExitState(control);
    this.loop = new Loop({
      start,
      transcript: new Transcript({ ...options.transcript, before: start.before }, this.events),
      exit: this.exit,
      writer,
      events: this.events,
    });
    this.view = new RunView(this);
  }

  get limits(): Limits {
    return this.#settings?.limits ?? this.#limits;
  }
  /** True if the run ends or was aborted, and does not pause. */
  get isEnding(): boolean {
    return this.control.aborted || this.exit.isEnding;
  }
  get usage(): Usage {
    return this.#usage;
  }

  /** The settings of the open session. */
  get settings(): OpenSettings {
    if (!this.#settings) throw new Error("Cannot read the settings: the session is not open");
    return this.#settings;
  }

  /** Returns the scope of the outermost hooks. */
  scope(): Scope {
    return { run: this.view, signal: this.control.signal, emit: this.events.emit, vars: this.vars };
  }

  /** Opens the session with its settings. */
  open(settings: Settings): void {
    const slots = this.parent?.settings.slots;
    const opened = openSettings(settings, this.definition, { limits: this.#limits, slots });
    const { limits } = opened;
    if (limits.time !== this.#limits.time) this.control.setDeadline(limits.time);
    this.definition.checkLimits(limits);
    this.#settings = opened;
  }

  /** Counts tokens, in this run and in its parents. */
  spend(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
    this.parent?.spend(usage);
  }

  /** Returns the snapshot. */
  snapshot(): RunSnapshot {
    const { usage, state, events, loop } = this;
    return {
      ...loop.snapshot,
      usage,
      state: [...state],
      events: this.exit.current?.status === "paused" ? events.count + 1 : events.count, // `run.paused` is still to come
    };
  }

  /** Ends the run. Later events are dropped. */
  close(): void {
    this.control.close();
    this.events.close();
  }
}

/** Returns the run behind its view. Throws a `TypeError` for an object that no engine made. */
export function engineOf(view: Run): EngineRun {
  const engine = (view as Run & { readonly "~engine"?: EngineRun })["~engine"]; // a view has it
  if (!engine) throw new TypeError(`Cannot use run "${view.id}": expected a run of an agent`);
  return engine;
}
