/**
 * Masks pauses, ends and the errors of tools, which unwind through the hooks.
 *
 * @module
 */
import { End, Pause, ToolError, type ToolResult } from "../../../mod.ts";
import type { Mask } from "./mask.ts";
import { maskResult } from "./messages.ts";
import { maskSaved } from "./session.ts";
import { maskEach, maskQuestion } from "./values.ts";

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
