/**
 * Runs as events of AG-UI.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";
import type { Usage } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { frameOf } from "../frames.ts";
import { interruptId, type RunInput } from "./request.ts";
import { type Told, type Voice, voice } from "./voice.ts";

/** Begins a response to `input`; gives the events of AG-UI that an event is, as frames. */
export function telling({ threadId, runId, messages }: RunInput): (event: Event, id: number) => string {
  const told: Told = {
    messages: [],
    again: () => frameOf({ type: "MESSAGES_SNAPSHOT", messages: [...messages, ...told.messages] }),
    ran: (call) => messages.some(({ toolCallId }) => toolCallId === call),
  };
  let root: Voice | undefined;

  /** Has the client keep what it has to bring back, with the newest of its messages. */
  function keep({ resumeToken: encryptedValue }: Extract<Event, { readonly type: "run.paused" }>): string {
    if (encryptedValue === undefined) return "";
    const entityId = [...messages, ...told.messages].at(-1)?.id;
    return frameOf({ type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId, encryptedValue });
  }

  return (event, id) => {
    if (event.type === "run.started" && !root) {
      root = voice(event.run, told);
      return frameOf({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
    }
    const last = lastOf({ threadId, runId }, event, id);
    if (!root || !last) return root?.tell(event) ?? "";
    const ended = root.end();
    const unsaid = event.type === "run.finished" && told.messages.length === 0 ? event.text : "";
    return ended + root.say(`${runId}.final`, unsaid) + (event.type === "run.paused" ? keep(event) : "") +
      frameOf(last);
  };
}

/** How a response ends; nothing where it does not. */
function lastOf(at: object, event: Event, id: number): object | undefined {
  switch (event.type) {
    case "run.paused": {
      const interrupts = event.questions.filter((question) => !isForClient(question));
      const outcome = interrupts.length > 0
        ? { type: "interrupt", interrupts: interrupts.map((question) => asking(question, id)) }
        : { type: "success", pendingToolCallIds: event.questions.map(({ callId }) => callId) };
      return finished(at, outcome, event.usage);
    }
    case "run.finished":
      return { ...finished(at, { type: "success" }, event.usage), result: event.output ?? event.text };
    case "run.aborted":
      return finished(at, { type: "cancelled" }, event.usage);
    case "run.failed":
      return { type: "RUN_ERROR", message: event.message, code: event.error, usage: usageOf(event.usage) };
    default:
      return undefined;
  }
}

function finished(at: object, outcome: object, usage: Usage): object {
  return { type: "RUN_FINISHED", ...at, outcome, usage: usageOf(usage) };
}

/** A question, as what interrupts a run. */
function asking({ callId, tool, questions, schema, ...more }: Question, pause: number): object {
  return {
    id: interruptId(callId, pause),
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
