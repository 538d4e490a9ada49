/**
 * Step 4 of the request path: launches a run that writes its events to the response. The file also has the runs of this process, and their recovery.
 *
 * @module
 */
import { type Claimed, pauseOf } from "../core/claim.ts";
import type { StopOptions } from "../core/control.ts";
import type { AnswerFormat } from "../core/definition.ts";
import { SharedWork } from "../core/lib/locks.ts";
import { outputFormat } from "../core/output.ts";
import type { RunSnapshot } from "../core/position.ts";
import { Refusal, reviewJson } from "../core/review.ts";
import type { EngineRun } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { SessionError, type SessionHead } from "../core/session.ts";
import { changeHead, historyIn, type Opened, openHead, openSession } from "../core/session_version.ts";
import { type Beginning, nullSink, type Started } from "../core/start.ts";
import type { SendOptions } from "../core/steering.ts";
import { outage, type Recover } from "../core/store.ts";
import { type AnyTool, schemaOf, toolNamePattern } from "../core/tool.ts";
import { type EndReport, type EndReports, endReports } from "./end_reports.ts";
import { isRefusal, reportError, RequestError, shuttingDown } from "./error_response.ts";
import { type ClientGone, expectClientGone, type ServedAgent, type ServerOptions } from "./options.ts";
import type { RequestScope } from "./request.ts";
import { accepted, type EventOutput, type Launched, prefersAsync, type ResponseFormat } from "./respond.ts";
import type { UserMessage } from "../protocol/message.ts";
import { isObject, type UnknownObject } from "../protocol/shape.ts";
import type { recoveryOf } from "../session/durable/recovery.ts";
import { ownedKey, ownedSessions } from "../session/owned_store.ts";
import type { Recorder } from "../session/record/recorder.ts";
import type { Records } from "../session/record/records.ts";
import type { recordsOf } from "../session/record/records_of.ts";
import type { LaunchInput, LiveRun, Owned, Requester, RunHost } from "../session/record/run_host.ts";
import { isRunning } from "../session/record/run_state.ts";

// The parts of a run that its client gives beside messages: the tools that it runs, and the format of the answer.

/** Throws if a client cannot have its tools. */
function checkClientTools(
  { definition, session, options: { tools = [] } }: Beginning,
  claimed: Claimed,
): void {
  const wrong = wrongName(definition, tools, claimed);
  if (wrong) throw new SessionError(`Cannot add a tool to session "${session}": ${wrong}`, "invalid");
}

/** Reviews the tools and the format of a client, as the `review` of a run. */
async function reviewClientParts(run: EngineRun, scope: Scope): Promise<void> {
  const { definition, tools, answerFormat: format, claimed } = run;
  if (!definition.reviewsInput) return;
  const reviews = await Promise.allSettled(tools.map((tool) => reviewTool(run, scope, tool)));
  const accepted = reviews.map((review) => {
    if (review.status === "rejected") throw review.reason;
    return review.value;
  });
  const wrong = wrongName(definition, accepted, claimed);
  if (wrong) throw new Refusal(`a hook changed the name of a tool: ${wrong}`);
  run.receive(accepted, format && format !== definition.format ? await reviewFormat(run, scope, format) : format);
}

/** Reviews a tool. Returns the tool as hooks have changed it. */
async function reviewTool(run: EngineRun, scope: Scope, tool: AnyTool): Promise<AnyTool> {
  const { definition, "~client": create } = tool;
  if (!create) return tool;
  const accepted = await reviewJson(run, scope, "client_tool", definition);
  if (accepted === definition) return tool;
  const { name, description, schema }: UnknownObject = Object(accepted);
  const isTool = typeof name === "string" && toolNamePattern.test(name) && typeof description === "string";
  if (isTool && isObject(schema)) return create({ name, description, schema });
  throw new Refusal(`a hook changed the tool "${tool.name}" to no tool`);
}

/** Reviews a format. Returns the format as hooks have changed it. */
async function reviewFormat(run: EngineRun, scope: Scope, format: AnswerFormat): Promise<AnswerFormat> {
  const accepted = await reviewJson(run, scope, "format", format.schema);
  if (accepted === format.schema) return format;
  if (isObject(accepted)) return outputFormat(schemaOf(accepted));
  throw new Refusal("a hook changed the format of the answer to no JSON Schema");
}

/** Returns why a tool cannot have its name: the agent has a tool of this name, or a middleware may add one, which it would replace. */
function wrongName(
  { tools: own, use }: EngineRun["definition"],
  tools: readonly AnyTool[],
  claimed: Claimed,
): string | undefined {
  const asked = pauseOf(claimed)?.exit.questions ?? [];
  for (const { name } of tools) {
    const isOwn = own.some((tool) => tool.name === name);
    const prefix = use.flatMap(({ toolPrefixes = [] }) => toolPrefixes).find((each) => name.startsWith(each));
    const isAsked = asked.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if (isAsked || (!isOwn && prefix === undefined)) continue;
    return isOwn
      ? `the agent has a tool "${name}"; expected another name`
      : `a middleware adds tools with the prefix "${prefix}"; expected a name without it, got "${name}"`;
  }
  return undefined;
}

// The recovery of a server's runs, and the end of its work.

/** Returns the `recover()` and the `settled()` of a server. The store brings the code for the first. */
export function recovery(
  runs: LiveRuns,
  { store, singleProcess, signal, vars, recoveryVars, onError }: ServerOptions,
): { readonly recover: Recover; readonly settled: () => Promise<void> } {
  const report = (error: unknown, run?: string) => void reportError(onError, error, run);
  // its type is `recoveryOf` of the same package
  const open = store?.recovery as typeof recoveryOf | undefined;
  const recoverRuns = store && open?.(store, { ...runs, singleProcess, recoveryVars, report });
  return {
    async recover(given) {
      const limit = given?.limit;
      if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1)) {
        throw new RangeError(`Cannot recover runs: \`limit\` is ${limit}; expected a whole number of at least 1`);
      }
      if (vars && !recoveryVars) {
        throw new TypeError("Cannot recover runs: their vars are made from requests; expected the option recoveryVars");
      }
      if (!recoverRuns || signal?.aborted) return { runs: [], over: Promise.resolve() };
      const recovered = recoverRuns(given);
      runs.track(recovered.then(() => {}, () => {})); // the caller receives the failure
      return await recovered;
    },
    settled: runs.settled,
  };
}

// The runs that this process executes.

/** The runs that this process executes, and the records of all runs. */
export interface LiveRuns extends RunHost {
  /** Begins or resumes a run that writes its events to `out`. */
  launch(input: LaunchInput, requester: Requester, out?: EventOutput): Promise<LiveRun>;
  /** Resolves when each run has ended or paused, and was reported, or was handed over to another process. */
  settled(): Promise<void>;
  /** Lets `settled()` wait for work that begins or follows runs, and the platform, if there is a requester. `work` never rejects. */
  track(work: Promise<void>, requester?: Requester): void;
  /** The records of runs, if the server has a log. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: EndReports | undefined;
}

/** Keeps the runs of an agent. */
export function liveRuns(
  agent: ServedAgent<never>,
  options: ServerOptions,
): LiveRuns {
  const { sessions, log, limits, lease, grace, singleProcess, signal, onError } = options;
  /** The runs, by owner and id. Those that live no more stay until their id is looked up, or until a run is launched after them. */
  const live = new Map<string, SharedRun>();
  /** The time at which a shutdown waits no longer, in milliseconds since 1970. */
  let leavesAt = Infinity;
  signal?.addEventListener("abort", () => {
    leavesAt = Date.now() + grace;
    for (const run of live.values()) run.handOver(grace);
  });

  /** Returns a run that lives. */
  function find(key: string): SharedRun | undefined {
    const run = live.get(key);
    if (run?.lives) return run;
    live.delete(key);
    return undefined;
  }

  /** Returns the store as the requester sees it. */
  const storeOf = ({ owner }: Owned) => owner === undefined || !sessions ? sessions : ownedSessions(sessions, owner);

  /** The work that begins or follows runs, such as the reports of their ends. */
  const tracked = new Set<SharedWork>();

  function track(work: Promise<void>, requester?: Requester): void {
    const shared = new SharedWork(lease);
    tracked.add(shared);
    const done = work.then(() => {
      shared.end();
      tracked.delete(shared);
    });
    requester?.outlive(done);
  }

  async function untilTracked(): Promise<void> {
    for (const work of tracked) {
      await work.untilOver();
      tracked.delete(work);
    }
  }

  async function settled(): Promise<void> {
    await untilTracked(); // a recovery begins runs
    await Promise.all(Array.from(live.values(), (run) => run.untilOver()));
    await untilTracked(); // a stop may begin a run, whose end is reported
  }

  /** Reads a session without its messages. */
  async function openedHead(id: string, requester: Owned): Promise<Opened<SessionHead> | undefined> {
    const store = storeOf(requester);
    return store && await openHead(store, id);
  }

  const host: RunHost = {
    agent,
    onError,
    hasStore: sessions !== undefined,
    lease,
    patience: () => Date.now() < leavesAt ? outage : 0,
    signal,
    async load(id, requester) {
      const store = storeOf(requester);
      return store && (await openSession(store, id)).session;
    },
    head: async (id, requester) => (await openedHead(id, requester))?.session,
    async history(id, requester, options) {
      const store = await openedHead(id, requester) && storeOf(requester);
      return store && await historyIn(store, id, options);
    },
    async changeHead(id, requester, change) {
      const opened = await openedHead(id, requester);
      const changed = opened?.session && change(opened.session);
      const store = storeOf(requester);
      return opened && changed && store && await changeHead(store, id, opened.version, changed);
    },
    get: (run, { owner }) => find(ownedKey(owner, run)),
    isDead: (run, { owner }) => singleProcess && !find(ownedKey(owner, run)),
    launch,
  };
  // a log brings the code that a server needs for it; its type is `recordsOf` of the same package
  const records = log && (log.records as typeof recordsOf)(log, host);

  const reports = endReports(options, host);

  /** Returns the options with which the agent starts a run. They stay as long as the run, so they must not keep its request. */
  function startOptionsOf({ held, taken, ...input }: LaunchInput, { owner, vars }: Requester) {
    const { run: own } = input;
    /** With a log, the records end a lost run before another one begins: otherwise its end would not be logged. */
    const lost = (run: string, until = Infinity) => {
      const isOwn = run === own;
      if (!isOwn && host.get(run, { owner })) return false;
      if (singleProcess && (isOwn || host.isDead(run, { owner }))) return true;
      return (isOwn && until === taken) || ((isOwn || !records) && Date.now() >= until);
    };
    const reconcile = records && ((run: RunSnapshot) => records.reconcile(run, { owner }));
    const store = held?.store ?? storeOf({ owner });
    const review = (input.tools?.length || input.answerFormat) && { review: reviewClientParts };
    return {
      store,
      limits,
      lease,
      lost,
      onError,
      owner,
      vars,
      reconcile,
      check: checkClientTools,
      ...review,
      ...input,
    };
  }

  /** Resolves when a run is over and its events are logged. It keeps no more of the launch than it needs, since it stays as long as the run. */
  async function untilLogged({ result }: Started, record: Recorder | undefined): Promise<void> {
    await result; // neither rejects
    await record?.over;
  }

  /** Keeps a run until it is over. */
  function keep(key: string, run: SharedRun, over: Promise<void>): void {
    for (const [old, { lives }] of live) { // the platform has ended the oldest ones first
      if (lives) break;
      live.delete(old);
    }
    live.set(key, run);
    over.then(() => {
      run.end();
      if (live.get(key) === run) live.delete(key);
    });
  }

  /** Begins or resumes a run, and remembers that its end has to be reported. */
  async function beginReported(input: LaunchInput, requester: Requester, out?: EventOutput) {
    const { owner } = requester;
    const { run, session, answers, pausedAt } = input;
    const report = reports && await reports.expect({ run, session, ...(owner !== undefined && { owner }) });
    try {
      return await begin(input, requester, report, out);
    } catch (error) {
      const isItself = error instanceof SessionError && error.run === run; // another process has begun it
      await report?.abandon({ isGone: answers === undefined && isRefusal(error) && !isItself, pausedAt });
      throw error;
    }
  }

  async function begin(input: LaunchInput, requester: Requester, report: EndReport | undefined, out?: EventOutput) {
    const { owner } = requester;
    const { run: id, session, held } = input;
    if (signal?.aborted && input.closing !== "stop") throw shuttingDown(); // a run that was stopped ends here
    const key = ownedKey(owner, id);
    if (find(key)) {
      throw new SessionError(`Cannot run session "${session}": another run has it`, "busy", id);
    }
    const isNew = input.prompt !== undefined || input.messages !== undefined;
    let isBegun = false;
    let lostTo: "process" | "log" | undefined;
    /** Returns true if another process continues the run, or will. */
    const continues = async () => lostTo === "process" || isRunning(await host.head(session, { owner }), id);
    const record = records?.recorder(id, requester, out, (error) => {
      lostTo = error === undefined ? "process" : "log";
      if (lostTo === "process") return started.stop("lost", { leave: true });
      started.stop("unrecorded", { rollback: isNew && !isBegun, undo: !isBegun }); // its client may send the request again
      reportError(onError, error, id);
    });
    const given = record ?? out ?? nullSink;
    const sink = report?.watch(given) ?? given;
    const started = agent.start(startOptionsOf(input, requester), held?.to(sink) ?? sink);
    const begun = started.opened.then(async ({ after }) => {
      await record?.begin(after);
      return after;
    });
    const over = untilLogged(started, record);
    const run = new SharedRun(started, begun, lease);
    keep(key, run, over);
    try {
      await begun;
      isBegun = true;
      if (report) track(over.then(() => report.deliver(continues, lostTo !== "log")), requester);
      return { run, over };
    } catch (error) {
      await over;
      throw error;
    }
  }

  async function launch(input: LaunchInput, requester: Requester, out?: EventOutput): Promise<LiveRun> {
    const begun = beginReported(input, requester, out);
    requester.outlive(begun.then(({ over }) => over, () => {})); // also while it begins: the client may leave
    return (await begun).run;
  }

  return { ...host, launch, settled, track, records, reports };
}

/** A run, for all requests. A class, because a server keeps one for each stream. */
class SharedRun implements LiveRun {
  readonly #started: Started;
  readonly #begun: Promise<number>;
  readonly #work: SharedWork;

  /** `begun` resolves to the number of the event before the first one. */
  constructor(started: Started, begun: Promise<number>, lease: number) {
    this.#started = started;
    this.#begun = begun;
    this.#work = new SharedWork(lease);
  }

  get session(): string {
    return this.#started.session;
  }
  get lives(): boolean {
    return this.#work.lives;
  }

  stop(reason?: string, options?: StopOptions): Promise<true | undefined> {
    return this.#dispatch((run) => run.stop(reason, options));
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

  untilBegun(): Promise<number | undefined> {
    return this.#work.dispatch(() => this.#begun.catch(() => undefined));
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

// The launch of a run, in the response or in the background.

const onCancel: { readonly [key in ClientGone]: (run: LiveRun) => unknown } = {
  stop: (run) => run.stop("client-gone"),
  drain: (run) => run.drain("client-gone"),
  detach: () => {},
};

/** Launches a run for a client. Its response is in `format`. A client that prefers not to wait receives the address of the run instead. */
export async function launch(scope: RequestScope, input: LaunchInput, format: ResponseFormat): Promise<Launched> {
  const { c, server: { runs, options: { heartbeat, onClientGone } }, client } = scope;
  if (prefersAsync(c, format)) return await launchInBackground(scope, input);
  const onGone = typeof onClientGone === "function" ? expectClientGone(await onClientGone(c)) : onClientGone;
  const { out, respond } = format(c, { heartbeat, onCancel: () => onCancel[onGone](run) }); // no client can leave before `respond`, which follows the launch
  const run = await runs.launch(input, client, out).catch((error) => {
    out.close();
    throw error;
  });
  client.onLeave(() => onCancel[onGone](run));
  return { run, respond };
}

/** Launches a run whose client does not wait for it. */
async function launchInBackground(
  { c, server: { runs }, client }: RequestScope,
  input: LaunchInput,
): Promise<Launched> {
  if (!runs.hasStore && !runs.records) {
    const expected = "the server keeps neither sessions nor events; expected a `log`";
    throw new RequestError(400, "invalid", `Cannot run in the background: ${expected}`, "prefer");
  }
  const run = await runs.launch(input, client);
  return { run, respond: () => accepted(c, input, runs.records !== undefined) };
}
