/**
 * The runs that this process executes, from their launch, which is step 6 of the request path, to their end.
 *
 * @module
 */
import type { AbortOptions } from "../core/control.ts";
import { SharedWork } from "../core/lib/locks.ts";
import { type RunSnapshot, type Stop, stops } from "../core/position.ts";
import { journalKey } from "../core/journal.ts";
import { type Mail, type Session, SessionError, type SessionHead } from "../core/session.ts";
import {
  changeHead,
  historyIn,
  type OpenedSession,
  openHead,
  openSession,
  readStored,
} from "../core/session_version.ts";
import { nullSink, type Started } from "../core/start.ts";
import { maxWaiting, type SendOptions } from "../core/steering.ts";
import { type HistoryOptions, type HistoryPage, outage, type RunStore, withRetries } from "../core/store.ts";
import { checkClientTools, reviewClientParts } from "./client_parts.ts";
import { type EndReport, type EndReports, endReports } from "./end_reports.ts";
import { isRefusal, type OnFailure, reportError, shuttingDown } from "./error_response.ts";
import type { ServedAgent, ServerOptions } from "./options.ts";
import type { EventOutput } from "./respond.ts";
import type { UserMessage } from "../protocol/message.ts";
import type { RecoveringServer } from "../session/durable/recovery.ts";
import { ownedKey } from "../session/owned_key.ts";
import type { Loss, Recorder } from "../session/record/recorder.ts";
import { RecordError, type Records } from "../session/record/records.ts";
import type { recordsOf } from "../session/record/records_of.ts";
import type {
  LaunchInput,
  LiveRun,
  Owned,
  RecoveredRun,
  Requester,
  RunAddress,
  RunHost,
} from "../session/record/run_host.ts";
import { isRunning } from "../session/record/run_state.ts";

/** The runs that this process executes, and the records of all runs. */
export class LiveRuns implements RunHost, RecoveringServer {
  readonly agent: ServedAgent<never>;
  readonly onError: OnFailure;
  readonly hasStore: boolean;
  readonly lease: number;
  readonly singleProcess: boolean;
  readonly signal: AbortSignal | undefined;
  readonly recoveryVars: ((run: RecoveredRun) => unknown) | undefined;
  /** The records of runs, if the server has a log. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: EndReports | undefined;
  readonly #sessions: RunStore | undefined;
  readonly #limits: ServerOptions["limits"];
  /** The runs, by owner and id. Those that live no more stay until their id is looked up, or until a run is launched after them. */
  readonly #live = new Map<string, SharedRun>();
  /** The work that begins or follows runs, such as the reports of their ends. */
  readonly #tracked = new Set<SharedWork>();
  /** The time at which a shutdown waits no longer, in milliseconds since 1970. */
  #leavesAt = Infinity;
  readonly patience = (): number => Date.now() < this.#leavesAt ? outage : 0;

  /** Keeps the runs of `agent`. When the server shuts down, they are handed over. */
  constructor(agent: ServedAgent<never>, options: ServerOptions) {
    this.agent = agent;
    this.onError = options.onError;
    this.hasStore = options.sessions !== undefined;
    this.lease = options.lease;
    this.singleProcess = options.singleProcess;
    this.signal = options.signal;
    this.recoveryVars = options.recoveryVars;
    this.#sessions = options.sessions;
    this.#limits = options.limits;
    // a log brings the code that a server needs for it; its type is `recordsOf` of the same package
    this.records = options.log && (options.log.records as typeof recordsOf)(options.log, this);
    this.reports = endReports(options, this);
    options.signal?.addEventListener("abort", () => {
      this.#leavesAt = Date.now() + options.grace;
      for (const run of this.#live.values()) run.handOver(options.grace);
    });
  }

  // The sessions, as a requester sees them.

  async load(id: string, { owner }: Owned): Promise<Session | undefined> {
    const sessions = this.#sessions;
    return sessions && (await readStored(sessions, { id, owner }, openSession))?.session;
  }

  async head(id: string, requester: Owned): Promise<SessionHead | undefined> {
    return (await this.#openHead(id, requester))?.session;
  }

  async history(id: string, { owner }: Owned, options: HistoryOptions): Promise<HistoryPage | undefined> {
    const sessions = this.#sessions;
    return sessions && await readStored(sessions, { id, owner }, (journal, key) => historyIn(journal, key, options));
  }

  async changeHead(
    id: string,
    requester: Owned,
    change: (head: SessionHead) => SessionHead | undefined,
  ): Promise<boolean | undefined> {
    const opened = await this.#openHead(id, requester);
    const changed = opened && change(opened.session);
    const sessions = this.#sessions;
    return changed && sessions &&
      await changeHead(sessions.journal, journalKey(requester.owner, id), opened, changed);
  }

  async post({ run, session }: Required<RunAddress>, mail: Mail, requester: Owned): Promise<boolean | undefined> {
    const opened = await this.#openHead(session, requester);
    const sessions = this.#sessions;
    if (!opened || !sessions || !isRunning(opened.session, run)) return undefined;
    const key = journalKey(requester.owner, session);
    const entry = { type: "mail", id: crypto.randomUUID(), mail } as const;
    const most = mail.type === "message" && { most: maxWaiting };
    const { status } = await withRetries(() => sessions.journal.post(key, { run: opened.head.run, entry, ...most }));
    return status === "over" ? undefined : status === "posted";
  }

  /** Reads a session without its messages. */
  async #openHead(id: string, { owner }: Owned): Promise<OpenedSession<SessionHead> | undefined> {
    const sessions = this.#sessions;
    return sessions && await readStored(sessions, { id, owner }, openHead);
  }

  // The runs, and the work beside them.

  get(run: string, { owner }: Owned): LiveRun | undefined {
    const key = ownedKey(owner, run);
    const live = this.#live.get(key);
    if (live?.lives) return live;
    this.#live.delete(key);
    return undefined;
  }

  isDead(run: string, requester: Owned): boolean {
    return this.singleProcess && !this.get(run, requester);
  }

  report(error: unknown, run?: string): void {
    reportError(this.onError, error, run);
  }

  /** Lets `settled()` wait for work that begins or follows runs, and the platform, if there is a requester. `work` never rejects. */
  track(work: Promise<void>, requester?: Requester): void {
    const shared = new SharedWork(this.lease);
    this.#tracked.add(shared);
    const done = work.then(() => {
      shared.end();
      this.#tracked.delete(shared);
    });
    requester?.outlive(done);
  }

  /** Resolves when each run has ended or paused, and was reported, or was handed over to another process. */
  async settled(): Promise<void> {
    await this.#untilTracked(); // a recovery begins runs
    await Promise.all(Array.from(this.#live.values(), (run) => run.untilOver()));
    await this.#untilTracked(); // a stop may begin a run, whose end is reported
  }

  async #untilTracked(): Promise<void> {
    for (const work of this.#tracked) {
      await work.untilOver();
      this.#tracked.delete(work);
    }
  }

  // The launch of a run.

  /** Launches a run, which writes its events to `out`. Resolves when the run is ready. Closes `out` if it cannot be. */
  async launch(input: LaunchInput, requester: Requester, out: EventOutput = nullSink): Promise<LiveRun> {
    const { run: id, answers, pausedAt } = input;
    const over = Promise.withResolvers<void>();
    requester.outlive(over.promise); // also while it begins: the client may leave
    let report: EndReport | undefined;
    let run: SharedRun | undefined;
    try {
      // 1. Remember that its end has to be reported.
      report = this.reports && await this.reports.expect(recoveredRun(input, requester));
      this.#expectFree(input, requester);

      // 2. Connect its events: a resume token is added, the report notes the last one, and the log has them before the client.
      const isNew = input.prompt !== undefined || input.messages !== undefined;
      const recorder = this.records?.recorder(id, requester, out, (loss) => this.#stopLost(id, started, loss, isNew));
      const output = recorder ?? out;
      const watched = report?.watch(output) ?? output;
      const sink = input.tokenSession?.to(watched) ?? watched;

      // 3. Start it.
      const started = this.agent.start(this.#startOptions(input, requester), sink);

      // 4. Keep it for other requests, until it is over.
      run = new SharedRun(started, recorder, this.lease);
      this.#keep(ownedKey(requester.owner, id), run);

      // 5. Wait until it is ready, and deliver the report when it is over.
      if (!await started.ready) throw unrecorded();
      if (report) this.track(this.#deliver(report, recoveredRun(input, requester), run.over, recorder), requester);
      return run;
    } catch (error) {
      await run?.over;
      const isItself = error instanceof SessionError && error.run === id; // another process has begun it
      await report?.abandon({ isGone: answers === undefined && isRefusal(error) && !isItself, pausedAt });
      out.close();
      throw error;
    } finally {
      over.resolve(run?.over);
    }
  }

  /** Throws if the server shuts down, or if this process executes the run already. */
  #expectFree({ run, session, stop }: LaunchInput, requester: Requester): void {
    if (this.signal?.aborted && stop !== stops.stop) throw shuttingDown(); // a run that was stopped ends here
    if (this.get(run, requester)) {
      throw new SessionError(`Cannot run session "${session}": another run has it`, "busy", run);
    }
  }

  /** Returns the options with which the agent starts a run. They stay as long as the run, so they must not keep its request. */
  #startOptions({ tokenSession, ...input }: LaunchInput, { owner, vars }: Requester) {
    const { run: id } = input;
    const { records, singleProcess, lease, onError } = this;
    /** With a log, the records end a lost run before another one begins: otherwise its end would not be logged. */
    const lost = (run: string, until = Infinity) => {
      const isItself = run === id;
      if (!isItself && this.get(run, { owner })) return false;
      if (singleProcess && (isItself || this.isDead(run, { owner }))) return true;
      return (isItself || !records) && Date.now() >= until;
    };
    const reconcile = records && ((run: RunSnapshot) => records.reconcile(run, { owner }));
    const store = tokenSession?.store ?? this.#sessions;
    const hasParts = input.tools?.length || input.answerFormat;
    return {
      store,
      limits: this.#limits,
      lease,
      lost,
      onError,
      owner,
      vars,
      reconcile,
      ...(hasParts && { check: checkClientTools, review: reviewClientParts }),
      ...input,
    };
  }

  /** Stops a run whose events are not logged any more. */
  #stopLost(id: string, started: Started, loss: Loss, isNew: boolean): void {
    if (loss.to === "process") return started.abort(stops.yielded);
    started.abort(stops.unrecorded, { rollback: isNew && !loss.isRecorded, undo: !loss.isRecorded }); // its client may send the request again
    this.report(loss.error, id);
  }

  /** Keeps a run until it is over. */
  #keep(key: string, run: SharedRun): void {
    for (const [old, { lives }] of this.#live) { // the platform has ended the oldest ones first
      if (lives) break;
      this.#live.delete(old);
    }
    this.#live.set(key, run);
    run.over.then(() => {
      run.end();
      if (this.#live.get(key) === run) this.#live.delete(key);
    });
  }

  /** Reports the end of a run, unless the run continues in another process. Never rejects. */
  async #deliver(
    report: EndReport,
    { run, session, owner }: RecoveredRun,
    over: Promise<void>,
    recorder: Recorder | undefined,
  ): Promise<void> {
    await over;
    const continues = async () => recorder?.lostTo === "process" || isRunning(await this.head(session, { owner }), run);
    await report.deliver(continues, recorder?.lostTo !== "log");
  }
}

function unrecorded(): RecordError {
  return new RecordError("Cannot run this: its events could not be logged", "unrecorded");
}

/** Returns the address of a run for the time after its request. */
function recoveredRun({ run, session }: LaunchInput, { owner }: Requester): RecoveredRun {
  return { run, session, ...(owner !== undefined && { owner }) };
}

/** A run, for all requests. A class, because a server keeps one for each stream. It keeps no request. */
class SharedRun implements LiveRun {
  /** Resolves when the run is over and its events are logged. Never rejects. */
  readonly over: Promise<void>;
  readonly #started: Started;
  readonly #work: SharedWork;

  constructor(started: Started, recorder: Recorder | undefined, lease: number) {
    this.#started = started;
    this.#work = new SharedWork(lease);
    this.over = untilLogged(started, recorder);
  }

  get session(): string {
    return this.#started.session;
  }
  get lives(): boolean {
    return this.#work.lives;
  }

  abort(stop: Stop, options?: AbortOptions): Promise<true | undefined> {
    return this.#dispatch((run) => run.abort(stop, options));
  }
  drain(reason: string): Promise<true | undefined> {
    return this.#dispatch((run) => run.drain(reason));
  }
  async send(message: UserMessage, options?: SendOptions): Promise<true | undefined> {
    let isTaken = false;
    const sent = await this.#dispatch((run) => {
      isTaken = true;
      return run.send(message, options);
    });
    if (!sent && isTaken) throw new SessionError("Cannot send the message: the run has ended meanwhile", "unknown"); // it may have saved it
    return sent;
  }
  finish(): Promise<true | undefined> {
    return this.#dispatch((run) => run.finish());
  }
  handOver(grace: number): void {
    this.#started.handOver(grace);
  }

  untilReady(): Promise<number | undefined> {
    const { ready } = this.#started;
    return this.#work.dispatch(() => ready.then((run) => run ? run.after : undefined, () => undefined));
  }
  untilOver(): Promise<void> {
    return this.#work.untilOver();
  }

  end(): void {
    this.#work.end();
  }

  #dispatch(job: (run: Started) => void | Promise<void>): Promise<true | undefined> {
    return this.#work.dispatch(async (): Promise<true> => {
      await job(this.#started);
      return true;
    });
  }
}

async function untilLogged({ result }: Started, recorder: Recorder | undefined): Promise<void> {
  await result; // neither rejects
  await recorder?.over;
}
