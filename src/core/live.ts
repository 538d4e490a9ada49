/**
 * A run while it lives: what the engine knows of it. Hooks are shown its `view`.
 *
 * @module
 */
import type { ToolDefinition } from "../model/model.ts";
import type { Emit } from "../protocol/event.ts";
import { addUsage, type AssistantMessage, type Call, type Message, noUsage, type Usage } from "../protocol/message.ts";
import type { Answered, Pending, Rule } from "../protocol/session.ts";
import type { Sink } from "../stream/channel.ts";
import { clearTurn, turn } from "../stream/turn.ts";
import { type Cancellation, cancellationOf, startTimer } from "./abandon.ts";
import type { Blueprint } from "./blueprint.ts";
import { Events, type NumberedEvent, type OnError } from "./events.ts";
import { End, Pause } from "./interrupt.ts";
import { replySchema } from "./question.ts";
import type { Keeping } from "./keep.ts";
import { limited, type Limits } from "./limits.ts";
import type { Settings } from "./points.ts";
import type { Run, Scope } from "./scope.ts";
import { Semaphore } from "./slots.ts";
import { Inbox } from "./inbox.ts";
import type { AnyTool } from "./tool.ts";
import { Transcript } from "./transcript.ts";
import type { RunningBatch } from "./way.ts";

/** What a run begins with. */
export interface LiveOptions {
  readonly blueprint: Blueprint;
  readonly session: string;
  readonly sink: Sink<NumberedEvent>;
  readonly vars: unknown;
  readonly limits: Limits;
  readonly parent?: { readonly live: Live; readonly call: string } | undefined;
  readonly onError?: OnError | undefined;
}

/** The engine's own record of a run. */
export class Live implements Cancellation {
  id: string = crypto.randomUUID();
  startedAt: number = Date.now();
  readonly blueprint: Blueprint;
  readonly session: string;
  readonly vars: unknown;
  /** The run above it, where it is a child's. */
  readonly parent: Live | undefined;
  /** The call of that run that it works for. */
  readonly call: string | undefined;
  readonly path: readonly string[];
  readonly view: Run;

  readonly sink: Sink<NumberedEvent>;
  readonly events: Events;
  /** The emit outside of `prompt`. */
  outer: Emit;

  readonly transcript: Transcript;
  readonly state = new Map<string, unknown>();
  /** What middleware keep for the session. */
  readonly lasting: Map<string, unknown>;
  usage: Usage = noUsage;
  used = { turns: 0, calls: 0, continuations: 0, batches: 0, outputs: 0 };
  keeping: Keeping | undefined;

  limits: Limits;
  slots: Semaphore;
  /** The places of agents that work for it. */
  crew: Semaphore;
  tools: ReadonlyMap<string, AnyTool> = new Map();
  definitions: readonly ToolDefinition[] = [];

  /** By which whoever serves it knows the request that it begins or goes on with. */
  request: string | undefined;
  /** A prompt that was not accepted yet, and the messages before it. */
  prompt: readonly Message[] | undefined;
  /** Whether a prompt was accepted, and nobody has heard of that. */
  untold = false;
  /** What was shown of an answer that is not complete: what a hook held back or changed is not kept as it was. */
  partial: (() => AssistantMessage) | undefined;
  /** Calls that have no result yet. */
  open: readonly Call[] = [];
  /** The batch that is being run. */
  batch: RunningBatch | undefined;
  /** Gives up on it: unwinds its calls and answers them. */
  unfinished: (() => void) | undefined;
  /** The middleware that gave the last answer. */
  author: string | undefined;

  /** Whether it goes on, after a pause or after its process died. */
  resumed = false;
  /** Whether its process died. */
  lost = false;
  /** Why it ends as soon as its calls have results, where it does. */
  closing: string | undefined;
  /** What to mind, where all that it does is to compact the transcript. */
  compacting: { readonly instructions: string } | undefined;
  /** Where it goes on after a pause. */
  pending: Pending | undefined;
  /** The messages that its turn began with. */
  ground: readonly Message[] = [];
  /** The turn it is in: begun, and nothing of it kept; or done, and its hooks have not all come out. */
  turning: "begun" | "done" | undefined;
  /** Whether it is about to finish, and `stop` has not said to go on. */
  stopping = false;
  /** What a person answered, until it has come to something. */
  answered: readonly Answered[] = [];
  /** What a person has allowed for good, in the whole tree of agents. */
  readonly rules: Rule[];
  /** The pause that it unwinds with. */
  pausing: Pause | undefined;
  ended: End | undefined;
  /** Why no other turn begins, where none does. */
  draining: string | undefined;
  /** What waits to be said to it. */
  readonly inbox = new Inbox();
  /** Whether the transcript goes back to where the run began, where it is stopped. */
  rollback = false;
  /** Whether its session is left as it is kept. */
  left = false;
  /** What it failed with. */
  failure: { readonly error: unknown } | undefined;
  /** Failures that were judged to be its end. */
  readonly judged = new Set<unknown>();
  /** The cleanup, once it has begun. */
  cleaning: Promise<void> | undefined;

  #settings: Settings | undefined;
  readonly #controller = new AbortController();
  /** Aborts when the run should stop. */
  readonly signal: AbortSignal = this.#controller.signal;
  /** Whether it has. */
  aborted = false;
  readonly #leaving = new Set<() => void>();
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #gathering: ReturnType<typeof setTimeout> | undefined;

  /** Begins a run. */
  constructor({ blueprint, session, sink, vars, limits, parent, onError }: LiveOptions) {
    this.blueprint = blueprint;
    this.session = session;
    this.sink = sink;
    this.vars = vars;
    this.limits = limits;
    this.parent = parent?.live;
    this.call = parent?.call;
    this.path = this.parent ? [...this.parent.path, this.parent.blueprint.name] : [];
    this.slots = this.parent?.slots ?? new Semaphore(limits.parallel);
    this.crew = new Semaphore(limits.agents);
    this.rules = this.parent?.rules ?? [];
    this.lasting = this.parent?.lasting ?? new Map();
    this.events = new Events(this, { sink, observers: blueprint.observers, onError });
    this.outer = this.events.emit;
    this.transcript = new Transcript(this.events);
    this.view = viewOf(this);
  }

  /** Why it should stop: an `AbortError` whose message is the reason. */
  get reason(): unknown {
    return this.signal.reason;
  }

  /** Calls `leave` when the run should stop: one listener for all of them. */
  onAbort(leave: () => void): () => void {
    this.#leaving.add(leave);
    return () => this.#leaving.delete(leave);
  }

  /** Tells as `signal` does when to stop: the run itself does, where it is the run's own. */
  at(signal: AbortSignal): Cancellation {
    return signal === this.signal ? this : cancellationOf(signal);
  }

  /** Stops the run. The first reason counts. */
  abort(reason: string): void {
    if (this.aborted || this.events.closed) return;
    this.aborted = true;
    this.#controller.abort(new DOMException(reason, "AbortError"));
    for (const leave of this.#leaving) leave();
  }

  /** What hooks at the outermost layer of a point are given. */
  scope(): Scope {
    return { run: this.view, signal: this.signal, emit: this.events.emit, vars: this.vars };
  }

  /** Counts tokens, here and in every run above. */
  spend(usage: Usage): void {
    this.usage = addUsage(this.usage, usage);
    this.parent?.spend(usage);
  }

  /** Saves the session as it is now. A run that has lost it stops: what it did from here on would be kept by nobody. */
  async keep(): Promise<void> {
    if (this.keeping && !await this.keeping.save()) this.abort("lost");
  }

  /** Throws where the run has ended, pauses, or should stop. */
  checkpoint(): void {
    if (this.ended) throw this.ended;
    if (this.pausing) throw this.pausing;
    this.signal.throwIfAborted();
  }

  /** Pauses the run, whatever hooks make of the `Pause` they see; `where` is where it goes on. */
  hold(pause: Pause, where: Omit<Pending, "questions"> = {}): Pause {
    const questions = [...this.pending?.questions ?? [], ...pause.questions];
    this.pending = { ...this.pending, ...where, questions };
    this.pausing = pause;
    return pause;
  }

  /** What the session was opened with. */
  get settings(): Settings {
    if (!this.#settings) throw new Error("Cannot read settings: the session is not open");
    return this.#settings;
  }

  /** Opens the session with `settings`; its `emit` is the one outside of the prompt. */
  settle(settings: Settings, { emit }: Scope): void {
    this.#settings = settings;
    this.outer = emit;
    const tools = settings.tools as readonly AnyTool[]; // what they need of vars, `run()` requires
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.definitions = [...this.tools.values()].map(({ definition }) => definition);
    if (settings.limits !== this.limits) {
      const { time } = this.limits;
      this.limits = limited(this.limits, settings.limits);
      if (!this.parent) this.slots = new Semaphore(this.limits.parallel);
      this.crew = new Semaphore(this.limits.agents);
      if (this.limits.time !== time) this.arm();
    }
  }

  /** Lets what is told in one go travel together: until the event loop turns, at the latest. */
  gather(): void {
    if (this.events.closed) return;
    this.sink.cork();
    this.#gathering ??= turn(() => {
      this.#gathering = undefined;
      this.sink.uncork();
    });
  }

  /** Starts the clock. */
  arm(): void {
    clearTimeout(this.#deadline);
    this.#deadline = startTimer(() => this.abort("deadline"), this.limits.time);
  }

  /** Nothing that comes later is heard. */
  close(): void {
    clearTimeout(this.#deadline);
    clearTurn(this.#gathering);
    this.sink.uncork();
    this.#leaving.clear();
    this.inbox.closed = true;
    this.keeping?.close();
    this.events.close();
  }
}

/** What hooks see of a run. */
function viewOf(live: Live): Run {
  return {
    get id() {
      return live.id;
    },
    session: live.session,
    get startedAt() {
      return live.startedAt;
    },
    path: live.path,
    get answers() {
      return live.answered.map(({ answer }) => answer);
    },
    state: live.state,
    sessionState: live.lasting,
    agent: live.blueprint.name,
    call: live.call,
    get parent() {
      return live.parent?.view;
    },
    get usage() {
      return live.usage;
    },
    get used() {
      const { turns, calls, continuations } = live.used;
      return { turns, calls, continuations };
    },
    get limits() {
      return live.limits;
    },
    get finishing() {
      return live.inbox.finishing;
    },
    report: (error) => live.events.report(error),
    end(reason, options) {
      live.ended ??= new End(reason, options);
      return live.ended;
    },
    pause: (question, asked) => new Pause([{ questions: [question], schema: replySchema, ...asked }]),
  };
}
