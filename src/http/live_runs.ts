/**
 * The runs that this process executes, from their launch, which is step 6 of the request path, to their end.
 *
 * @module
 */
import type { AbortOptions } from "../core/control.ts";
import type { ErrorPlace, OnError } from "../core/events.ts";
import { hashOf } from "../core/lib/json.ts";
import { SharedWork } from "../core/lib/locks.ts";
import { traceIdOf } from "../core/lib/traceparent.ts";
import { type Stop, stops } from "../core/position.ts";
import { journalKey, placeOf, runIdOf } from "../core/journal.ts";
import { type Mail, type Session, SessionError, type SessionHead } from "../core/session.ts";
import { deleteSession, unlessUnreadable } from "../core/sessions.ts";
import { historyIn, type OpenedSession, openHead, openSession, readStored } from "../core/session_version.ts";
import { nullSink, type ReadyRun, type Started } from "../core/start.ts";
import { maxWaiting, type SendOptions } from "../core/steering.ts";
import {
  type HistoryOptions,
  type HistoryPage,
  type RunStore,
  StoreDeadlineError,
  withRetries,
} from "../core/store.ts";
import { type CurrentLoad, TranscriptSize } from "./capacity.ts";
import { checkClientTools, reviewClientParts } from "./client_parts.ts";
import { type EndReport, type EndReports, endReports } from "./end_reports.ts";
import { isRefusal, reportError, shuttingDown } from "./error_response.ts";
import type { RunCause } from "./facts.ts";
import { causeOf, endOf } from "./load.ts";
import type { ServedAgent, ServerOptions } from "./options.ts";
import type { EventOutput } from "./respond.ts";
import type { Usage, UserMessage } from "../protocol/message.ts";
import type { RecoveringServer } from "../session/durable/recovery.ts";
import { sweepTimer } from "../session/expiry.ts";
import { ownedKey } from "../session/owned_key.ts";
import { Records } from "../session/record/records.ts";
import type {
  LaunchInput,
  LiveRun,
  Owned,
  RecoveredRun,
  Requester,
  RunAddress,
  RunHost,
} from "../session/record/run_host.ts";
import { isRunning, leaseEnd, runOf } from "../session/record/run_state.ts";

/** The most journals that are swept after a run, once a minute. */
const sweptAfterRun = 100;

/** Milliseconds after which the same mail counts as another one, although the first post has failed. */
const repeatedWithin = 60_000;

/** The most milliseconds for which the deletion of a session waits for the end of its run. */
const longestStop = 5_000;

/** The runs that this process executes, and the records of all runs. */
export class LiveRuns implements RunHost, RecoveringServer {
  readonly agent: ServedAgent<never>;
  readonly onError: OnError;
  readonly observe: ServerOptions["observe"];
  readonly lease: number;
  readonly singleProcess: boolean;
  readonly signal: AbortSignal | undefined;
  readonly recoveryVars: ((run: RecoveredRun) => unknown) | undefined;
  /** The records of runs, unless each client keeps its own session. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: EndReports | undefined;
  readonly #sessions: RunStore | undefined;
  readonly #limits: ServerOptions["limits"];
  readonly #detailed: boolean;
  readonly #grace: number;
  readonly #keepTime: number;
  readonly #isSweepDue = sweepTimer();
  /** The mail whose post has failed, by a hash of its content. It may be stored all the same: a repeated request sends it under the same id, so that it counts once. */
  readonly #failedPosts = new Map<string, { readonly id: string; readonly at: number }>();
  /** The runs, by owner and id. Those that live no more stay until their id is looked up, or until a run is launched after them. */
  readonly #live = new Map<string, SharedRun>();
  /** The launches whose run is not known yet, the earliest first. */
  readonly #launches = new Set<Launch>();
  /** The work that begins or follows runs, such as the reports of their ends. */
  readonly #tracked = new Set<SharedWork>();

  /** Keeps the runs of `agent`. When the server shuts down, they are handed over. */
  constructor(agent: ServedAgent<never>, options: ServerOptions) {
    this.agent = agent;
    this.onError = options.onError;
    this.observe = options.observe;
    this.lease = options.lease;
    this.singleProcess = options.singleProcess;
    this.signal = options.signal;
    this.recoveryVars = options.recoveryVars;
    this.#sessions = options.sessions;
    this.#limits = options.limits;
    this.#detailed = options.page !== undefined;
    this.#grace = options.grace;
    this.#keepTime = options.keep;
    this.records = options.sessions && new Records(options.sessions.journal, this);
    this.reports = endReports(options, this);
    this.#isSweepDue(); // the first minute begins
    options.signal?.addEventListener("abort", () => {
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

  async post({ run, session }: Required<RunAddress>, mail: Mail, requester: Owned): Promise<boolean | undefined> {
    const opened = await this.#openHead(session, requester);
    const sessions = this.#sessions;
    if (!opened || !sessions || !isRunning(opened.session, run)) return undefined;
    const key = journalKey(requester.owner, session);
    const content = await hashOf(JSON.stringify([key, opened.head.run, mail]));
    const failed = this.#failedPosts.get(content);
    const isRepeated = failed !== undefined && Date.now() <= failed.at + repeatedWithin;
    const { id, at } = isRepeated ? failed : { id: crypto.randomUUID(), at: Date.now() };
    const entry = { type: "mail", id, mail } as const;
    const limit = mail.type === "message" && { most: maxWaiting };
    try {
      const post = { run: opened.head.run, entry, ...limit };
      const { status } = await withRetries(() => sessions.journal.post(key, post));
      this.#failedPosts.delete(content);
      return status === "over" ? undefined : status === "posted";
    } catch (error) {
      for (const [old, { at }] of this.#failedPosts) {
        if (Date.now() > at + repeatedWithin) this.#failedPosts.delete(old);
      }
      this.#failedPosts.set(content, { id, at });
      throw error;
    }
  }

  /** Deletes a session and what belongs to it. A run in progress is stopped before. If it does not end in time, it can store nothing more. */
  async delete(id: string, requester: Owned): Promise<void> {
    const sessions = this.#sessions;
    if (!sessions) return;
    const opened = await this.#openHead(id, requester).catch(unlessUnreadable);
    if (opened) await this.#stopForDelete(opened, requester);
    await deleteSession(sessions, { id, owner: requester.owner });
  }

  /** Deletes what is not kept any more, of at most `limit` journals. Returns the number of those of which it has deleted something. */
  async sweep(limit: number): Promise<number> {
    return await this.#sessions?.journal.sweep(limit, this.#keepTime) ?? 0;
  }

  /** Stops the run of a session if its process lives, also in another process, and waits for its end. */
  async #stopForDelete({ head, session }: OpenedSession<SessionHead>, requester: Owned): Promise<void> {
    const run = runOf(session);
    if (run === undefined || !isRunning(session)) return;
    if (!await this.get(run, requester)?.abort(stops.stop)) {
      if (this.isDead(run, requester) || Date.now() >= leaseEnd(session)) return;
      const mail = { type: "stop", reason: stops.stop.reason } as const;
      const entry = { type: "mail", id: crypto.randomUUID(), mail } as const;
      await this.#sessions?.journal.post(journalKey(requester.owner, session.id), { run: head.run, entry });
    }
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), longestStop);
    await this.records?.untilOver(run, requester, late.signal).finally(() => clearTimeout(timer));
  }

  /** Reads a session without its messages. */
  async #openHead(id: string, { owner }: Owned): Promise<OpenedSession<SessionHead> | undefined> {
    const sessions = this.#sessions;
    return sessions && await readStored(sessions, { id, owner }, openHead);
  }

  // The runs, and the work beside them.

  /** The number of runs that this process executes, also of those that begin. */
  get size(): number {
    let size = 0;
    for (const { lives } of this.#live.values()) if (lives) size++;
    for (const { work } of this.#launches) if (work.lives) size++;
    return size;
  }

  /** The number of events that wait until they are stored. */
  get waiting(): number {
    let waiting = 0;
    for (const run of this.#live.values()) if (run.lives) waiting += run.waiting;
    return waiting;
  }

  /** Returns the load by runs that have begun and live. */
  currentLoad(): Omit<CurrentLoad, "streams"> {
    const living = [...this.#live.values()].filter(({ lives }) => lives);
    return { runs: living.length, bytes: () => living.reduce((sum, { bytes }) => sum + bytes, 0) };
  }

  get(run: string, { owner }: Owned): LiveRun | undefined {
    const key = ownedKey(owner, run);
    const live = this.#live.get(key);
    if (live?.lives) return live;
    this.#live.delete(key);
    return undefined;
  }

  executes(run: string, requester: Owned): boolean {
    return this.get(run, requester) !== undefined || this.#isLaunching(placeOf(run)?.key);
  }

  isDead(run: string, requester: Owned): boolean {
    return this.singleProcess && !this.executes(run, requester);
  }

  /** Whether a launch, before another one, may have claimed the session of a journal already. */
  #isLaunching(key: string | undefined, before?: Launch): boolean {
    for (const launch of this.#launches) {
      if (launch === before) return false;
      if (launch.key === key && launch.work.lives) return true;
    }
    return false;
  }

  report(error: unknown, place?: ErrorPlace): void {
    reportError(this.onError, error, place);
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
    const { session, answers, pausedAt } = input;
    const over = Promise.withResolvers<void>();
    requester.outlive(over.promise); // also while it begins: the client may leave
    const launch = { key: journalKey(requester.owner, session), work: new SharedWork(this.lease) };
    let report: EndReport | undefined;
    let run: SharedRun | undefined;
    try {
      // 1. Remember that its end has to be reported.
      const id = input.run ?? (this.reports && await this.nextRun(session, requester));
      report = id !== undefined ? await this.reports?.expect(recoveredRun(id, session, requester)) : undefined;
      this.#expectFree(input, requester);

      // 2. Connect its events: a resume token is added, and the report notes the last one.
      const watched = report?.watch(out) ?? out;
      const sink = input.tokenSession?.to(watched) ?? watched;

      // 3. Start it, and wait until it has its session.
      this.#launches.add(launch);
      const started = this.agent.start(this.#startOptions(input, requester, launch), sink);
      const ready = await started.ready;

      // 4. Keep it for other requests, until it is over.
      run = new SharedRun(ready.run, started, this.lease);
      this.#keep(ownedKey(requester.owner, ready.run), run);
      this.#launches.delete(launch);
      if (this.signal?.aborted) run.handOver(this.#grace); // it has begun since
      this.#tidyLater(started, requester);

      // 5. Deliver the report when it is over.
      const recovered = recoveredRun(ready.run, session, requester);
      this.#observeRun({ ...recovered, cause: causeOf(input) }, started, ready);
      if (report && ready.run !== id) report = await this.#moved(report, recovered);
      if (report) this.track(this.#deliver(report, recovered, run.over), requester);
      return run;
    } catch (error) {
      const isItself = error instanceof SessionError && error.run !== undefined && error.run === input.run; // another process has begun it
      const isGone = answers === undefined && isRefusal(error) && !isItself;
      const place = { run: input.run, session, owner: requester.owner, trace: traceIdOf(input.traceparent) };
      const left = report?.abandon({ isGone, pausedAt }).catch((failure) => this.report(failure, place));
      if (!(error instanceof StoreDeadlineError)) await left;
      else if (left) this.track(left, requester); // the client has waited for the store already
      const undone = this.#sessions?.withdrawals?.undone(launch.key);
      if (undone) requester.outlive(undone);
      out.close();
      throw error;
    } finally {
      this.#launches.delete(launch);
      launch.work.end();
      over.resolve(run?.over);
    }
  }

  /** Returns the report of the run that has begun in place of the expected one. If the store fails, this process delivers it all the same. */
  async #moved(report: EndReport, recovered: RecoveredRun): Promise<EndReport> {
    return await report.move(recovered).catch((error) => {
      this.report(error, recovered);
      return report;
    });
  }

  /** Observes the start and the end of a run. */
  #observeRun(
    run: RecoveredRun & { readonly cause: RunCause },
    { result }: Started,
    { run: _, after: __, usage, ...ready }: ReadyRun,
  ): void {
    const { observe } = this;
    if (!observe) return;
    const isDurable = this.#sessions?.durable !== undefined;
    const began = Date.now();
    observe({ type: "run.started", ...run, ...ready });
    result.then((result) =>
      observe({ type: "run.ended", ...run, milliseconds: Date.now() - began, ...endOf(result, usage, isDurable) })
    );
  }

  /** Has the events of a run packed once it has ended, which needs less room, and deletes a few of those that are not kept any more. */
  #tidyLater({ result, session }: Started, requester: Requester): void {
    const { journal } = this.#sessions ?? {};
    const isSweepDue = journal && this.#isSweepDue();
    if (!journal?.pack && !isSweepDue) return;
    const place = { session, owner: requester.owner }; // a closure must not keep the request as long as the run
    const tidied = result.then(async ({ run, status }) => {
      const { key, run: number } = placeOf(run) ?? {};
      if (key !== undefined && number !== undefined && status !== "paused") await journal?.pack?.(key, number);
      if (isSweepDue) await this.sweep(sweptAfterRun);
    });
    this.track(tidied.catch((error) => this.report(error, place)), requester);
  }

  /** Returns the id of the next run of a session. */
  async nextRun(session: string, { owner }: Owned): Promise<string | undefined> {
    const key = journalKey(owner, session);
    const head = await this.#sessions?.journal.head(key);
    return runIdOf({ key, run: (head?.run ?? 0) + 1 });
  }

  /** Ends the run that keeps a session busy, if its process has died. Returns false for any other error. */
  async releasesLost(error: unknown, session: string, requester: Requester): Promise<boolean> {
    const isBusy = error instanceof SessionError && error.code === "busy" && error.run !== undefined;
    const stored = isBusy ? await this.head(session, requester) : undefined;
    return stored !== undefined && await this.records?.releaseIfLost(stored, requester) === true;
  }

  /** Throws if the server shuts down, or if this process executes the run already. */
  #expectFree({ run, session, stop }: LaunchInput, requester: Requester): void {
    if (this.signal?.aborted && stop !== stops.stop) throw shuttingDown(); // a run that was stopped ends here
    if (run !== undefined && this.get(run, requester)) {
      throw new SessionError(`Cannot run session "${session}": another run has it`, "busy", run);
    }
  }

  /** Returns the options with which the agent starts a run. They stay as long as the run, so they must not keep its request. */
  #startOptions({ tokenSession, ...input }: LaunchInput, { owner, vars }: Requester, launch: Launch) {
    const { run: id } = input;
    const { singleProcess, lease, onError, observe } = this;
    const lost = (run: string, until = Infinity) => {
      const isItself = run === id;
      if (!isItself && (this.get(run, { owner }) || this.#isLaunching(launch.key, launch))) return false;
      return singleProcess || Date.now() >= until;
    };
    const { session } = input;
    const onUsage = observe &&
      ((run: string, model: string, usage: Usage) =>
        observe({ type: "model.used", ...recoveredRun(run, session, { owner }), model, usage }));
    const store = tokenSession?.store ?? this.#sessions;
    const hasParts = input.tools?.length || input.answerFormat;
    return {
      store,
      limits: this.#limits,
      detailed: this.#detailed,
      lease,
      lost,
      onError,
      owner,
      vars,
      records: this.records && { keep: this.#keepTime },
      onUsage,
      ...(hasParts && { check: checkClientTools, review: reviewClientParts }),
      ...input,
    };
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
  async #deliver(report: EndReport, { run, session, owner }: RecoveredRun, over: Promise<void>): Promise<void> {
    await over;
    await report.deliver(async () => isRunning(await this.head(session, { owner }), run));
  }
}

/** Returns the address of a run for the time after its request. */
function recoveredRun(run: string, session: string, { owner }: Owned): RecoveredRun {
  return { run, session, ...(owner !== undefined && { owner }) };
}

/** A launch, and the key of the journal of its session. A launch that the platform has ended lives no more. */
interface Launch {
  readonly key: string;
  readonly work: SharedWork;
}

/** A run, for all requests. A class, because a server keeps one for each stream. It keeps no request. */
class SharedRun implements LiveRun {
  readonly id: string;
  /** Resolves when the run is over. Never rejects. */
  readonly over: Promise<void>;
  readonly #started: Started;
  readonly #work: SharedWork;
  readonly #size = new TranscriptSize();

  constructor(id: string, started: Started, lease: number) {
    this.id = id;
    this.#started = started;
    this.#work = new SharedWork(lease);
    this.over = started.result.then(() => {}); // it never rejects
  }

  get session(): string {
    return this.#started.session;
  }
  get lives(): boolean {
    return this.#work.lives;
  }
  /** The number of its events that wait until they are stored. */
  get waiting(): number {
    return this.#started.waiting;
  }
  /** The estimated bytes that it holds. */
  get bytes(): number {
    return this.#size.bytesOf(this.#started.messages);
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
    return this.#work.dispatch(() => ready.then(({ after }) => after, () => undefined));
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
