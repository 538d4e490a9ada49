/**
 * The other points, for observers: `session`, `prompt`, `compact`, `subagent`, `error` and `abort`.
 *
 * @module
 */
import { type Event, type Middleware, type RunResult, type Scope, textOf } from "../../../../mod.ts";
import { messageOf } from "../../kit/warn.ts";
import { type Hooks, lengthOf, nanoseconds } from "../hooks.ts";

/** Creates the hooks of observers. `ready` settles when hooks can be asked. */
export function runHooks(
  { observers, notes, channel }: Hooks,
  ready: () => Promise<void>,
): Required<Pick<Middleware, "session" | "prompt" | "compact" | "subagent" | "error" | "abort">> {
  const isObserved = observers.has("llm_delta", "steering_injected", "interrupt_received");

  function observe(ctx: Scope, event: Event): void {
    const { turns } = ctx.run.used;
    switch (event.type) {
      case "text.delta":
        return observers.notify("llm_delta", ctx, turns, () => delta(event.text, ""));
      case "reasoning.delta":
        return observers.notify("llm_delta", ctx, turns, () => delta("", event.text));
      case "steering.injected":
        return observers.notify("steering_injected", ctx, turns, () => ({
          Count: event.messages.length,
          TotalContentLen: lengthOf(event.messages.map(textOf).join("")),
        }));
      case "steering.interrupted":
        return observers.notify("interrupt_received", ctx, turns, () => interrupted("graceful"));
    }
  }

  return {
    async session(ctx, next) {
      await ready();
      const result = await next();
      const { run } = ctx;
      if (result.status === "paused") return result;
      observers.notify("turn_end", ctx, run.used.turns, () => ({
        Status: statusOf(result),
        Workspace: "",
        Iterations: run.used.turns,
        Duration: nanoseconds(run.now() - run.startedAt),
        FinalContentLen: lengthOf(result.text),
        UserMessage: notes(run).prompt,
        FinalContent: result.text,
      }));
      return result;
    },
    async prompt(ctx, next) {
      const { prompt, run, resumed } = ctx;
      notes(run).prompt = textOf(prompt);
      if (!resumed) {
        observers.notify("turn_start", ctx, 0, () => ({
          Channel: channel,
          ChatID: run.session,
          UserMessage: textOf(prompt),
          MediaCount: prompt.parts.filter(({ type }) => type === "media").length,
        }));
      }
      if (!isObserved) return await next();
      return await next({
        emit(event) {
          observe(ctx, event);
          ctx.emit(event);
        },
      });
    },
    async compact(ctx, next) {
      const compaction = await next();
      if (compaction.type !== "compacted") return compaction;
      const { length } = compaction.messages;
      observers.notify("context_compress", ctx, ctx.run.used.turns, () => ({
        Reason: reasons[ctx.trigger],
        DroppedMessages: Math.max(0, ctx.transcript.length - length),
        RemainingMessages: length,
      }));
      return compaction;
    },
    async subagent(ctx, next) {
      const { child: AgentID, run: { id: ParentTurnID, session: TargetChatID, used: { turns } } } = ctx;
      observers.notify("subturn_spawn", ctx, turns, () => ({ AgentID, Label: AgentID, ParentTurnID }));
      const result = await next();
      if (result.status === "paused") return result;
      observers.notify("subturn_end", ctx, turns, () => ({ AgentID, Status: statusOf(result) }));
      observers.notify("subturn_result_delivered", ctx, turns, () => ({
        TargetChannel: channel,
        TargetChatID,
        ContentLen: lengthOf(result.text),
      }));
      return result;
    },
    async error(ctx, next) {
      const { source, error, run } = ctx;
      observers.notify("error", ctx, run.used.turns, () => ({
        Stage: source === "model" ? "llm" : source,
        Message: messageOf(error),
      }));
      return await next();
    },
    async abort(ctx, next) {
      if (ctx.reason !== "failure") {
        if (ctx.source !== "hook") {
          observers.notify("interrupt_received", ctx, ctx.run.used.turns, () => interrupted("hard_abort"));
        }
      }
      await next();
    },
  };
}

function interrupted(Kind: "graceful" | "hard_abort") {
  return { Kind, Role: "", ContentLen: 0, QueueDepth: 0, HintLen: 0 };
}

/** The reasons of a compaction. */
const reasons = { auto: "proactive_budget", overflow: "llm_retry", manual: "summarize" } as const;

function statusOf({ status }: RunResult): "completed" | "error" | "aborted" {
  if (status === "failed") return "error";
  return status === "aborted" || status === "cancelled" ? "aborted" : "completed";
}

function delta(text: string, reasoning: string) {
  return { ContentDeltaLen: lengthOf(text), ReasoningDeltaLen: lengthOf(reasoning) };
}
