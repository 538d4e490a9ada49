/**
 * Describes runs with the attributes of the semantic conventions for generative AI.
 *
 * @module
 */
import { type AbortContext, type InputResult, type RunResult, type SessionContext, textOf } from "../../../mod.ts";
import type { Attributes } from "./api.ts";
import type { MaskText } from "./content.ts";
import { answerJson, type Details, tokensOf } from "./operations.ts";
import { kindOf, type Operation, type Outcome } from "./recorder.ts";

/** The names of the limits of the engine and of `budget()` without a name. Any other reason for a limit is the text of a hook, so it is content. */
const limitNames = ["budget", "client-gone", "continuations", "deadline", "outputs", "recoveries", "turns"];

/** Describes a run. */
export function runOperation(
  { run, resumed, settings: { model } }: SessionContext,
  { provider }: Details,
): Operation {
  return {
    name: "invoke_agent",
    target: run.agent,
    labels: { "gen_ai.agent.name": run.agent, ...provider(model.id) },
    details: {
      "gen_ai.request.model": model.id,
      "gen_ai.conversation.id": run.session,
      "jizai.run.id": run.id,
      "jizai.run.resumed": resumed,
    },
  };
}

/** Describes the outcome of a run. */
export function runOutcome(
  { status, reason, usage, text, error }: Pick<RunResult, "status" | "reason" | "usage" | "text" | "error">,
  { content }: Details,
): Outcome {
  const failed = status === "failed" ? kindOf(error) : status === "aborted" ? status : undefined;
  return {
    details: {
      ...tokensOf(usage),
      "jizai.run.status": status,
      ...reasonOf(status, reason, content),
      ...(content && { "gen_ai.output.messages": answerJson([{ type: "text", text }], "stop", content) }),
    },
    error: failed,
  };
}

/** Returns the reason of a run that was stopped, or that reached a limit. */
function reasonOf(status: RunResult["status"], reason: string | undefined, mask: MaskText | undefined): Attributes {
  if (reason === undefined || (status !== "aborted" && status !== "limit")) return {};
  const isContent = status === "limit" && !limitNames.includes(reason);
  return mask || !isContent ? { "jizai.run.reason": mask?.(reason) ?? reason } : {};
}

/** Describes the outcome of an aborted run. */
export function abortOutcome({ reason, source, usage, message }: AbortContext, details: Details): Outcome {
  const status = reason === "deadline" ? "limit" : "aborted";
  const given = source !== "hook" || details.content ? { reason } : {}; // a hook's reason is content that redact() has not masked
  return runOutcome({ status, ...given, usage, text: message ? textOf(message) : "" }, details);
}

/** Describes a message from outside that was refused or changed. */
export function inputOutcome({ status }: InputResult): Outcome {
  return { details: { "jizai.input.status": status === "accepted" ? "changed" : "refused" } };
}
