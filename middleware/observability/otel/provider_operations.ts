/**
 * Describes calls that the provider of the model runs, with the attributes of the semantic conventions for generative AI.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import { valueJson } from "./content.ts";
import type { Details } from "./operations.ts";
import type { Operation, Outcome } from "./recorder.ts";

/** Describes a call that the provider runs. */
export function providerOperation(
  { turn, content: call }: Extract<Event, { type: "provider_tool.started" }>,
  { content }: Details,
): Operation {
  return {
    name: "execute_tool",
    target: call.name,
    labels: { "gen_ai.tool.name": call.name },
    details: {
      "gen_ai.tool.call.id": call.callId,
      "gen_ai.tool.type": "extension",
      "jizai.turn": turn,
      ...(content && { "gen_ai.tool.call.arguments": valueJson(call.input, content) }),
    },
  };
}

/** Describes the result of a call that the provider has run. */
export function providerOutcome(
  { content: result }: Extract<Event, { type: "provider_tool.finished" }>,
  { content }: Details,
): Outcome {
  return {
    ...(content && { details: { "gen_ai.tool.call.result": valueJson(result.output, content) } }),
    error: result.status === "ok" ? undefined : result.status,
  };
}
