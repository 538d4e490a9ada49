/**
 * A run of the engine: its settings, its services, which steps use and never replace, and the run as hooks and tools see it.
 *
 * @module
 */
import type { Claimed } from "./claim.ts";
import { OpenWork, type RunControl } from "./control.ts";
import type { AgentDefinition, AnswerFormat } from "./definition.ts";
import { type ErrorPlace, errorPlace, Events, logError, type NumberedEvent, type OnError } from "./events.ts";
import { traceIdOf } from "./lib/traceparent.ts";
import { End, type EndOptions, Pause } from "./interrupt.ts";
import { expectJson } from "./lib/json.ts";
import { Semaphore } from "./lib/locks.ts";
import { limited, type Limits } from "./limits.ts";
import { ExitState, Loop } from "./loop.ts";
import { replySchema } from "./persons_answers.ts";
import type { Settings } from "./points.ts";
import { merged } from "./policy.ts";
import type { RunSnapshot, TurnState } from "./position.ts";
import type { Run, Scope, Used } from "./scope.ts";
import type { Rule } from "./session.ts";
import type { SessionWriter } from "./session_writer.ts";
import type { Beginning, StartOptions } from "./start.ts";
import type { Steering } from "./steering.ts";
import { type AnyTool, type ToolTable, toolTable } from "./tool.ts";
import { Transcript } from "./transcript.ts";
import type { Model } from "../model/model.ts";
import type { Emit } from "../protocol/event.ts";
import { addUsage, noUsage, type Usage, type UserMessage } from "../protocol/message.ts";
import type { PersonAnswer, QuestionOptions } from "../protocol/question.ts";
import { expectNames } from "../protocol/shape.ts";
import type { Sink } from "../stream/channel.ts";

// The settings of a run: those that its `session` hooks receive, and those of its open session.

/** Returns the settings that the `session` hooks of a run receive. A child takes over `inherited`. Returns no promise if the agent has its model and its instructions. */
export function settingsOf(run: EngineRun, inherited?: Partial<Settings>): Settings | Promise<Settings> {
  const { definition: { model, instructions, tools }, limits } = run;
  const runTools = run.tools.filter(({ name }) => !tools.some((agentTool) => agentTool.name === name));
  const whole = (chosen: ChosenSettings): Settings => {
    const settings = { ...chosen, tools: [...tools, ...runTools], limits };
    return inherited ? merged(settings, inherited) : settings;
  };
  if (typeof model === "function" || typeof instructions === "function") {
    return chosenSettings(run).then(whole);
  }
  return whole({ model, instructions });
}

/** The settings that a function of the agent may choose. */
interface ChosenSettings {
  readonly model: Model;
  readonly instructions: string;
}

/** Calls the functions that choose the model and the instructions. */
async function chosenSettings(run: EngineRun): Promise<ChosenSettings> {
  const { model, instructions } = run.definition;
  const scope = run.scope();
  return {
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
  };
}

/** The settings of a run whose session is open. */
type OpenSettings = Settings & ToolTable;

/** Completes the settings that the `session` hooks decided on. `base` are the limits of the run. */
function openSettings(
  settings: Settings,
  { tools, toolTable: agentTable }: AgentDefinition,
  base: Limits,
): OpenSettings {
  const limits = settings.limits === base ? base : limited(base, settings.limits);
  const isUnchanged = settings.tools.length === tools.length && settings.tools.every((tool, at) => tool === tools[at]);
  const table = isUnchanged ? agentTable : toolTable(settings.tools as readonly AnyTool[]); // run() requires the vars that they need
  return { ...settings, ...table, limits };
}

// A run as hooks and tools see it.

/** A run as hooks see it. A class, because an object literal with accessors costs a microsecond each time it is created. */
export class RunView implements Run {
  readonly id: string;
  readonly session: string;
  readonly owner: string | undefined;
  readonly startedAt: number;
  readonly path: readonly string[];
  readonly agent: string;
  readonly parent: Run | undefined;
  readonly call: string | undefined;
  readonly traceparent: string | undefined;
  readonly state: Map<string, unknown>;
  readonly sessionState: Map<string, unknown>;
  readonly #engine: EngineRun;

  constructor(engine: EngineRun) {
    this.id = engine.id;
    this.session = engine.session;
    this.owner = engine.owner;
    this.startedAt = engine.startedAt;
    this.path = engine.path;
    this.agent = engine.definition.name;
    this.parent = engine.parent?.view;
    this.call = engine.call;
    this.traceparent = engine.claimed.snapshot.traceparent;
    this.state = engine.state;
    this.sessionState = engine.sessionState;
    this.#engine = engine;
  }

  /** The run, for features of the engine. A property, so that it works across copies of the package. */
  get "~engine"(): EngineRun {
    return this.#engine;
  }
  get answers(): readonly PersonAnswer[] {
    return this.#engine.loop.answers.map(({ answer }) => answer);
  }
  get usage(): Usage {
    return this.#engine.usage;
  }
  get used(): Used {
    const { turns, calls, continuations } = this.#engine.loop.counters;
    return { turns, calls, continuations };
  }
  get limits(): Limits {
    return this.#engine.limits;
  }
  get finishing(): boolean {
    return this.#engine.steering.finishing;
  }

  readonly now = (): number => (this.#engine.definition.now ?? Date.now)();

  readonly report = (error: unknown): string => this.#engine.events.report(error);

  readonly end = (reason: string, options: EndOptions = {}): End => {
    expectJson("Cannot end the run", reason);
    expectNames("Cannot end the run", options, ["as", "rollback", "withhold", "tree"]);
    const end = new End(reason, options);
    for (let run: EngineRun | undefined = this.#engine; run; run = end.tree ? run.parent : undefined) {
      run.exit.offerInterrupt(end);
    }
    return end;
  };

  readonly pause = (question: string, options?: QuestionOptions): Pause => {
    const pause = new Pause([{ questions: [question], schema: replySchema, ...options }]);
    // after the constructor, which handles the rejection of a promise
    if (typeof question !== "string") throw new TypeError("Cannot pause: expected a question as text");
    return pause;
  };
}

// The engine of a run: its loop and its services.

/** A scope, and the run of the engine that it belongs to. */
export interface EngineScope extends Scope {
  readonly engine: EngineRun;
}

/** The scope of the steps: with the values that the surrounding hooks passed inward. */
export interface StepScope extends EngineScope {
  /** The `emit` outside of the prompt's hooks. */
  readonly outside: Emit;
  /** The prompt and the context, as the `prompt` hooks changed them. */
  readonly prompt?: { readonly message: UserMessage; readonly context: readonly string[] };
  /** The turn in progress. */
  readonly turn?: TurnState;
}

/** A run: its services and its loop. */
export class EngineRun {
  readonly id: string;
  readonly startedAt: number;
  readonly definition: AgentDefinition;
  readonly session: string;
  readonly owner: string | undefined;
  readonly vars: unknown;
  readonly parent: EngineRun | undefined;
  /** The id of the parent's call that this run works for. */
  readonly call: string | undefined;
  readonly path: readonly string[];
  /** The names of the tools that lead to this run, outermost first. Unlike the names of agents, they are unique in an agent. */
  readonly toolPath: readonly string[];
  readonly view: Run;
  readonly control: RunControl;
  readonly steering: Steering;
  readonly sink: Sink<NumberedEvent>;
  /** The run, the session, the owner and the trace of its errors. */
  readonly place: ErrorPlace;
  readonly events: Events;
  readonly exit: ExitState;
  readonly loop: Loop;
  /** Whether the events of a trace contain requests and changed values. */
  readonly detailed: boolean;
  /** The work in progress, which the end of the run cuts short. */
  readonly work: OpenWork = new OpenWork();
  readonly state: Map<string, unknown>;
  readonly sessionState: Map<string, unknown>;
  /** Calls that a person always allows, in the whole tree of agents. */
  readonly rules: Rule[];
  /** Failures that the `error` hooks have seen. */
  readonly seenErrors: unknown[] = [];
  readonly onError: OnError;
  readonly writer: SessionWriter;
  /** The saved state that the run started from. */
  readonly claimed: Claimed;
  readonly #limits: Limits;
  #tools: readonly AnyTool[];
  #answerFormat: AnswerFormat | undefined;
  #usage: Usage;
  readonly #onUsage: StartOptions["onUsage"];
  #settings: OpenSettings | undefined;
  #slots: Semaphore | undefined;
  #agentSlots: Semaphore | undefined;

  /** `openWriter` creates the writer of the session, which reads the run. */
  constructor(beginning: Beginning, claimed: Claimed, openWriter: (run: EngineRun) => SessionWriter) {
    const {
      definition,
      sink,
      control,
      steering,
      options: { vars, onError = logError, tools = [], answerFormat, parent, onUsage, detailed = true },
    } = beginning;
    const { snapshot, messages, compactions } = claimed;
    this.id = snapshot.id;
    this.startedAt = snapshot.startedAt;
    this.claimed = claimed;
    this.definition = definition;
    this.session = beginning.session;
    this.owner = parent ? parent.run.owner : claimed.owner;
    this.vars = vars;
    this.onError = onError;
    this.#tools = tools;
    this.#answerFormat = definition.format ?? answerFormat;
    this.parent = parent?.run;
    this.detailed = parent ? parent.run.detailed : detailed;
    this.call = parent?.call;
    this.path = parent ? [...parent.run.path, parent.run.definition.name] : [];
    this.toolPath = parent ? [...parent.run.toolPath, parent.tool] : [];
    this.control = control;
    this.steering = steering;
    this.writer = openWriter(this);
    this.sink = this.writer.holds ? this.writer : sink;
    this.place = {
      ...(parent?.run.place ??
        errorPlace({ session: this.session, owner: this.owner, trace: traceIdOf(snapshot.traceparent) })),
      run: this.id,
    };
    this.events = new Events(this.place, snapshot.events, {
      sink: this.sink,
      observers: definition.observers,
      onError,
      derive: definition.format?.stream?.derive(),
    });
    this.state = new Map(snapshot.state);
    this.sessionState = parent?.run.sessionState ?? new Map(claimed.state);
    this.rules = parent?.run.rules ?? [...claimed.rules];
    this.#limits = beginning.limits;
    this.#onUsage = onUsage;
    this.#usage = snapshot.usage;
    this.exit = new ExitState(control);
    const { events, exit, writer } = this;
    const transcript = new Transcript({ messages, compactions, before: snapshot.before }, events);
    this.loop = new Loop({ snapshot, transcript, exit, writer, events });
    this.view = new RunView(this);
    steering.attach(this.state);
    steering.receive(claimed.mail);
  }

  /** Tools of this run only. */
  get tools(): readonly AnyTool[] {
    return this.#tools;
  }
  /** The format of the final answer. */
  get answerFormat(): AnswerFormat | undefined {
    return this.#answerFormat;
  }
  get limits(): Limits {
    return this.#settings?.limits ?? this.#limits;
  }
  /** The estimated tokens that the transcript may have, also if a `session` hook lets it be compacted before. */
  get window(): number {
    return this.#limits.context;
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

  /** The slots for running tools, shared with child runs. */
  get slots(): Semaphore {
    return this.#slots ??= this.parent?.slots ?? new Semaphore(this.limits.parallel);
  }
  /** The slots for child runs. */
  get agentSlots(): Semaphore {
    return this.#agentSlots ??= new Semaphore(this.limits.agents);
  }

  /** Returns the scope of the outermost hooks. */
  scope(): Scope {
    return { run: this.view, signal: this.control.signal, emit: this.events.emit, vars: this.vars };
  }

  /** Sets what its client gave to the run, as the `input` hooks have accepted it. */
  receive(tools: readonly AnyTool[], answerFormat: AnswerFormat | undefined): void {
    this.#tools = tools;
    this.#answerFormat = this.definition.format ?? answerFormat;
  }

  /** Sets the settings that the `session` hooks decided on. */
  applySettings(settings: Settings): void {
    const opened = openSettings(settings, this.definition, this.#limits);
    const { limits } = opened;
    if (limits.time !== this.#limits.time) this.control.setDeadline(limits.time);
    this.definition.checkLimits(limits);
    this.#settings = opened;
  }

  /** Counts tokens of a model, in this run and in its parents. */
  spend(usage: Usage, model: string): void {
    if (usage === noUsage) return;
    this.#usage = addUsage(this.#usage, usage);
    this.parent?.spend(usage, model);
    this.#onUsage?.(this.id, model, usage);
  }

  /** Returns the snapshot: that of the loop, with the usage, the state and the number of events as they are now. */
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
