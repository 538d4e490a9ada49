/**
 * The answer of a link: how its question stands now, and the launch of its run, for the owner of the session and without a request of theirs.
 *
 * @module
 */
import type { Context } from "hono";
import { delay } from "../../core/lib/cancellation.ts";
import { canonicalJson, hashOf } from "../../core/lib/json.ts";
import { SessionError } from "../../core/session.ts";
import { shuttingDown } from "../error_response.ts";
import { type Client, RequestClient } from "../identify.ts";
import type { Server } from "../operation.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import type { LaunchInput, RecoveredRun } from "../../session/record/run_host.ts";
import { lastEventNumber, type QuestionAddress, questionState } from "../../session/record/run_state.ts";

// A link: the question that it answers, and the decision.

/** The pause of a run at an event. */
export interface Pause extends RecoveredRun {
  /** The number of the `run.paused` event. */
  readonly at: number;
}

/** The sealed content of a link. */
export interface Link extends QuestionAddress, Pause {
  readonly decision: "approve" | "deny";
  /** The hash of the question as the person saw it. */
  readonly form: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/** Returns the hash of what a person reads of a question. */
export async function formOf({ path, tool, input, questions }: Question): Promise<string> {
  return await hashOf(canonicalJson([path, tool, input, questions]));
}

// The answer of a link. The server handles it as one of the session's owner, without a request of theirs.

/** A question as it stands now. `others` is the number of other open questions. */
export type Standing =
  | { readonly state: "open" | "working"; readonly question: Question; readonly others: number; readonly at: number }
  | { readonly state: "closed" | "changed" | "forgotten" };

/** Returns how the question of a link stands now. Its content is the one that clients receive, after every filter. */
export async function standingOf({ runs }: Server, link: Link): Promise<Standing> {
  const session = await runs.head(link.session, link);
  const state = questionState(session, link);
  if (state === "closed") return { state };
  const at = state === "open" ? lastEventNumber(session) : link.at;
  const event = await runs.records?.event(link.run, at, link);
  const questions = event?.type === "run.paused" ? event.questions : undefined;
  if (!questions) return { state: "forgotten" };
  const question = questions.find(({ callId }) => callId === link.callId);
  if (!question || (at !== link.at && await formOf(question) !== link.form)) return { state: "changed" };
  return { state, question, others: questions.length - 1, at };
}

/** Milliseconds for which an answer waits while its run works on the answer to another question. */
const patience = 10_000;

/** Answers a question. Returns how it stood at last: "open" if this answer counts. */
export async function answer(c: Context, server: Server, link: Link, reason: string): Promise<Standing> {
  const { runs, options: { signal, recoveryVars } } = server;
  const { session, run, owner, callId, decision } = link;
  const vars = await recoveryVars?.({ run, session, ...(owner !== undefined && { owner }) });
  const client = new RequestClient(c, owner, vars);
  const answer: PersonAnswer = { callId, type: decision, ...(decision === "deny" && reason !== "" && { reason }) };
  const tired = new AbortController();
  const timer = setTimeout(() => tired.abort(), patience);
  try {
    for (;;) {
      if (signal?.aborted) throw shuttingDown();
      const standing = await standingOf(server, link);
      if (standing.state === "working" && !tired.signal.aborted) {
        const events = await runs.records?.follow({ run, after: link.at }, client, tired.signal); // continues a run whose process has died
        for await (const _ of events ?? []);
      } else if (standing.state !== "open") return standing;
      else if (await launched(server, { run, session, answers: [answer], pausedAt: standing.at }, client)) {
        return standing;
      } else if (tired.signal.aborted) return { ...standing, state: "working" };
      await delay(20, tired.signal).catch(() => {}); // the session is being saved
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Launches a run with an answer, if the process has room. Returns false if another answer was faster. */
async function launched({ runs, admissions }: Server, input: LaunchInput, client: Client): Promise<boolean> {
  const endWait = admissions.admit(false);
  try {
    await runs.launch(input, client);
    return true;
  } catch (error) {
    if (error instanceof SessionError && ["busy", "not-paused", "unasked"].includes(error.code)) return false;
    throw error;
  } finally {
    endWait();
  }
}
