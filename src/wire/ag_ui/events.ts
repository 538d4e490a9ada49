/**
 * Events of a run as AG-UI events.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";
import type { Usage } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import type { EventOf } from "../encoder.ts";
import { frameOf } from "../frames.ts";
import type { EventEncoder } from "../wire.ts";
import { type AgentEncoder, agentEncoder } from "./agent_encoder.ts";
import { historyOf } from "./history.ts";
import { interruptId, type RunInput } from "./request.ts";

/** Creates the encoder of the response to a request. */
export function runEncoder({ threadId, runId, messages: sent }: RunInput): EventEncoder {
  const history = historyOf(sent);
  let agent: AgentEncoder | undefined;

  /** Encodes the resume token as a field of the newest message, because clients send their messages back unchanged. */
  function resumeToken({ resumeToken: encryptedValue }: EventOf<"run.paused">): string {
    if (encryptedValue === undefined) return "";
    const entityId = [...sent, ...history.messages].at(-1)?.id;
    return frameOf({ type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId, encryptedValue });
  }

  return (event, id) => {
    if (event.type === "run.started" && !agent) {
      agent = agentEncoder(event.run, history);
      return frameOf({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
    }
    const end = endOf({ threadId, runId }, event, id);
    if (!agent || !end) return agent?.encode(event) ?? "";
    const closed = agent.close();
    const text = event.type === "run.finished" && history.messages.length === 0 ? event.text : "";
    const token = event.type === "run.paused" ? resumeToken(event) : "";
    return closed + agent.wholeText(`${runId}.final`, text) + token + frameOf(end);
  };
}

/** Returns the AG-UI event that ends a response; undefined for every other event. */
function endOf(ids: object, event: Event, id: number): object | undefined {
  switch (event.type) {
    case "run.paused": {
      const interrupts = event.questions.filter((question) => !isForClient(question));
      const outcome = interrupts.length > 0
        ? { type: "interrupt", interrupts: interrupts.map((question) => interruptOf(question, id)) }
        : { type: "success", pendingToolCallIds: event.questions.map(({ callId }) => callId) };
      return runFinished(ids, outcome, event.usage);
    }
    case "run.finished":
      return { ...runFinished(ids, { type: "success" }, event.usage), result: event.output ?? event.text };
    case "run.aborted":
      return runFinished(ids, { type: "cancelled" }, event.usage);
    case "run.failed":
      return runError(event);
    default:
      return undefined;
  }
}

function runError({ message, code, error: id, retryAfter, usage }: EventOf<"run.failed">): object {
  return { type: "RUN_ERROR", message, code, id, retryAfter, usage: usageOf(usage) };
}

function runFinished(ids: object, outcome: object, usage: Usage): object {
  return { type: "RUN_FINISHED", ...ids, outcome, usage: usageOf(usage) };
}

/** Encodes a question as an interrupt. */
function interruptOf({ callId, tool, questions, schema, ...more }: Question, pausedAt: number): object {
  return {
    id: interruptId(callId, pausedAt),
    reason: tool === undefined ? "input_required" : "tool_call",
    message: questions.join("\n"),
    toolCallId: tool && callId,
    responseSchema: schema,
    metadata: { tool, ...more },
  };
}

function usageOf({ input, output, cached }: Usage): readonly object[] {
  return [{ inputTokens: input, outputTokens: output, cachedInputTokens: cached }];
}
