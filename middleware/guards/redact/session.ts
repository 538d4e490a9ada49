/**
 * Masks the stored form of a session: the transcript, the position of the run, its answers and its state. Also masks the pauses, ends and errors that unwind
 * through the hooks.
 *
 * @module
 */
import type { Mask } from "./mask.ts";
import {
  maskCall,
  maskCallResult,
  maskContent,
  maskContext,
  maskEach,
  maskEvent,
  maskFields,
  maskInner,
  type MaskMessages,
  maskName,
  maskQuestion,
  maskResult,
  maskValue,
  messagesMask,
} from "./values.ts";
import { End, Pause, type PersonAnswer, type Session, ToolError, type ToolResult } from "../../../mod.ts";
import type {
  AnsweredQuestion,
  CallRecord,
  Exit,
  Mail,
  Position,
  ReviewedResult,
  RunSnapshot,
  SavedApproval,
} from "../../../src/core/engine.ts";

/** A session before it is saved. */
type Unsaved = Omit<Session, "version">;

type Rule = NonNullable<Session["rules"]>[number];

/** Returns a function that masks a session. */
export function sessionMask(mask: Mask, maskMessages: MaskMessages): (session: Unsaved) => Unsaved {
  return ({ run, state, rules, last, mail, ...session }) => ({
    ...session,
    messages: maskMessages(session.messages),
    ...(run && { run: maskRun(run, maskMessages, mask) }),
    ...(state && { state: maskState(state, mask) }),
    ...(rules && { rules: maskEach(rules, (rule) => maskRule(rule, mask)) }),
    ...(last && { last: { ...last, event: maskEvent(last.event, mask) } }),
    ...(mail && { mail: maskEach(mail, (each) => maskMail(each, mask)) }),
  });
}

function maskRule(rule: Rule, mask: Mask): Rule {
  const masked = maskFields(rule, ["input"], mask);
  return masked.askedBy ? { ...masked, askedBy: maskFields(masked.askedBy, ["key"], mask) } : masked;
}

function maskRun(run: RunSnapshot, maskMessages: MaskMessages, mask: Mask): RunSnapshot {
  return {
    ...run,
    position: maskPosition(run.position, maskMessages, mask),
    state: maskState(run.state, mask),
    answers: maskEach(run.answers, (each) => maskAnswered(each, mask)),
    ...(run.exit && { exit: maskExit(run.exit, mask) }),
  };
}

function maskPosition(position: Position, maskMessages: MaskMessages, mask: Mask): Position {
  switch (position.at) {
    case "incoming":
    case "prompt":
      return { ...position, messages: maskMessages(position.messages) };
    case "tools":
      return {
        ...position,
        message: maskContent(position.message, mask),
        calls: maskEach(position.calls, (record) => maskRecord(record, mask)),
      };
    case "stop":
      return { ...position, message: maskContent(position.message, mask) };
    case "promptEnd":
      return { ...position, answer: maskFields(position.answer, ["text", "reason", "output"], mask) };
    case "compact":
      return maskFields(position, ["instructions"], mask);
    case "model":
    case "turnEnd":
      return position;
  }
}

function maskRecord(callRecord: CallRecord, mask: Mask): CallRecord {
  const record = maskSteps(maskInner(callRecord, mask), mask);
  const call = maskCall(record.call, mask);
  switch (record.state) {
    case "pending":
      return { ...record, call };
    case "waiting": {
      const questions = maskEach(record.questions, (question) => maskQuestion(question, mask));
      const saved = maskSaved(record.saved, mask);
      return { ...maskApproval(record, mask), call, questions, ...(saved !== undefined && { saved }) };
    }
    case "running":
      return { ...maskFields(record, ["input", "note"], mask), call };
    case "ran":
      return {
        ...maskFields(record, ["input", "note"], mask),
        call,
        raw: maskFields(maskResult(record.raw, mask), ["error"], mask),
      };
    case "done":
      return { ...record, call, result: maskReviewed(record.result, mask) };
  }
}

/** Masks the values of steps. Their names stay: a step that is not found runs again. */
function maskSteps(record: CallRecord, mask: Mask): CallRecord {
  const { steps } = record;
  return steps
    ? { ...record, steps: steps.map((group) => group.map((step) => maskFields(step, ["value"], mask))) }
    : record;
}

/** Masks the decision that was saved with a question. The names of its guards stay. */
function maskApproval<T extends { readonly approval?: SavedApproval }>(value: T, mask: Mask): T {
  const { approval } = value;
  if (!approval) return value;
  const { name, asked, guards } = approval;
  const masked = maskFields(approval, ["input", "parsed"], mask);
  const maskTexts = (asked: SavedApproval["asked"]) =>
    maskEach(asked, (each) => maskFields(each, ["text", "key"], mask));
  const answered = guards.map(([guard, asked]) => [guard, maskTexts(asked)] as const);
  return { ...value, approval: { ...masked, name: maskName(name, mask), asked: maskTexts(asked), guards: answered } };
}

/** Masks the JSON that a paused tool saved. An agent that is a tool saves its session. */
function maskSaved(saved: unknown, mask: Mask): unknown {
  return isSession(saved) ? sessionMask(mask, messagesMask(mask))(saved) : maskValue(saved, mask);
}

function isSession(saved: unknown): saved is Session {
  return typeof saved === "object" && saved !== null && "id" in saved && "messages" in saved && "run" in saved;
}

function maskReviewed(result: ReviewedResult, mask: Mask): ReviewedResult {
  const { context, rewritten } = result;
  return {
    ...maskCallResult(result, mask),
    ...(context && { context: maskContext(context, mask) }),
    ...(rewritten && { rewritten: maskFields(rewritten, ["input"], mask) }),
  };
}

function maskExit(exit: Exit, mask: Mask): Exit {
  const { questions } = exit;
  return {
    ...maskFields(exit, ["reason", "answer", "schemas"], mask),
    ...(questions && { questions: maskEach(questions, (question) => maskQuestion(question, mask)) }),
  };
}

function maskAnswered(answered: AnsweredQuestion, mask: Mask): AnsweredQuestion {
  const answer = maskFields<PersonAnswer>(answered.answer, ["input", "reason", "text"], mask);
  return { ...maskApproval(answered, mask), question: maskQuestion(answered.question, mask), answer };
}

function maskState(state: RunSnapshot["state"], mask: Mask): RunSnapshot["state"] {
  return maskEach(state, ([name, value]) => [name, maskValue(value, mask)] as const);
}

function maskMail(mail: Mail, mask: Mask): Mail {
  if (mail.type !== "message") return mail;
  const { context } = mail;
  return {
    ...mail,
    message: maskContent(mail.message, mask),
    ...(context && { context: maskEach(context, (each) => maskContent(each, mask)) }),
  };
}

// Masks pauses, ends and the errors of tools, which unwind through the hooks.

/** Masks the questions of a hook or a tool that pauses the run, and the reason of one that ends it. */
export async function unwinding<R>(work: Promise<R>, mask: Mask): Promise<R> {
  try {
    return await work;
  } catch (error) {
    throw maskInterrupt(error, mask);
  }
}

/** Masks a pause, with the JSON that the tool saved, or an end. Returns any other error. */
function maskInterrupt(error: unknown, mask: Mask): unknown {
  if (error instanceof Pause) {
    const questions = maskEach(error.questions, (question) => maskQuestion(question, mask));
    const saved = maskSaved(error.saved, mask);
    return questions === error.questions && saved === error.saved ? error : new Pause(questions, saved);
  }
  if (!(error instanceof End)) return error;
  const reason = mask.whole(error.reason);
  return reason === error.reason ? error : new End(reason, error);
}

/** Masks a result before the engine saves it, and the message of a `ToolError`, from which the engine makes one. */
export async function maskExecution(next: () => Promise<ToolResult>, mask: Mask): Promise<ToolResult> {
  try {
    return maskResult(await next(), mask);
  } catch (error) {
    if (!(error instanceof ToolError)) throw maskInterrupt(error, mask);
    const message = mask.whole(error.message);
    throw message === error.message ? error : new ToolError(message, { cause: error });
  }
}
