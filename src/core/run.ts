/**
 * A run from its first event to its last: it takes a session, opens it, concludes whatever comes of it, and gives it back.
 *
 * @module
 */
import type { Message, UserMessage } from "../protocol/message.ts";
import type { PersonAnswer } from "../protocol/session.ts";
import type { Sink } from "../stream/channel.ts";
import { abandon } from "./abandon.ts";
import { skipped } from "./answers.ts";
import type { Blueprint } from "./blueprint.ts";
import { conclude, end, fromAnswer, resultOf } from "./conclude.ts";
import { leaveBatch } from "./outcome.ts";
import { restore, save } from "./keep.ts";
import { lawOf, merged } from "./law.ts";
import { limited, type Limits } from "./limits.ts";
import type { Numbered, OnError } from "./events.ts";
import { Live, patience } from "./live.ts";
import { contextMessages } from "./loop.ts";
import type { Law } from "./onion.ts";
import type { RunResult, SessionChange, SessionContext, Settings } from "./points.ts";
import { scopeOf } from "./scope.ts";
import type { Store } from "./store.ts";

/** What a run is given, whichever way it begins. */
export interface StartOptions {
  /** A new prompt: the messages that the caller holds, the last of them the person's. */
  readonly messages?: readonly Message[];
  /** A person's answers, for a run that is paused. */
  readonly answers?: readonly PersonAnswer[];
  /** The session; without one the run has one of its own, kept only if it pauses. */
  readonly session?: string | undefined;
  readonly store: Store;
  readonly signal?: AbortSignal | undefined;
  readonly vars: unknown;
  readonly limits?: Partial<Limits> | undefined;
  readonly onError?: OnError | undefined;
  /** Whose the session is; one of somebody else counts as unknown. Default: that is not looked at. */
  readonly owner?: string | undefined;
  /** Milliseconds after which a run that does not say that it lives has lost its session. Default: 30,000. */
  readonly lease?: number | undefined;
  /** Whether the run that has the session is known to be dead. Default: nobody knows before its lease is over. */
  readonly lost?: ((run: string) => boolean) | undefined;
  /** What becomes of a run that has the session. Default: "refuse", which refuses this one. */
  readonly busy?: "refuse" | "replace" | undefined;
  /** The number of the last event on record, of a run that was lost. Default: as many as its session knows of. */
  readonly after?: number | undefined;
  /** Ends the run that has the session, as soon as its calls have results; this is why. Default: it goes on. */
  readonly closing?: string | undefined;
  /** The id of a run that begins. Default: a new one. */
  readonly run?: string | undefined;
  readonly parent?: { readonly live: Live; readonly settings: Partial<Settings> };
}

/** Where a run begins that has its session. */
export interface Opened {
  /** The run's id. */
  readonly run: string;
  /** The number of the event before its first: 0 unless it goes on. */
  readonly after: number;
}

/** A run that has begun. */
export interface Started {
  /** The session it belongs to. */
  readonly session: string;
  /** Where it begins, once it has its session; rejects with a `SessionError` where it may not have it. */
  readonly opened: Promise<Opened>;
  /** How it ended; never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops it. */
  stop(reason?: string): void;
  /** Ends it after the turn that it is in, as a limit does. */
  drain(reason: string): void;
}

/** A session that a run may not have. */
export class SessionError extends Error {
  /** The name of the class. */
  override readonly name = "SessionError";

  /** Says what could not be done, and why as a word. */
  constructor(
    message: string,
    readonly code: "busy" | "unknown" | "not-paused" | "unasked",
    /** The run that has the session, where it is busy. */
    readonly run?: string,
  ) {
    super(message);
  }
}

/** Begins a run, or goes on with a paused one. */
export function start(blueprint: Blueprint, options: StartOptions, sink: Sink<Numbered>): Started {
  const session = options.session ?? crypto.randomUUID();
  const { vars, onError, parent, signal } = options;
  const limits = limited(blueprint.limits, options.limits);
  const live = new Live({ blueprint, session, sink, vars, limits, parent, onError });
  live.id = options.run ?? live.id;
  const opened = Promise.withResolvers<Opened>();
  opened.promise.catch(() => {}); // the result says it too
  const stop = (reason = "stop") => live.abort(reason);
  const onAbort = () => stop("signal");
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = conduct(live, options, opened).finally(() => signal?.removeEventListener("abort", onAbort));
  const drain = (reason: string) => {
    live.draining ??= reason;
  };
  return { session, opened: opened.promise, result, stop, drain };
}

async function conduct(live: Live, options: StartOptions, opened: PromiseWithResolvers<Opened>): Promise<RunResult> {
  try {
    live.arm();
    await claim(live, options);
  } catch (error) {
    opened.reject(error);
    live.close();
    return { ...resultOf(live, "failed", "session"), error };
  }
  opened.resolve({ run: live.id, after: live.events.count });
  await opened.promise; // who waits for it goes on before the first event
  let result: RunResult;
  try {
    live.gather();
    const { events: { emit }, session } = live;
    const scope = live.scope();
    const resumed = live.pending !== undefined;
    const source = live.transcript.messages.length > 0 || resumed ? "resume" : "new";
    emit({ type: "run.started", run: live.id, session, resumed });
    emit({ type: "session.opened", source });
    const open = async () => {
      const settings = await settingsOf(live, options);
      return await live.blueprint.onions.session({ ...scope, session, source, resumed, settings, context: [] }, live);
    };
    result = await abandon(open(), live, patience * live.limits.grace, () => {
      live.events.warn("hook.abandoned", "A hook did not stop when it was told to.");
    });
  } catch (error) {
    result = await conclude(live, live.scope(), error, "session");
  }
  try {
    return await end(live, result);
  } finally {
    live.close();
  }
}

/** Takes the session for this run; throws a `SessionError` where it may not. */
async function claim(live: Live, { store, session, messages, answers, parent }: StartOptions): Promise<void> {
  const kept = session === undefined ? undefined : await store.load(session);
  live.keeping = { store, version: kept?.version ?? 0, always: session !== undefined && !parent };
  const named = `session "${live.session}"`;
  const { status, until = Infinity } = kept?.run ?? {};
  if (status === "running" && Date.now() < until) {
    throw new SessionError(`Cannot run ${named}: another run has it`, "busy", kept?.run?.id);
  }
  live.transcript.messages = kept?.messages ?? [];
  if (answers) {
    if (!kept) throw new SessionError(`Cannot resume ${named}: there is none`, "unknown");
    if (!kept.run || status !== "paused") {
      throw new SessionError(`Cannot resume ${named}: it is not paused`, "not-paused");
    }
    restore(live, kept.run);
    const asked = new Set(live.pending?.questions.map(({ callId }) => callId));
    for (const answer of answers) {
      const { callId } = answer;
      if (callId === undefined || !asked.has(callId)) {
        throw new SessionError(`Cannot answer call ${callId}: it is not asked`, "unasked");
      }
      live.answers.set(callId, answer);
    }
  } else {
    live.pending = kept?.run?.pending;
    leaveBatch(live, skipped("The conversation went on without an answer."));
    live.transcript.before = live.transcript.messages;
    live.prompt = messages;
  }
  if (!await save(live)) throw new SessionError(`Cannot run ${named}: another run took it`, "busy");
}

async function settingsOf(live: Live, { parent }: StartOptions): Promise<Settings> {
  const { model, instructions, tools } = live.blueprint;
  const scope = live.scope();
  return merged<Settings>({
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools,
    limits: live.limits,
  }, parent?.settings ?? {});
}

/** The law of `session`. */
export const sessionLaw: Law<SessionContext, SessionChange, RunResult, Live> = lawOf(
  "session",
  ["settings", "context"],
  {
    derive: (beneath, { settings }) =>
      beneath.settings === settings ? beneath : { ...beneath, settings: merged(settings, beneath.settings) },
  },
);

/** The core of `session`: runs the prompt, and makes a result of whatever comes of it. */
export async function openSession(ctx: SessionContext, live: Live): Promise<RunResult> {
  const { resumed, settings, context } = ctx;
  const scope = scopeOf(ctx);
  try {
    live.checkpoint();
    live.settle(settings, scope);
    if (live.transcript.messages.length === 0) live.transcript.push(...contextMessages(context, "session"));
    const answer = await live.blueprint.onions.prompt({
      ...scope,
      prompt: promptOf(live),
      transcript: live.transcript.messages,
      context: [],
      resumed: resumed && !live.prompt,
    }, live);
    live.checkpoint();
    return fromAnswer(live, answer);
  } catch (error) {
    return await conclude(live, scope, error, "prompt");
  }
}

/** What the person asked: in a resumed run the last that they said. */
function promptOf({ prompt, transcript: { messages } }: Live): UserMessage {
  const said = prompt?.at(-1) ??
    messages.findLast((message) => message.role === "user" && message.from === undefined) ??
    messages.findLast((message) => message.role === "user");
  if (said?.role !== "user") throw new TypeError("Cannot run: the last message is not the person's");
  return said;
}
