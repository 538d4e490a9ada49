/**
 * Runs as events of AG-UI.
 *
 * @module
 */
import type { Event, Question } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { frameOf } from "../frames.ts";
import { interruptId, type RunInput } from "./request.ts";
import { type Told, type Voice, voice } from "./voice.ts";

/** Begins a response to `input`; gives the events of AG-UI that an event is, as frames. */
export function telling({ threadId, runId, messages: held, ran }: RunInput): (event: Event, id: number) => string {
  const told: Told = {
    messages: [],
    again: () =>
      frameOf({ type: "MESSAGES_SNAPSHOT", messages: [...held, ...told.messages.map((message) => message())] }),
    ran,
  };
  let root: Voice | undefined;
  let run = "";

  function finish(rest: object, usage: Usage): string {
    return frameOf({ type: "RUN_FINISHED", threadId, runId, ...rest, usage: [usageOf(usage)] });
  }

  function paused(questions: readonly Question[], pause: number, usage: Usage): string {
    const interrupts = questions.filter((question) => !isForClient(question)).map((question) =>
      asking(question, pause)
    );
    if (interrupts.length > 0) return finish({ outcome: { type: "interrupt", interrupts } }, usage);
    const pendingToolCallIds = questions.map(({ callId }) => callId);
    return finish({ outcome: { type: "success", pendingToolCallIds } }, usage);
  }

  return (event, id) => {
    switch (event.type) {
      case "run.started":
        if (root) return "";
        run = event.run;
        root = voice(run, told);
        return frameOf({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
      case "run.paused":
        return (root?.end() ?? "") + paused(event.questions, id, event.usage);
      case "run.finished": {
        const { text, output, usage } = event;
        const ended = root?.end() ?? "";
        const rest = told.messages.length > 0 ? "" : root?.say(`${run}.final`, text) ?? "";
        return ended + rest + finish({ result: output ?? text, outcome: { type: "success" } }, usage);
      }
      case "run.aborted":
        return (root?.end() ?? "") + finish({ outcome: { type: "cancelled" } }, event.usage);
      case "run.failed": {
        const { message, error: code, usage } = event;
        return (root?.end() ?? "") + frameOf({ type: "RUN_ERROR", message, code, usage: [usageOf(usage)] });
      }
      default:
        return root?.tell(event) ?? "";
    }
  };
}

/** A question, as what interrupts a run. */
function asking({ callId, tool, questions, schema, ...more }: Question, pause: number): object {
  return {
    id: interruptId(callId, pause),
    reason: tool === undefined ? "input_required" : "tool_call",
    message: questions.join("\n"),
    ...(callId !== undefined && tool !== undefined && { toolCallId: callId }),
    ...(schema && { responseSchema: schema }),
    metadata: { tool, ...more },
  };
}

function usageOf({ input, output, cached }: Usage): object {
  return { inputTokens: input, outputTokens: output, cachedInputTokens: cached };
}
