/**
 * The start of a run: its options, the claim of its session, and its handle.
 *
 * @module
 */
import { claim, type Claimed, type ClaimOptions, pauseOf, stateOf } from "./claim.ts";
import { type AbortOptions, RunControl, type StopOptions } from "./control.ts";
import type { AgentDefinition, AnswerFormat } from "./definition.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import { orRefuse, reviewAnswers, reviewMessage } from "./input_hooks.ts";
import { expectJson } from "./lib/json.ts";
import { expectChoice } from "./lib/options.ts";
import { firstEventsOf, live } from "./lifecycle.ts";
import { limited, type Limits } from "./limits.ts";
import { memoryJournal } from "./memory_journal.ts";
import { rulesOf, validateEdits } from "./persons_answers.ts";
import type { RunResult, Settings } from "./points.ts";
import { type Stop, stopFor, stops } from "./position.ts";
import { EngineRun } from "./run.ts";
import { savedForm } from "./saved_session.ts";
import type { Scope } from "./scope.ts";
import { type Mail, type Session, SessionError } from "./session.ts";
import { SessionWriter } from "./session_writer.ts";
import { type SendOptions, Steering } from "./steering.ts";
import type { AnyTool } from "./tool.ts";
import { expectMessages } from "./transcript.ts";
import type { Event } from "../protocol/event.ts";
import { type Message, type Usage, user, type UserMessage } from "../protocol/message.ts";
import { expectNames } from "../protocol/shape.ts";
import type { Sink } from "../stream/channel.ts";

// The options of a run, and the handle of a run that has started.

/** The options of a run, however it starts. */
export interface StartOptions extends ClaimOptions {
  readonly vars: unknown;
  readonly onError?: OnError | undefined;
  /** Tools of this run only, such as those that its client runs. One with the name of an agent's own tool is left out. */
  readonly tools?: readonly AnyTool[] | undefined;
  /** The format of the final answer, if the agent has none of its own. */
  readonly answerFormat?: AnswerFormat | undefined;
  /** The call of a parent run that a child run works for, and the settings that the child takes over. */
  readonly parent?:
    | { readonly run: EngineRun; readonly call: string; readonly tool: string; readonly settings: Partial<Settings> }
    | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly limits?: Partial<Limits> | undefined;
  /** Stores the events, for clients that reconnect, and keeps those of an earlier run of the session for `keep` milliseconds after its end. Default: they are not stored. */
  readonly records?: { readonly keep: number } | undefined;
  /** Whether the events of a trace contain the requests to the model and the values that hooks changed. A child run does as its parent. Default: true. */
  readonly detailed?: boolean | undefined;
  /** Events to emit after the first ones. */
  readonly firstEvents?: readonly Event[] | undefined;
  /** Throws a `SessionError` if the run cannot start from the state that it has claimed. Default: every run can. */
  readonly check?: ((beginning: Beginning, claimed: Claimed) => void) | undefined;
  /** Runs the `input` hooks for what a client gave beside its messages, and changes the run accordingly. Throws a `Refusal`. Default: there is nothing. */
  readonly review?: ((run: EngineRun, scope: Scope) => Promise<void>) | undefined;
  /** Receives the tokens of each request to a model, also of a child run, with the id of this run. */
  readonly onUsage?: ((run: string, model: string, usage: Usage) => void) | undefined;
}

/** The parts of a run that exist before it has its session. */
export interface Beginning {
  readonly definition: AgentDefinition;
  readonly options: StartOptions;
  readonly limits: Limits;
  readonly session: string;
  readonly sink: Sink<NumberedEvent>;
  readonly control: RunControl;
  readonly steering: Steering;
  /** Events of the `input` hooks that ran before the first event. */
  readonly firstEvents: Event[];
}

/** A run that has its session. */
export interface ReadyRun {
  /** The run's id. */
  readonly run: string;
  /** The number of the event before the first one: 0 unless the run continues. */
  readonly after: number;
  /** The tokens that the run has used before. */
  readonly usage: Usage;
  /** The state that the run was in. Default: it is new. */
  readonly before?: StateBefore;
  /** The milliseconds since the lease of a lost run ended. Default: the run was not lost, or had no lease. */
  readonly lag?: number;
  /** The number of processes that have died with the run since it began or paused. Default: none. */
  readonly recoveries?: number;
}

/** The state of a run that continues: it had paused, its process died, or its process gave it back. */
export type StateBefore = "paused" | "lost" | "handed-over";

/** Returns the run that has its session, as it was before. */
function readyRun({ id: run, claimed, claimed: { snapshot: { events: after, usage } } }: EngineRun): ReadyRun {
  const ready = { run, after, usage };
  if (claimed.type === "new") return ready;
  if (pauseOf(claimed)) return { ...ready, before: "paused" };
  const { lease } = claimed.opened?.session ?? {};
  const { recoveries } = claimed.snapshot;
  if (lease?.released) return { ...ready, before: "handed-over" };
  return {
    ...ready,
    before: "lost",
    ...(recoveries !== undefined && { recoveries }),
    ...(lease && { lag: Math.max(0, Date.now() - lease.until) }),
  };
}

/** A run that has started. */
export interface Started {
  /** The session's id. */
  readonly session: string;
  /**
   * Resolves once the run has its session, and its first events are stored. Rejects with a `SessionError` if the run cannot have its session.
   */
  readonly ready: Promise<ReadyRun>;
  /** The transcript as it is now. Empty until the run is ready. */
  readonly messages: readonly Message[];
  /** The number of its events that wait until they are stored. */
  readonly waiting: number;
  /** The result. Never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops the run. Default reason: "stop". */
  stop(reason?: string, options?: StopOptions): void;
  /** Stops the run for a reason of its server. */
  abort(stop: Stop, options?: AbortOptions): void;
  /**
   * Sends a message to the run, which receives it at the next safe place. Resolves once it is accepted; of a run that is saved as it works, once it is
   * saved. Rejects with a `RangeError` if ten messages wait, and with a `SessionError` if the run is over or an `input` hook refuses the message.
   */
  send(message: string | UserMessage, options?: SendOptions): Promise<void>;
  /**
   * Asks the run to end with one more answer, without tools. Calls that have not begun are skipped. Resolves once the request is accepted; of a run that is
   * saved as it works, once it is saved. Rejects with a `SessionError` if the run is over, or ends before the request is saved. Callers need not wait.
   */
  finish(): Promise<void>;
  /** Ends the run after its turn, as a limit does. */
  drain(reason: string): void;
  /**
   * Gives the run to another process, at the next safe place or after `grace` milliseconds. Its state is saved without its lease, and the stream of events
   * ends without a last event. A run in memory is aborted with the reason "shutdown".
   */
  handOver(grace: number): void;
}

/** Discards events. */
export const nullSink: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };

// The claim of the session, and the run that is made with it.

/** Ends the run that has the session. */
type CloseOther = (stop: Stop) => Promise<{ readonly error?: unknown }>;

/** Claims the session for a run, and returns the run. Another run that has the session and must be closed is closed before. */
async function claimedRun(beginning: Beginning, closeOther: CloseOther): Promise<EngineRun> {
  const { options, session } = beginning;
  const busy = () => new SessionError(`Cannot run session "${session}": another run took it`, "busy");
  for (const answer of options.answers ?? []) {
    if (answer.type === "approve") expectJson(`Cannot resume session "${session}" with an edited input`, answer.input);
  }
  let claimed = await claim(beginning);
  if ("close" in claimed) {
    const { error } = await closeOther(claimed.close);
    if (error !== undefined && !(error instanceof SessionError)) throw error; // the session would stay busy for ever
    claimed = await claim({ ...beginning, options: { ...options, busy: "refuse" } });
    if ("close" in claimed) throw busy();
  }
  options.check?.(beginning, claimed);
  const run = new EngineRun(beginning, claimed, (run) => writerOf(beginning, run));
  if (claimed.type === "closing" && claimed.rollback) run.control.rollBack();
  if (!options.parent && claimed.type !== "new") {
    await orRefuse(`Cannot resume run "${run.id}"`, reviewGiven(run, beginning));
  }
  if (!await run.writer.claim(firstEventsOf(run, beginning.firstEvents))) throw busy();
  return run;
}

/** Opens the writer of the session. Without a named session, and in a child, only a pause is saved; the memory of an agent keeps the end too. */
function writerOf({ options, sink: out }: Beginning, run: EngineRun): SessionWriter {
  const { store, session, parent, lease = 30_000, owner, records, requestId: request } = options;
  if (!store.journal) {
    throw new TypeError('Cannot use the store: expected durable(journal) of "@jizai/jizai/session/durable"');
  }
  const always = session !== undefined && !parent;
  const { deltasEvery = 0 } = store.journal;
  return new SessionWriter(store, run, {
    always,
    lease,
    owner,
    request,
    records: always ? records : undefined,
    deltasEvery,
    out,
  });
}

/** Runs the `input` hooks for what a run continues with. Nothing is stored before. Their events are added to `firstEvents`. */
async function reviewGiven(run: EngineRun, { definition, options, firstEvents }: Beginning): Promise<void> {
  const { claimed, claimed: { snapshot: { answers } }, rules, loop } = run;
  const newAnswers = pauseOf(claimed)?.newAnswers ?? [];
  const scope = { ...run.scope(), emit: (event: Event) => void firstEvents.push(event) };
  const accepted = await reviewAnswers(run, scope, newAnswers);
  await options.review?.(run, scope);
  if (definition.reviewsInput) await validateEdits(loop.transcript, accepted, [...definition.tools, ...run.tools]);
  loop.receive([...answers.slice(0, answers.length - newAnswers.length), ...accepted]);
  rules.push(...accepted.flatMap(rulesOf));
}

// The `input` point for a message to a run that another process executes.

/** A request of another process that brings a message. */
type MessageMail = Extract<Mail, { type: "message" }>;

/** A message, the session of its run, the vars of the request that brought it, and the receiver of errors. */
interface RemoteMessage {
  readonly session: Session;
  readonly mail: MessageMail;
  readonly vars: unknown;
  readonly onError: OnError;
}

/** Returns true if the agent reviews messages from outside: it has `input` hooks. */
export function reviewsInput(agent: { readonly "~definition": object }): boolean {
  return (agent["~definition"] as AgentDefinition).reviewsInput; // agent() made it
}

/**
 * Runs the `input` hooks of `agent` for a message, before it is saved for the run that has `session`. Returns it with its context, in the form that
 * the store keeps. The hooks see the run as it was saved last; their events and changes of its state are dropped. Throws a `SessionError` if the message is
 * refused.
 */
export async function reviewForRemoteRun(
  agent: { readonly "~definition": object },
  { session, mail, vars, onError }: RemoteMessage,
): Promise<Mail> {
  const definition = agent["~definition"] as AgentDefinition; // agent() made it
  const { run: snapshot } = session;
  if (!snapshot || !definition.reviewsInput) return mail;
  const beginning = {
    definition,
    options: { vars, onError, store: { journal: memoryJournal() } }, // nothing is saved
    limits: definition.limits,
    session: session.id,
    sink: nullSink,
    control: new RunControl(),
    steering: new Steering(),
    firstEvents: [],
  };
  const claimed = { ...stateOf(session), type: "remote", snapshot } as const;
  const engine = new EngineRun(beginning, claimed, (run) => writerOf(beginning, run));
  try {
    const reviewed = reviewMessage(engine, engine.scope(), "steering", mail.message);
    const accepted = await orRefuse(`Cannot send a message to run "${engine.id}"`, reviewed);
    return storedForm(engine, { ...mail, ...fieldsOf(accepted) });
  } finally {
    engine.close();
  }
}

/** Returns the parts of a request for a message after its context. */
function fieldsOf(accepted: readonly UserMessage[]): Partial<MessageMail> {
  const [message, context] = [accepted.at(-1), accepted.slice(0, -1)];
  return { ...(message && { message }), ...(context.length > 0 && { context }) };
}

/** Returns a request as the middleware of a run lets the store keep it. */
function storedForm(run: EngineRun, mail: Mail): Mail {
  const { mail: [stored = mail] = [] } = savedForm(run, { id: run.session, messages: [], mail: [mail] });
  return stored;
}

// The start: opens a run, and returns its handle.

/** Starts a run, or continues one that has paused or whose process died. */
export function start(
  definition: AgentDefinition,
  options: StartOptions,
  sink: Sink<NumberedEvent>,
): Started {
  const { signal, session = crypto.randomUUID() } = options;
  const limits = options.limits ? limited(definition.limits, options.limits) : definition.limits;
  const control = new RunControl();
  if (signal) control.follow(signal);
  control.setDeadline(limits.time);
  const closeOther = (stop: Stop) => {
    const { messages: _, run: __, ...rest } = options;
    return start(definition, { ...rest, answers: [], stop }, nullSink).result;
  };
  const firstEvents = [...options.firstEvents ?? []];
  const beginning = { definition, options, limits, session, sink, control, steering: new Steering(), firstEvents };
  return new StartedRun(beginning, claimedRun(beginning, closeOther));
}

/** A run that has started. A class, because a server keeps one for each stream, and a closure for each operation would take eight times the memory. */
class StartedRun implements Started {
  readonly session: string;
  readonly ready: Promise<ReadyRun>;
  readonly result: Promise<RunResult>;
  readonly #run: Promise<EngineRun>;
  #running: EngineRun | undefined;
  readonly #control: RunControl;
  readonly #steering: Steering;
  /** Settles when the `input` hooks have returned for the messages so far. Never rejects. */
  #reviewed: Promise<unknown> | undefined;

  constructor(beginning: Beginning, run: Promise<EngineRun>) {
    this.session = beginning.session;
    this.ready = run.then((running) => readyRun(this.#running = running));
    this.ready.catch(() => {}); // the result reports it too
    this.result = live(beginning, run);
    this.#run = run;
    this.#control = beginning.control;
    this.#steering = beginning.steering;
  }

  get messages(): readonly Message[] {
    return this.#running?.loop.transcript.messages ?? [];
  }

  get waiting(): number {
    return this.#running?.writer.waiting ?? 0;
  }

  stop(reason?: string, options: StopOptions = {}): void {
    expectNames("Cannot stop the run", options, ["rollback"]);
    this.abort(reason === undefined ? stops.stop : stopFor(reason), options);
  }

  abort(stop: Stop, options?: AbortOptions): void {
    this.#control.abort(stop, options);
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
    this.#run.then(({ writer }) => writer.handOver(grace), () => {}); // a run that cannot open ends by itself
  }

  async send(message: string | UserMessage, options: SendOptions = {}): Promise<void> {
    const run = await this.#run; // messages that waited before come first
    const failure = `Cannot send a message to run "${run.id}"`;
    expectNames(failure, options, ["after"]);
    expectChoice(failure, "after", options.after ?? "batch", ["batch", "calls"]);
    this.#expectOpen(failure);
    const userMessage = typeof message === "string" ? user(message) : message;
    expectMessages(failure, [userMessage], ["user"]);
    const accepted = run.definition.reviewsInput ? await this.#review(run, userMessage, failure) : [userMessage];
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
    const saved = writer.saveNow();
    if (!saved) return;
    await saved;
    if (control.aborted) throw new SessionError(`${failure}: it is ending`, "busy");
  }
}
