/**
 * Events of a run as AG-UI events.
 *
 * @module
 */
import type { Question } from "../../protocol/question.ts";
import { noUsage, type Usage, usageSince } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { tableEncoder } from "../encoder.ts";
import { frameOf } from "../frames.ts";
import { refusalOf } from "../refusal.ts";
import type { EventEncoder, Pause } from "../wire.ts";
import { agentEncoder } from "./agent_encoder.ts";
import { historyOf } from "./history.ts";
import { questionId } from "../answer.ts";
import type { RunInput } from "./request.ts";

/** Creates the encoder of the response to a request. */
export function runEncoder({ threadId, runId, messages: sent }: RunInput): EventEncoder {
  const history = historyOf(sent);
  let run = "";
  let before = noUsage;
  const agent = agentEncoder(() => run, history);

  /** Encodes the event that ends the response. Its usage is that of this response, because each response is a run of its own in AG-UI. */
  function end(usage: Usage, fields: object): string {
    const { input, output, ...since } = usageSince(usage, before);
    const countOf = (key: keyof typeof since) => usage[key] === undefined ? undefined : since[key];
    const details = {
      cachedInputTokens: countOf("cached"),
      cacheWriteInputTokens: countOf("cacheWrite"),
      reasoningTokens: countOf("reasoning"),
    };
    return frameOf({ ...fields, usage: [{ inputTokens: input, outputTokens: output, ...details }] });
  }

  function finished(usage: Usage, outcome: object, more: object = {}): string {
    return end(usage, { type: "RUN_FINISHED", threadId, runId, outcome, ...more });
  }

  function failed(usage: Usage, error: object): string {
    return end(usage, { type: "RUN_ERROR", ...error });
  }

  /** Encodes the resume token as a field of the newest message, because clients send their messages back unchanged. */
  function tokenFrame(encryptedValue: string | undefined): string {
    if (encryptedValue === undefined) return "";
    const entityId = [...sent, ...history.messages].at(-1)?.id;
    return frameOf({ type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId, encryptedValue });
  }

  return tableEncoder({
    "run.started"(event) {
      if (run !== "") return "";
      ({ run, usage: before = noUsage } = event);
      return frameOf({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
    },
    "run.paused"({ questions, usage, resumeToken }, id) {
      const interrupts = questions.filter((question) => !isForClient(question))
        .map((question) => interruptOf(question, { run, pausedAt: id }));
      const outcome = interrupts.length > 0
        ? { type: "interrupt", interrupts }
        : { type: "success", pendingToolCallIds: questions.map(({ callId }) => callId) };
      return agent.close() + tokenFrame(resumeToken) + finished(usage, outcome);
    },
    "run.finished"(event) {
      const { status, text, reason, finish, output, usage } = event;
      const closed = agent.close();
      const message = refusalOf(event);
      if (message !== undefined) return closed + failed(usage, { message, code: status });
      const rest = history.messages.every(({ role }) => role === "reasoning")
        ? agent.wholeText(`${runId}.final`, text)
        : "";
      const result = { result: output ?? text, metadata: { status, reason, finish } };
      return closed + rest + finished(usage, { type: "success" }, result);
    },
    "run.aborted": ({ usage }) => agent.close() + finished(usage, { type: "cancelled" }),
    "run.failed": ({ message, code, error: id, retryAfter, usage }) =>
      agent.close() + failed(usage, { message, code, metadata: { id, retryAfter } }),
  }, agent.encode);
}

/** Encodes a question as an interrupt. */
function interruptOf({ callId, tool, questions, schema, ...more }: Question, pause: Pause): object {
  return {
    id: questionId(callId, pause),
    reason: tool === undefined ? "input_required" : "tool_call",
    message: questions.join("\n"),
    toolCallId: tool && callId,
    responseSchema: schema,
    metadata: { tool, ...more },
  };
}
