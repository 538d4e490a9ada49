/**
 * A run from its first event to its last: it takes a session, opens it, concludes whatever comes of it, and gives it back.
 *
 * @module
 */
import { callsOf, user, type UserMessage } from "../protocol/message.ts";
import type { Sink } from "../stream/channel.ts";
import { withGracePeriod } from "./abandon.ts";
import type { Blueprint } from "./blueprint.ts";
import { claim, type ClaimOptions, SessionError } from "./claim.ts";
import { compactByHand } from "./compact.ts";
import { conclude, end, fromAnswer, resultOf } from "./conclude.ts";
import { cleanUp } from "./failure.ts";
import { lawOf, merged, resettled, saying } from "./law.ts";
import { limited, type Limits } from "./limits.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { RunResult, SessionChange, SessionContext, Settings } from "./points.ts";
import { scopeOf } from "./scope.ts";
import type { SendOptions } from "./inbox.ts";
import type { AnyTool } from "./tool.ts";
import { contextMessages } from "./transcript.ts";

/** What a run is given, whichever way it begins. */
export interface StartOptions extends ClaimOptions {
  readonly signal?: AbortSignal | undefined;
  readonly vars: unknown;
  readonly limits?: Partial<Limits> | undefined;
  /** Tools of this run alone, such as those that its client runs. Where one has the name of a tool of the agent's, that one counts. */
  readonly tools?: readonly AnyTool[] | undefined;
  readonly onError?: OnError | undefined;
  readonly parent?: { readonly live: Live; readonly call: string; readonly settings: Partial<Settings> };
}

/** Where a run begins that has its session. */
export interface Opened {
  /** The run's id. */
  readonly run: string;
  /** The number of the event before its first: 0 unless it goes on. */
  readonly after: number;
}

/** How a run is stopped. */
export interface StopOptions {
  /** Takes the transcript back to where the run began. Default: false. */
  readonly rollback?: boolean;
  /** Leaves the session as it is kept, for whoever goes on with the run. Default: false. */
  readonly leave?: boolean;
}

/** A run that has begun. */
export interface Started {
  /** The session it belongs to. */
  readonly session: string;
  /** Where it begins, once it has its session; rejects with a `SessionError` where it may not have it. */
  readonly opened: Promise<Opened>;
  /** How it ended; never rejects. */
  readonly result: Promise<RunResult>;
  /** Stops it. Default reason: "stop". */
  stop(reason?: string, options?: StopOptions): void;
  /**
   * Says something to it while it runs: delivered at the next safe place. Settles when it is on record. Rejects with a `RangeError` where ten messages
   * wait, and with a `SessionError` where the run is over.
   */
  send(message: string | UserMessage, options?: SendOptions): Promise<void>;
  /** Has it end with one more answer, without tools; calls that have not begun are skipped. */
  finish(): void;
  /** Ends it after the turn that it is in, as a limit does. */
  drain(reason: string): void;
}

/** Begins a run, or goes on with one that is paused, or whose process died. */
export function start(blueprint: Blueprint, options: StartOptions, sink: Sink<NumberedEvent>): Started {
  const session = options.session ?? crypto.randomUUID();
  const { vars, onError, parent, signal } = options;
  const limits = limited(blueprint.limits, options.limits);
  const live = new Live({ blueprint, session, sink, vars, limits, parent, onError });
  live.id = options.run ?? live.id;
  const opened = Promise.withResolvers<Opened>();
  opened.promise.catch(() => {}); // the result says it too
  const stop = (reason = "stop", { rollback = false, leave = false }: StopOptions = {}) => {
    live.rollback ||= rollback;
    live.left ||= leave;
    live.abort(reason);
  };
  const onAbort = () => stop("signal");
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const result = conduct(live, options, opened).finally(() => signal?.removeEventListener("abort", onAbort));
  const drain = (reason: string) => {
    live.draining ??= reason;
  };
  const send = async (message: string | UserMessage, options?: SendOptions) => {
    await opened.promise; // what waits for it already comes first
    if (live.inbox.closed) {
      throw new SessionError(`Cannot send a message to run "${live.id}": it is over`, "unknown");
    }
    live.inbox.add(typeof message === "string" ? user(message) : message, options);
    if (!live.keeping?.steady) return;
    await live.keep();
    if (live.aborted) throw new SessionError(`Cannot send a message to run "${live.id}": it ends`, "busy");
  };
  return { session, opened: opened.promise, result, stop, drain, send, finish: () => live.inbox.finish() };
}

/** How many times the grace of one hook the whole run has after it was told to stop: a tool, the hooks after it, the cleanup. */
const patience = 3;

async function conduct(live: Live, options: StartOptions, opened: PromiseWithResolvers<Opened>): Promise<RunResult> {
  try {
    live.arm();
    await take(live, options);
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
    const { id: run, request, session, resumed, events: { emit } } = live;
    const scope = live.scope();
    const source = live.transcript.messages.length > 0 || resumed ? "resume" : "new";
    emit({ type: "run.started", run, session, resumed, ...(request !== undefined && { request }) });
    emit({ type: "session.opened", source });
    if (live.lost || live.closing) await recover(live);
    const open = async () => {
      const settings = await settingsOf(live, options);
      return await live.blueprint.onions.session({ ...scope, session, source, resumed, settings, context: [] }, live);
    };
    result = await withGracePeriod(open(), live, patience * live.limits.grace, () => {
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

/** Takes the session; a run that has it still, and may not keep it, is closed before. */
async function take(live: Live, options: StartOptions): Promise<void> {
  const reason = await claim(live, options);
  if (!reason) return;
  const { messages: _, run: __, ...rest } = options;
  await start(live.blueprint, { ...rest, answers: [], closing: reason }, nullSink).result;
  if (await claim(live, { ...options, busy: "refuse" })) {
    throw new SessionError(`Cannot run session "${live.session}": another run took it`, "busy");
  }
}

/** Where nobody listens. */
export const nullSink: Sink<NumberedEvent> = { write() {}, cork() {}, uncork() {}, full: undefined, close() {} };

/** The cleanup of a run whose process died, or that is to be closed: what it left open is still open. */
async function recover(live: Live): Promise<void> {
  const { pending, closing } = live;
  const { message, results = [] } = pending?.batch ?? {};
  const answered = new Set(results.map(({ callId }) => callId));
  live.open = message ? callsOf(message).map(({ type: _, ...call }) => call).filter(({ id }) => !answered.has(id)) : [];
  const cleaning = cleanUp(live, closing ?? "lost");
  if (closing) live.cleaning = cleaning; // it ends without another
  await cleaning;
}

async function settingsOf(live: Live, { parent, tools: more = [] }: StartOptions): Promise<Settings> {
  const { model, instructions, tools } = live.blueprint;
  const scope = live.scope();
  return merged<Settings>({
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools: [...tools, ...more.filter(({ name }) => !tools.some((own) => own.name === name))],
    limits: live.limits,
  }, parent?.settings ?? {});
}

/** The law of `session`. */
export const sessionLaw: Law<SessionContext, SessionChange, RunResult, Live> = lawOf(
  "session",
  ["settings", "context"],
  { derive: resettled, seal: saying("session", "status") },
);

/** The core of `session`: runs the prompt, and makes a result of whatever comes of it. */
export async function openSession(ctx: SessionContext, live: Live): Promise<RunResult> {
  const { resumed, settings, context } = ctx;
  const scope = scopeOf(ctx);
  try {
    live.checkpoint();
    live.settle(settings, scope);
    if (live.transcript.messages.length === 0) live.transcript.push(...contextMessages(context, "session"));
    const answer = live.compacting
      ? await compactByHand(live, scope, live.compacting)
      : await live.blueprint.onions.prompt({
        ...scope,
        prompt: promptOf(live),
        transcript: live.transcript.messages,
        context: [],
        resumed: resumed && !live.prompt,
      }, live);
    live.checkpoint();
    live.keeping?.freeze();
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
