/**
 * Tracks the spans of one run.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import type { Context } from "./api.ts";
import { type Details, hookOutcome, promptAttributes, toolOutcome, unexecutedOutcome } from "./operations.ts";
import { providerOperation, providerOutcome } from "./provider_operations.ts";
import type { ActiveOperation, Operation, Recorder } from "./recorder.ts";

/** The operation of a run, and the operations in it. */
export interface RunSpans extends ActiveOperation {
  /** Starts an operation in the run: the execution of a call under its id, a request to the model under "". */
  start(id: string, operation: Operation): ActiveOperation;
  /** Returns the context of an executing call. */
  contextOf(call: string): Context | undefined;
  /** Tells the name of a tool from one that the model made up. */
  addTool(name: string): void;
  /** Records the operations that only events report. */
  observe(event: Event): void;
}

/** Tracks a run. When it ends, every operation that is still in progress ends too. */
export function trackRun(run: ActiveOperation, { start, record }: Recorder, details: Details): RunSpans {
  const active = new Map<string, ActiveOperation>();
  const tools = new Set<string>();
  /** The calls that the provider of the model runs in the present turn. */
  const atProvider = new Map<string, ActiveOperation>();

  function endAtProvider(): void {
    for (const operation of atProvider.values()) operation.end({ error: "unanswered" });
    atProvider.clear();
  }

  return {
    ...run,
    start(id, operation) {
      const started = start(operation, run.context);
      active.set(id, started);
      return started;
    },
    contextOf: (call) => active.get(call)?.context,
    addTool: (name) => void tools.add(name),
    observe(event) {
      switch (event.type) {
        case "prompt.accepted":
          if (details.content) run.span.setAttributes(promptAttributes(event, details.content));
          return;
        case "hook.acted":
          if (event.middleware === "otel" || event.did.includes("passed")) return;
          return record(`hook ${event.middleware} ${event.point}`, hookOutcome(event), run.context, event.ms);
        case "provider_tool.started":
          return void atProvider.set(event.content.callId, start(providerOperation(event, details), run.context));
        case "provider_tool.finished":
          return atProvider.get(event.content.callId)?.end(providerOutcome(event, details));
        case "model.reset":
        case "model.finished":
          return endAtProvider();
        case "tool.finished": {
          const executed = active.get(event.call);
          active.delete(event.call);
          if (executed) return executed.end(toolOutcome(event.result, details)); // has ended, unless a hook hangs
          const { name } = event.result;
          const isTool = tools.has(name);
          return record(
            isTool ? `execute_tool ${name}` : "execute_tool",
            unexecutedOutcome(event, isTool, details),
            run.context,
          );
        }
      }
    },
    end(outcome) {
      endAtProvider();
      for (const operation of active.values()) operation.end({ error: "abandoned" });
      run.end(outcome);
    },
  };
}
