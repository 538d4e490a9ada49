/**
 * Claims of sessions: the saved state that a run starts from. A new prompt, answers to a pause, a crash and a compaction differ only in that state.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import { describeIssues } from "../agent/schema.ts";
import type { AnyTool } from "../agent/tool.ts";
import { waitingMessages } from "../features/steering.ts";
import { skipped } from "../hooks/results.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import { closingMessages } from "../run/finish.ts";
import { type AnsweredQuestion, type Exit, noCounters, type Position, type RunSnapshot } from "../run/position.ts";
import { noUsage } from "../../protocol/message.ts";
import { isPaused, type Mail, questionsOf, type Rule, type Session } from "./session.ts";
import type { Store } from "./store.ts";

/** The session that a run claims, and how. */
export interface ClaimOptions {
  /** The idempotency id of the request. Default: none. */
  readonly request?: string | undefined;
  /** The id of a new run, or of the run to continue. Default: a new id, or the run that has the session. */
  readonly run?: string | undefined;
  /** A new prompt: messages of which the last is the person's. */
  readonly messages?: readonly Message[];
  /** Answers to a paused run. Empty for a run whose process died. */
  readonly answers?: readonly PersonAnswer[];
  /** Only compacts the transcript, with these instructions. Throws if a run has the session. */
  readonly compact?: { readonly instructions: string };
  /** The session. Default: a new one, which is saved only if the run pauses. */
  readonly session?: string | undefined;
  /** The store of sessions. */
  readonly store: Store;
  /** The owner of the session. Sessions of other owners count as unknown. Default: no owner is checked. */
  readonly owner?: string | undefined;
  /** Milliseconds after which a run that does not renew its lease is lost. Default: 30,000. */
  readonly lease?: number | undefined;
  /** Returns true if a run is known to be dead. Default: a run is dead after its lease. */
  readonly lost?: ((run: string) => boolean) | undefined;
  /** The action if another run holds the session. Default: "refuse". */
  readonly busy?: "refuse" | "replace" | undefined;
  /** The number of the event that asked the questions. Later questions are not answered. Default: the last event. */
  readonly at?: number | undefined;
  /** The number of the last logged event. Default: the number that the session knows. */
  readonly after?: number | undefined;
  /** Ends the run as soon as its open calls have results, for this reason. Default: the run continues. */
  readonly closing?: string | undefined;
}

/** A session that cannot be claimed. */
export class SessionError extends Error {
  /** The name of the class. */
  override readonly name = "SessionError";

  /** Creates the error with a code for programs. */
  constructor(
    message: string,
    readonly code: "busy" | "unknown" | "not-paused" | "unasked" | "invalid" | "refused",
    /** The run that has the session, if it is busy. */
    readonly run?: string,
    /** The messages of a session that the caller may see. */
    readonly messages: readonly Message[] = [],
  ) {
    super(message);
  }
}

/** The saved state that a run starts from. */
export interface Claimed {
  readonly start: RunSnapshot;
  readonly messages: readonly Message[];
  readonly archive: string | undefined;
  readonly version: number;
  readonly owner: string | undefined;
  readonly state: readonly (readonly [string, unknown])[];
  readonly rules: readonly Rule[];
  /** Messages that other processes sent to the run. */
  readonly mail: readonly Mail[];
  /** True if the run continues after a pause or a crash. */
  readonly resumed: boolean;
  /** True if the run's process died. */
  readonly lost: boolean;
  readonly closing: string | undefined;
  /** The pause that is answered. */
  readonly exit?: Exit | undefined;
  /** The answers of this claim, which are the last ones in `start`. */
  readonly given: readonly AnsweredQuestion[];
}

/** A run that must be closed before its session can be claimed. */
export interface MustClose {
  readonly close: "lost" | "replaced";
}

/** Reads the state to start from. Throws a `SessionError` if the session cannot be claimed. Nothing is saved yet. */
export async function claim(
  options: ClaimOptions,
  { tools, session: id, child, arrival }: {
    readonly tools: readonly AnyTool[];
    readonly session: string;
    readonly child: boolean;
    /** The first position of a prompt. */
    readonly arrival: "arrived" | "input";
  },
): Promise<Claimed | MustClose> {
  const { store, session, messages, compact, owner } = options;
  const stored = session === undefined ? undefined : await store.load(session);
  if (stored ? owner !== undefined && stored.owner !== owner : !messages) {
    const verb = messages ? "run" : compact ? "compact" : "resume";
    throw new SessionError(`Cannot ${verb} session "${id}": there is none`, "unknown");
  }
  const busy = busyWith(stored, id, options);
  if (busy) return busy;
  const base = {
    version: stored?.version ?? 0,
    archive: stored?.archive,
    owner: stored?.owner ?? owner,
    state: child ? [] : stored?.state ?? [],
    rules: child ? [] : stored?.rules ?? [],
    mail: [],
    resumed: false,
    lost: false,
    closing: undefined,
    given: [],
  };
  const kept = stored?.messages ?? [];
  if (messages) {
    const before = [...kept, ...leftBehind(stored)];
    return { ...base, messages: before, start: fresh(options, { at: arrival, messages }, before.length) };
  }
  if (compact) return { ...base, messages: kept, start: fresh(options, { at: "compact", ...compact }, kept.length) };
  return await resume(stored, id, { base: { ...base, messages: kept }, options, tools, child });
}

/** Throws if a live run has the session. Returns the run that must be closed before a new prompt. */
function busyWith(stored: Session | undefined, id: string, options: ClaimOptions): MustClose | undefined {
  const { messages, compact, lost, busy } = options;
  const { run, lease } = stored ?? {};
  if (compact && run) throw new SessionError(`Cannot compact session "${id}": a run has it`, "busy", run.id);
  const runs = run !== undefined && !run.exit;
  const lives = runs && Date.now() < (lease?.until ?? Infinity) && !lost?.(run.id);
  if (lives && busy !== "replace") {
    throw new SessionError(`Cannot run session "${id}": another run has it`, "busy", run.id);
  }
  return messages && runs ? { close: lives ? "replaced" : "lost" } : undefined;
}

/** Returns the messages that a run leaves behind when a new prompt ends its pause: its open calls are answered, and messages to it are kept. */
function leftBehind(stored: Session | undefined): readonly Message[] {
  const { run, mail = [] } = stored ?? {};
  if (!run) return [];
  const rest = skipped("The conversation went on without an answer.");
  const unread = mail.flatMap((request) => request.type === "message" ? [request.message] : []);
  return [...closingMessages(run.position, undefined, rest), ...waitingMessages(run.state), ...unread];
}

/** Returns the snapshot of a new run. */
function fresh({ run, request }: ClaimOptions, position: Position, before: number): RunSnapshot {
  return {
    id: run ?? crypto.randomUUID(),
    startedAt: Date.now(),
    position,
    counters: noCounters,
    usage: noUsage,
    state: [],
    answers: [],
    before,
    events: 0,
    ...(request !== undefined && { request }),
  };
}

/** Returns the state of a run that continues. */
async function resume(
  stored: Session | undefined,
  id: string,
  { base, options, tools, child }: {
    readonly base: Omit<Claimed, "start">;
    readonly options: ClaimOptions;
    readonly tools: readonly AnyTool[];
    readonly child: boolean;
  },
): Promise<Claimed> {
  const { run, lease, mail = [] } = stored ?? {};
  const { answers = [], after, closing = lease?.closing } = options;
  if (!stored || !run || hasMovedOn(stored, options)) {
    const again = run ? " there any more" : "";
    throw new SessionError(
      `Cannot resume session "${id}": it is not paused${again}`,
      "not-paused",
      undefined,
      stored?.messages,
    );
  }
  const lost = !isPaused(stored);
  const given = matchAnswers(stored, answers);
  if (!child) await validateEdits(stored, given, tools);
  const earlier = run.answers.filter(({ answer }) => lost || answer.callId !== undefined); // a reply counts for one pause
  const { exit, request: asked, unsent, events, ...rest } = run;
  const request = options.request ?? (lost ? asked : undefined);
  const isUnsent = unsent && (after ?? events) === events; // otherwise the events were logged before the crash
  const start: RunSnapshot = {
    ...rest,
    answers: [...earlier, ...given],
    events: after ?? events,
    ...(request !== undefined && { request }),
    ...(isUnsent && { unsent }),
  };
  const rules = child ? [] : [...base.rules, ...given.flatMap(ruleOf)];
  return { ...base, start, rules, given, mail, resumed: true, lost, closing, exit };
}

/** Returns true if another run has the session, or this one has asked something else, since the caller looked at it. */
function hasMovedOn({ run }: Session, { run: expected = run?.id, at = run?.events ?? 0 }: ClaimOptions): boolean {
  return run?.id !== expected || (run?.exit !== undefined && at < run.events);
}

const kinds: readonly unknown[] = ["approve", "deny", "reply"];
const scopes: readonly unknown[] = ["tool", "input", undefined];

/** Throws for an answer of an unknown type, or one that allows calls for good in an unknown scope. */
function checkKind(answer: PersonAnswer, { messages }: Session): void {
  const { callId, type } = answer;
  const fail = (expected: string, got: unknown): never => {
    const what = callId === undefined ? "the run" : `call ${callId}`;
    throw new SessionError(`Cannot answer ${what}: ${expected}, got "${got}"`, "invalid", undefined, messages);
  };
  if (!kinds.includes(type)) fail('expected type "approve", "deny" or "reply"', type);
  if (answer.type === "approve" && !scopes.includes(answer.always)) {
    fail('expected always "tool" or "input"', answer.always);
  }
}

/** Matches answers to the questions of a pause. Answers that were given before are accepted again. */
function matchAnswers(stored: Session, answers: readonly PersonAnswer[]): readonly AnsweredQuestion[] {
  const { run } = stored;
  const lost = !isPaused(stored);
  const questions = lost ? [] : questionsOf(stored);
  const taken = run?.answers.filter(({ answer }) => lost || answer.callId !== undefined) ?? [];
  const given = new Map<string | undefined, AnsweredQuestion>();
  for (const answer of answers) {
    checkKind(answer, stored);
    const { callId } = answer;
    const question = questions.find((question) => question.callId === callId);
    const twice = given.has(callId);
    if (question && !twice) given.set(callId, { question, answer });
    else if (twice || !taken.some((earlier) => canonicalJson(earlier.answer) === canonicalJson(answer))) {
      const what = callId === undefined ? "the run" : `call ${callId}`;
      throw new SessionError(
        `Cannot answer ${what}: it is ${twice ? "answered twice" : "not asked"}`,
        "unasked",
        undefined,
        stored.messages,
      );
    }
  }
  return [...given.values()];
}

/** Validates edited inputs against the tools' schemas, while the person can still correct them. */
async function validateEdits(
  { messages }: Session,
  given: readonly AnsweredQuestion[],
  tools: readonly AnyTool[],
): Promise<void> {
  for (const { question, answer } of given) {
    if (answer.type !== "approve" || answer.input === undefined || question.path) continue;
    const tool = tools.find(({ name }) => name === question.tool);
    const { issues } = await tool?.input["~standard"].validate(answer.input) ?? {};
    if (issues) {
      const why = `its input is wrong: ${describeIssues(issues)}`;
      throw new SessionError(`Cannot answer call ${answer.callId}: ${why}`, "invalid", undefined, messages);
    }
  }
}

/** Returns the rule of an answer that allows such calls for good. */
function ruleOf({ question: { tool, path, input }, answer }: AnsweredQuestion): Rule[] {
  if (answer.type !== "approve" || !answer.always || tool === undefined) return [];
  return [{
    tool,
    ...(path && { path }),
    ...(answer.always === "input" && { input: answer.input ?? input }),
  }];
}
