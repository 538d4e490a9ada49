/**
 * Taking a session: one run has it at a time, and whoever goes on with one takes its answers.
 *
 * @module
 */
import type { Message } from "../protocol/message.ts";
import type { Answered, Rule, RunRecord } from "../protocol/session.ts";
import type { PersonAnswer } from "../protocol/question.ts";
import { skipped } from "./answers.ts";
import { canonicalJson } from "./canonical.ts";
import { Keeping } from "./keep.ts";
import type { Live } from "./live.ts";
import { leaveBatch } from "./outcome.ts";
import { describeIssues } from "./schema.ts";
import type { Store } from "./store.ts";
import { restore } from "./way.ts";

/** Which session a run takes, and how. */
export interface ClaimOptions {
  /** By which whoever serves it knows the request that it begins or goes on with. Default: it is not known again. */
  readonly request?: string | undefined;
  /** The id of a run that begins, or of the one that is gone on with. Default: a new one, or the one that has the session. */
  readonly run?: string | undefined;
  /** A new prompt: the messages that the caller holds, the last of them the person's. */
  readonly messages?: readonly Message[];
  /** A person's answers, for a run that is paused; or none, for one whose process died. */
  readonly answers?: readonly PersonAnswer[];
  /** Compacts the transcript, which is all that it does then, and says what to mind; throws where a run has the session. */
  readonly compact?: { readonly instructions: string };
  /** The session; without one the run has one of its own, kept only if it pauses. */
  readonly session?: string | undefined;
  /** Where sessions are kept. */
  readonly store: Store;
  /** Whose the session is; one of somebody else counts as unknown. Default: that is not looked at. */
  readonly owner?: string | undefined;
  /** Milliseconds after which a run that does not say that it lives has lost its session. Default: 30,000. */
  readonly lease?: number | undefined;
  /** Whether the run that has the session is known to be dead. Default: nobody knows before its lease is over. */
  readonly lost?: ((run: string) => boolean) | undefined;
  /** What becomes of a run that has the session and lives. Default: "refuse", which refuses this one. */
  readonly busy?: "refuse" | "replace" | undefined;
  /** The number of the event that asked what is answered: what was asked since is not. Default: whatever is asked now. */
  readonly at?: number | undefined;
  /** The number of the last event on record. Default: as many as its session knows of. */
  readonly after?: number | undefined;
  /** Ends the run that has the session, as soon as its calls have results; this is why. Default: it goes on. */
  readonly closing?: string | undefined;
}

/** A session that a run may not have. */
export class SessionError extends Error {
  /** The name of the class. */
  override readonly name = "SessionError";

  /** Says what could not be done, and why as a word. */
  constructor(
    message: string,
    readonly code: "busy" | "unknown" | "not-paused" | "unasked" | "invalid",
    /** The run that has the session, where it is busy. */
    readonly run?: string,
  ) {
    super(message);
  }
}

/**
 * Takes the session for `live`; throws a `SessionError` where it may not have it. Gives why a run has to be closed first that has it still, and takes
 * nothing then.
 */
export async function claim(live: Live, options: ClaimOptions): Promise<"lost" | "replaced" | undefined> {
  const { store, session, messages, compact, answers = [], owner, lease = 30_000, closing } = options;
  const kept = session === undefined ? undefined : await store.load(session);
  const named = `session "${live.session}"`;
  if (kept ? owner !== undefined && kept.owner !== owner : !messages) {
    throw new SessionError(
      `Cannot ${messages ? "run" : compact ? "compact" : "resume"} ${named}: there is none`,
      "unknown",
    );
  }
  const { run, version = 0 } = kept ?? {};
  const child = live.parent !== undefined;
  if (compact && run) throw new SessionError(`Cannot compact ${named}: a run has it`, "busy", run.id);
  const lives = run?.status === "running" && Date.now() < (run.until ?? Infinity) && !options.lost?.(run.id);
  if (lives && options.busy !== "replace") {
    throw new SessionError(`Cannot run ${named}: another run has it`, "busy", run.id);
  }
  if (messages && run?.status === "running") return lives ? "replaced" : "lost";

  live.keeping = new Keeping(live, {
    store,
    version,
    always: session !== undefined && !child,
    owner: kept?.owner ?? owner,
    lease,
  });
  live.transcript.messages = kept?.messages ?? [];
  live.transcript.earlier = kept?.earlier;
  if (!child) {
    live.rules.push(...kept?.rules ?? []);
    for (const [name, value] of kept?.state ?? []) live.lasting.set(name, value);
  }
  if (messages) {
    live.pending = run?.pending;
    leaveBatch(live, skipped("The conversation went on without an answer."));
    live.transcript.push(...run?.inbox ?? []);
    live.transcript.mark();
    live.prompt = messages;
  } else if (compact) {
    live.transcript.mark();
    live.compacting = compact;
  } else {
    if (!run || hasGoneOn(run, options)) {
      throw new SessionError(`Cannot resume ${named}: it is not paused${run ? " there any more" : ""}`, "not-paused");
    }
    goOn(live, run, answers, !child);
    if (!child) await checkInputs(live, answers);
    live.closing = closing ?? run.closing;
    live.request = options.request ?? (live.lost ? run.request : undefined);
    live.events.count = options.after ?? live.events.count;
    live.untold &&= live.events.count === run.events; // otherwise that was the first that was told since
  }
  if (!await live.keeping.save()) throw new SessionError(`Cannot run ${named}: another run took it`, "busy");
  return undefined;
}

/** Whether another run has the session, or this one has asked something else, since whoever goes on with it looked at it. */
function hasGoneOn({ id, status, events }: RunRecord, { run = id, at = events }: ClaimOptions): boolean {
  return run !== id || (status === "paused" && at < events);
}

/** Goes on with a run, and with the answers that a person gave to what it asks. Those that were taken before may come again. */
function goOn(live: Live, run: RunRecord, answers: readonly PersonAnswer[], ruling: boolean): void {
  restore(live, run);
  live.lost = run.status === "running";
  const { questions = [] } = run.pending ?? {};
  const answered = live.answered.filter(({ answer }) => live.lost || answer.callId !== undefined); // a reply counts for one pause
  const given = new Map<string | undefined, Answered>();
  for (const answer of answers) {
    const { callId } = answer;
    const question = live.lost ? undefined : questions.find((question) => question.callId === callId);
    const twice = given.has(callId);
    if (question && !twice) given.set(callId, { question, answer });
    else if (twice || !answered.some((taken) => canonicalJson(taken.answer) === canonicalJson(answer))) {
      const what = callId === undefined ? "the run" : `call ${callId}`;
      throw new SessionError(`Cannot answer ${what}: it is ${twice ? "answered twice" : "not asked"}`, "unasked");
    }
  }
  live.answered = [...answered, ...given.values()];
  const open = questions.filter(({ callId }) => callId !== undefined && !given.has(callId));
  live.pending = { ...live.pending, questions: open }; // the run's own are asked again
  if (ruling) live.rules.push(...[...given.values()].flatMap(ruleOf));
}

/** Holds what a person makes of inputs to the schemas of the tools, so that they hear what is wrong while they can still mend it. */
async function checkInputs({ answered, blueprint: { tools } }: Live, given: readonly PersonAnswer[]): Promise<void> {
  for (const { question, answer } of answered) {
    if (!given.includes(answer) || answer.type !== "approve" || answer.input === undefined || question.path) continue;
    const tool = tools.find(({ name }) => name === question.tool);
    const { issues } = await tool?.input["~standard"].validate(answer.input) ?? {};
    if (issues) {
      throw new SessionError(
        `Cannot answer call ${answer.callId}: its input is wrong: ${describeIssues(issues)}`,
        "invalid",
      );
    }
  }
}

/** What a person allowed for good. */
function ruleOf({ question: { tool, path, input }, answer }: Answered): Rule[] {
  if (answer.type !== "approve" || !answer.always || tool === undefined) return [];
  return [{
    tool,
    ...(path && { path }),
    ...(answer.always === "input" && { input: answer.input ?? input }),
  }];
}
