/**
 * The options of `serve()`, their defaults and their checks.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { callSafely, logError, type NumberedEvent, type OnError } from "../core/events.ts";
import { expectChoice, expectTime } from "../core/lib/options.ts";
import { defaultLimits, limited, type Limits } from "../core/limits.ts";
import { memoryJournal } from "../core/memory_journal.ts";
import type { Started } from "../core/start.ts";
import type { BoundedStore, RunStore, Store } from "../core/store.ts";
import { expectCapacity } from "./capacity.ts";
import { reportError } from "./error_response.ts";
import type { ServerFact } from "./facts.ts";
import type { Event } from "../protocol/event.ts";
import { expectNames } from "../protocol/shape.ts";
import type { RecoveredRun } from "../session/record/run_host.ts";
import type { ResumeTokens } from "../session/resume_token/mod.ts";
import type { Sink } from "../stream/channel.ts";
import type { Wire } from "../wire/wire.ts";

/**
 * The effect on a run if its client disconnects: `stop` stops it, `drain` lets it finish its turn, `detach` lets it continue to its end. A platform that ends
 * with the response, such as Cloudflare Workers, is asked to wait for the run: for its cleanup and its last save, its turn, or its end. If the platform ends it
 * all the same, the run counts as lost after a `lease`.
 */
export type ClientGone = "stop" | "drain" | "detach";

/** The effect on a prompt if another run has its session: it is refused, it waits, or it stops that run. */
export type Busy = "refuse" | "queue" | "replace";

/** The options of `serve()`. `E` is the environment of the app that serves it: its variables and bindings. */
export interface ServeOptions<E extends Env = DefaultEnv> {
  /**
   * The store of the sessions and of the events of their runs: a client that reconnects receives the rest, and a request with an `Idempotency-Key` can be sent
   * again. Default: the memory of this process, which keeps at most 1,000 idle sessions, and loses them at a restart.
   */
  readonly store?: Store;
  /** The events that the store keeps. */
  readonly events?: {
    /** Milliseconds after the end of a run that its events, and idempotency keys, are kept at least. Default: 86,400,000, a day. */
    readonly keep?: number;
  };
  /** Client dialects that are served beside the native routes. Default: none. */
  readonly wires?: readonly Wire[];
  /** Answers `GET /` for the agent, for example with `playground()`. Default: 404. */
  readonly page?: (agent: ServedAgent<never>) => Response | Promise<Response>;
  /**
   * Lets clients keep paused runs: `run.paused` contains a resume token, which the client sends with the answers. With a `store`, each token counts once, and a
   * client can reconnect; without one, neither sessions nor events are kept. Default: none.
   */
  readonly resumeTokens?: ResumeTokens;
  /**
   * Returns the owner of the sessions and runs that a request creates or reaches. Those of other owners do not exist for the request. A request without an
   * owner is refused with 403. Called once for each request, except `GET /`, `GET /health` and `GET /ready`. Default: no owners; a client that knows the id of a session or
   * run reaches it.
   */
  readonly owner?: (c: Context<E>) => string | undefined | Promise<string | undefined>;
  /**
   * Returns the session that the URL of a request names, or `undefined`. The session is created if it does not exist. Default: the body names the session, which
   * must exist.
   */
  readonly session?: (c: Context<E>) => string | undefined | Promise<string | undefined>;
  /**
   * The effect on a prompt if another run has its session: `refuse` answers 409, `queue` waits (at most ten prompts for a session), `replace` stops the other
   * run. Default: `queue` for wires, whose clients send the next message without waiting for the end of a stopped run; otherwise `refuse`.
   */
  readonly busy?: Busy;
  /** The effect on a run if its client disconnects, for all requests or for one. Default: `stop`: a reload of the page stops the run. */
  readonly onClientGone?: ClientGone | ((c: Context<E>) => ClientGone | Promise<ClientGone>);
  /**
   * Milliseconds after which a run is lost if its process, or on Cloudflare Workers its request, has stopped renewing its lease. Another one resumes it; if
   * sessions are in memory, it ends. A client waits for as long after a kill, so set 10,000 where a waker calls `recover()`; each run renews its lease after a
   * third of it. Default: 30,000.
   */
  readonly lease?: number;
  /** Whether this process alone uses the store, as in a Durable Object: a run that it does not execute is dead then. Default: false. */
  readonly singleProcess?: boolean;
  /**
   * Shuts the server down when it aborts: requests are refused with 503, streams end, and runs are handed over. A process with the same store continues
   * them when a client reconnects or when it calls `recover()`. Runs in memory stop with the reason "shutdown".
   */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds for which a shutdown waits for a tool or a model's response in progress. After that, another process asks the model again, runs the tool
   * again if it is idempotent, and otherwise answers its call as interrupted. Default: 3,000; Deno Deploy ends a process after 5 seconds.
   */
  readonly grace?: number;
  /**
   * Receives the end or the pause of every run at least once, for example with `webhook()`. If it rejects, it is called again after 1, 5 and 25 seconds. If
   * that fails, or if the process dies before, `recover()` calls it, unless the sessions are in memory. Default: ends
   * are not reported.
   */
  readonly onEnd?: OnEnd;
  /**
   * The most runs, streams and bytes that this process takes at the same time. A request beyond it is refused with 503 and `Retry-After`, and stores nothing; a
   * message, a stop or a finish is always accepted. Default of each: no bound.
   */
  readonly capacity?: {
    /** The runs that it executes. A paused run takes no room. */
    readonly runs?: number;
    /** The responses that send events, to clients that began a run or follow one. */
    readonly streams?: number;
    /**
     * The bytes that the runs hold, estimated: 65,536 for each, and two for each character of its transcript. 96 * 2 ** 20 fits a heap of 128 MB, as on
     * Cloudflare Workers, and 400 * 2 ** 20 one of 512 MB, as on Deno Deploy.
     */
    readonly bytes?: number;
  };
  /** Limits of every run, in place of the agent's. Default: none. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds of silence after which a stream sends a comment, so that no proxy and no runtime closes it (Bun does after 10 seconds). Default: 8,000. */
  readonly heartbeat?: number;
  /** The maximum number of bytes of a request body. Default: 1,048,576. */
  readonly maxBody?: number;
  /** Receives every error of a request or run, with the id that the client received, and its run, session, owner and trace. Default: `console.error`. */
  readonly onError?: OnError;
  /** Receives the facts of the server, for metrics: its runs, its refused requests and the calls of its store. What it throws goes to `onError`. Default: none. */
  readonly observe?: (fact: ServerFact) => void;
  /**
   * Milliseconds within which each call of the `store` ends. After that it counts as failed, and its effect as unknown: a run retries it for 20 seconds, and a
   * new request is refused with 503, and undone if it was stored. Default: 5,000.
   */
  readonly storeDeadline?: number;
}

/** The part of an agent that a server uses. `V` are the vars that the agent needs. */
export interface ServedAgent<V> {
  /** The name of the agent. */
  readonly name: string;
  /** Begins or resumes a run that writes its events to `sink`. */
  start(options: object, sink: Sink<NumberedEvent>): Started;
  /** The definition, for features of the engine. */
  readonly "~definition": object;
  /** Never present: it carries the type only. */
  readonly "~vars"?: (vars: V) => void;
}

/** The environment of a request, unless `serve<Env>()` or the type of `c` states it: every binding, and only the variables that Hono's middleware declares. */
export interface DefaultEnv {
  /** The bindings of the platform, or its environment variables. */
  Bindings?: Context["env"];
}

/** The end of a run, or its pause. */
export interface RunEnd extends RecoveredRun {
  /** An id that is the same each time this end is reported. */
  readonly id: string;
  /** The last event: `run.finished`, `run.failed`, `run.aborted` or `run.paused`. */
  readonly event: Event;
}

/** Receives the ends of runs. */
export type OnEnd = (end: RunEnd) => unknown;

/** The options that make the vars of an agent. */
export interface RequestVars<V, E extends Env> {
  /**
   * Returns the vars for the runs of a request. Called once for each request, after its body was read, except `GET /`, `GET /health` and `GET /ready`. If it throws, the
   * request is refused: an `HTTPException` becomes the response.
   */
  readonly vars: (c: Context<E>) => V | Promise<V>;
  /**
   * Returns the vars for a run that `recover()` or an approval link continues, where there is no request of its client. If it throws, the run stays as it is:
   * for `recover()`, for another `lease`. Default: both throw a `TypeError`.
   */
  readonly recoveryVars?: (run: RecoveredRun) => V | Promise<V>;
}

// The defaults and the checks of the options of a server.

/** The options of a server, with their defaults. */
export type ServerOptions = ReturnType<typeof resolveOptions>;

/** Fills in the defaults. Throws a `RangeError` for an option out of range, and a `TypeError` for an unknown one and for two that exclude each other. */
export function resolveOptions(
  options: ServeOptions & Partial<RequestVars<unknown, DefaultEnv>> = {},
) {
  expectNames("Cannot serve", options, optionNames);
  const { resumeTokens, wires = [], onClientGone = "stop", singleProcess = false } = options;
  const { busy: nativeBusy = "refuse", busy: wireBusy = "queue" } = options;
  const { limits, lease = 30_000, grace = 3_000, heartbeat = 8_000, maxBody = 1_048_576, onError = logError } = options;
  const { observe: receive, storeDeadline = 5_000 } = options;
  expectImport("store", options.store, "journal", "durable(journal) of @jizai/jizai/session/durable");
  limited(defaultLimits, limits);
  if (!Array.isArray(wires) || wires.some((wire) => typeof wire?.routes !== "function")) {
    throw new TypeError("Cannot serve: expected a list of wires in `wires`, such as [aiSdkUi()]");
  }
  const { keep = 86_400_000 } = options.events ?? {};
  expectNames("Cannot serve: `events`", options.events ?? {}, ["keep"]);
  expectTime("Cannot serve: `heartbeat`", heartbeat);
  expectTime("Cannot serve: `lease`", lease);
  expectTime("Cannot serve: `storeDeadline`", storeDeadline);
  if (!(keep > 0 && keep <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`Cannot serve: \`events.keep\` is ${keep}; expected a positive number of milliseconds`);
  }
  expectChoice("Cannot serve", "busy", nativeBusy, ["refuse", "queue", "replace"]);
  if (typeof onClientGone !== "function") expectClientGone(onClientGone);
  if (!(maxBody > 0)) {
    throw new RangeError(`Cannot serve: \`maxBody\` is ${maxBody}; expected a positive number of bytes`);
  }
  if (!(grace >= 0)) {
    throw new RangeError(`Cannot serve: \`grace\` is ${grace}; expected a number of milliseconds of 0 or more`);
  }
  const report = (error: unknown) => void reportError(onError, error);
  const observe = receive && ((fact: ServerFact) => callSafely(() => receive(fact), report));
  /** The store, whose calls are bounded if it outlives the process. */
  const store: RunStore & Partial<BoundedStore> | undefined =
    options.store?.durable?.bound(options.store, { deadline: storeDeadline, observe, report }) ?? options.store;
  /** The sessions of the runs, unless each client keeps its own. */
  const sessions: RunStore | undefined = store ?? (resumeTokens ? undefined : { journal: memoryJournal() });
  return {
    ...options,
    store,
    sessions,
    observe,
    capacity: expectCapacity(options.capacity),
    keep,
    wires,
    nativeBusy,
    wireBusy,
    onClientGone,
    singleProcess,
    limits,
    lease,
    grace,
    heartbeat,
    maxBody,
    onError,
  };
}

const optionNames: readonly (keyof ServeOptions | keyof RequestVars<never, Env>)[] = [
  "store",
  "events",
  "wires",
  "page",
  "resumeTokens",
  "owner",
  "session",
  "busy",
  "onClientGone",
  "lease",
  "singleProcess",
  "signal",
  "grace",
  "onEnd",
  "limits",
  "capacity",
  "heartbeat",
  "maxBody",
  "onError",
  "observe",
  "storeDeadline",
  "vars",
  "recoveryVars",
];

/** Returns the value of `onClientGone`. Throws a `TypeError` for one that it cannot have, or return. */
export function expectClientGone(value: ClientGone): ClientGone {
  expectChoice("Cannot serve", "onClientGone", value, ["stop", "drain", "detach"]);
  return value;
}

/** Throws a `TypeError` if an option lacks the code that its import brings for a server. */
function expectImport(name: string, option: object | undefined, member: string, expected: string): void {
  if (!option || member in option) return;
  throw new TypeError(`Cannot serve with this \`${name}\`: it has no \`${member}\`; expected ${expected}`);
}
