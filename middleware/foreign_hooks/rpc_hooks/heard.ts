/**
 * What hooks are told of at other points.
 *
 * @module
 */
import { type Event, type Middleware, type RunResult, type Scope, textOf } from "../../../mod.ts";
import { type Hooks, lengthOf, nanoseconds } from "./hooks.ts";

/** The hooks at `session` and `prompt`, and around what happens beside. `ready` settles when hooks can be asked. */
export function heard(
  { observers, notes, channel }: Hooks,
  ready: () => Promise<void>,
): Required<Pick<Middleware, "session" | "prompt" | "compact" | "subagent" | "error" | "abort">> {
  const hears = observers.hear("llm_delta", "steering_injected", "interrupt_received");

  function hear(ctx: Scope, event: Event): void {
    const { turns } = ctx.run.used;
    switch (event.type) {
      case "text.delta":
        return observers.tell("llm_delta", ctx, turns, () => delta(event.text, ""));
      case "reasoning.delta":
        return observers.tell("llm_delta", ctx, turns, () => delta("", event.text));
      case "steering.injected":
        return observers.tell("steering_injected", ctx, turns, () => ({
          Count: event.messages.length,
          TotalContentLen: lengthOf(event.messages.map(textOf).join("")),
        }));
      case "steering.interrupted":
        return observers.tell("interrupt_received", ctx, turns, () => interrupted("graceful"));
    }
  }

  return {
    async session(ctx, next) {
      await ready();
      const result = await next();
      const { run } = ctx;
      if (result.status === "paused") return result;
      observers.tell("turn_end", ctx, run.used.turns, () => ({
        Status: statusOf(result),
        Workspace: "",
        Iterations: run.used.turns,
        Duration: nanoseconds(Date.now() - run.startedAt),
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
        observers.tell("turn_start", ctx, 0, () => ({
          Channel: channel,
          ChatID: run.session,
          UserMessage: textOf(prompt),
          MediaCount: prompt.parts.filter(({ type }) => type === "media").length,
        }));
      }
      if (!hears) return await next();
      return await next({
        emit(event) {
          hear(ctx, event);
          ctx.emit(event);
        },
      });
    },
    async compact(ctx, next) {
      const compaction = await next();
      if (compaction.type !== "compacted") return compaction;
      const { length } = compaction.messages;
      observers.tell("context_compress", ctx, ctx.run.used.turns, () => ({
        Reason: reasons[ctx.trigger],
        DroppedMessages: Math.max(0, ctx.transcript.length - length),
        RemainingMessages: length,
      }));
      return compaction;
    },
    async subagent(ctx, next) {
      const { child: AgentID, run: { id: ParentTurnID, session: TargetChatID, used: { turns } } } = ctx;
      observers.tell("subturn_spawn", ctx, turns, () => ({ AgentID, Label: AgentID, ParentTurnID }));
      const result = await next();
      if (result.status === "paused") return result;
      observers.tell("subturn_end", ctx, turns, () => ({ AgentID, Status: statusOf(result) }));
      observers.tell("subturn_result_delivered", ctx, turns, () => ({
        TargetChannel: channel,
        TargetChatID,
        ContentLen: lengthOf(result.text),
      }));
      return result;
    },
    async error(ctx, next) {
      const { source, error, run } = ctx;
      observers.tell("error", ctx, run.used.turns, () => ({
        Stage: source === "model" ? "llm" : source,
        Message: error instanceof Error ? error.message : String(error),
      }));
      return await next();
    },
    async abort(ctx, next) {
      if (ctx.reason !== "failure") {
        observers.tell("interrupt_received", ctx, ctx.run.used.turns, () => interrupted("hard_abort"));
      }
      await next();
    },
  };
}

function interrupted(Kind: "graceful" | "hard_abort") {
  return { Kind, Role: "", ContentLen: 0, QueueDepth: 0, HintLen: 0 };
}

/** Why a conversation was made shorter. */
const reasons = { auto: "proactive_budget", overflow: "llm_retry", manual: "summarize" } as const;

function statusOf({ status }: RunResult): "completed" | "error" | "aborted" {
  if (status === "failed") return "error";
  return status === "aborted" || status === "cancelled" ? "aborted" : "completed";
}

function delta(text: string, thought: string) {
  return { ContentDeltaLen: lengthOf(text), ReasoningDeltaLen: lengthOf(thought) };
}
