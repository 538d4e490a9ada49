/**
 * What a server is told when it is made.
 *
 * @module
 */
import type { Context, Env } from "hono";
import { defaultLimits, limited, type Limits } from "../core/limits.ts";
import { memory, type Store } from "../core/store.ts";
import type { ResumeTokens } from "../session/resume_token/resume_token.ts";
import type { Log } from "../session/log.ts";
import type { Wire } from "../wire/wire.ts";
import type { OnFailure } from "./refusal.ts";

/**
 * What becomes of a run whose client has gone: `stop` stops it, `drain` lets it finish its turn, `detach` lets it go on to its end. Where the platform ends
 * with the response, it is asked to wait for a run that goes on, for as long as it does that.
 */
export type ClientGone = "stop" | "drain" | "detach";

/** What becomes of a prompt whose session another run has: it is refused, it waits, or it stops that run. */
export type Busy = "refuse" | "queue" | "replace";

/** What `serve()` takes. */
export interface ServeOptions {
  /** Where sessions are kept. Default: in the memory of this app. */
  readonly store?: Store;
  /**
   * Where the events of runs are kept, each before anybody hears of it: a client that comes back gets the rest, and a request with an `Idempotency-Key` may be
   * sent again. Default: nowhere; what a client does not hear is lost to it.
   */
  readonly log?: Log;
  /** The dialects that it speaks beside its own, for clients that were written for another server: each its own import. Default: none. */
  readonly wires?: readonly Wire[];
  /** Answers `GET /`: a page to talk with the agent is `playground()`, an import of its own. Default: there is nothing. */
  readonly page?: () => Response | Promise<Response>;
  /**
   * Has clients keep what a paused run needs, in place of a store: `run.paused` carries a resume token, which comes back with the answers. There are no sessions
   * to go on with otherwise. Default: none.
   */
  readonly resumeTokens?: ResumeTokens;
  /**
   * Whose the sessions and runs are that a request makes or reaches: for anybody else they do not exist. Where it says nothing, the request is refused.
   * Default: that is not looked at, and whoever knows an id reaches what it names.
   */
  readonly owner?: (c: Context) => string | undefined | Promise<string | undefined>;
  /**
   * The session that the address of a request stands for, where it does: a prompt goes on with it or begins it. Default: the body says the session, if any,
   * and it has to be there.
   */
  readonly session?: (c: Context) => string | undefined;
  /**
   * What becomes of a prompt whose session another run has: `refuse` refuses it, `queue` has it wait for its turn, at most ten for a session, and
   * `replace` stops the other run. Default: `refuse`.
   */
  readonly busy?: Busy;
  /** What becomes of a run whose client has gone, always or for one request. Default: `stop`. */
  readonly onClientGone?: ClientGone | ((c: Context) => ClientGone | Promise<ClientGone>);
  /** Milliseconds after which a run whose process says nothing is taken for dead, and goes on elsewhere. Default: 30,000. */
  readonly lease?: number;
  /** Whether nobody else serves from this store, so that a run is dead that does not run here: in a Durable Object, or a single process. Default: false. */
  readonly singleProcess?: boolean;
  /** Ends the serving: runs stop with the reason "shutdown", streams end, and requests are refused. */
  readonly signal?: AbortSignal;
  /** Changes of the agent's limits, for every run. Default: none. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds of silence after which a comment is sent at the latest, so that nobody in between hangs up. Default: 15,000. */
  readonly heartbeat?: number;
  /** The most bytes that the body of a request may have. Default: 1,048,576. */
  readonly maxBody?: number;
  /** Told of what went wrong, with the id that the client was told instead. Default: nobody is told. */
  readonly onError?: OnFailure;
}

/** What Hono takes a context for that nobody has said more of: one that may hold anything. */
export type AnyEnv = Context extends Context<infer E> ? E : never;

/** What an agent is told of the request it serves, made of the request's context. */
export interface VarsOf<V, E extends Env> {
  /** Makes them. Called for every run that a request begins or goes on with, once its body, if it has one, has been read. */
  readonly vars: (c: Context<E>) => V | Promise<V>;
}

/** The options of `serve()`: `vars` is required where the agent needs any. */
export type ServeVars<V, E extends Env> = unknown extends V ? [options?: ServeOptions & Partial<VarsOf<unknown, E>>]
  : Record<never, never> extends V ? [options?: ServeOptions & Partial<VarsOf<V, E>>]
  : [options: ServeOptions & VarsOf<V, E>];

/** Options with their defaults. */
export type Settled = ReturnType<typeof settled>;

/** Fills in defaults. Throws a `RangeError` for an option out of range, and a `TypeError` for two that exclude each other. */
export function settled(options: ServeOptions & { readonly vars?: (c: Context) => unknown } = {}) {
  const {
    store,
    resumeTokens,
    wires = [],
    busy = "refuse",
    onClientGone = "stop",
    singleProcess = false,
    limits = {},
  } = options;
  const { lease = 30_000, heartbeat = 15_000, maxBody = 1_048_576 } = options;
  if (store && resumeTokens) {
    throw new TypeError("Cannot serve with a store and with resumeTokens: sessions are in one place");
  }
  limited(defaultLimits, limits);
  for (const [name, ms] of Object.entries({ heartbeat, lease })) {
    // timers count in 31 bits, and take what is beyond for no time at all
    if (!(ms > 0 && ms < 2 ** 31)) throw new RangeError(`Cannot serve with a ${name} of ${ms} ms`);
  }
  if (!(maxBody > 0)) throw new RangeError(`Cannot serve with bodies of at most ${maxBody} bytes`);
  const kept = store ?? (resumeTokens ? undefined : memory());
  return { ...options, store: kept, wires, busy, onClientGone, singleProcess, limits, lease, heartbeat, maxBody };
}
