/**
 * Tracks the spans of one run.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import type { Context } from "./api.ts";
import { type Details, hookOutcome, promptAttributes, toolOutcome, unexecutedOutcome } from "./operations.ts";
import type { ActiveOperation, Operation, Recorder } from "./recorder.ts";

/** The operation of a run, and the operations in it. */
export interface RunSpans extends ActiveOperation {
  /** Starts an operation in the run: the execution of a call under its id, a request to the model under "". */
  start(id: string, operation: Operation): ActiveOperation;
  /** Returns the context of an executing call. */
  contextOf(call: string): Context | undefined;
  /** Records the operations that only events report. */
  observe(event: Event): void;
}

/** Tracks a run. When it ends, every operation that is still in progress ends too. */
export function trackRun(run: ActiveOperation, { start, record }: Recorder, details: Details): RunSpans {
  const active = new Map<string, ActiveOperation>();
  return {
    ...run,
    start(id, operation) {
      const started = start(operation, run.context);
      active.set(id, started);
      return started;
    },
    contextOf: (call) => active.get(call)?.context,
    observe(event) {
      switch (event.type) {
        case "prompt.accepted":
          if (details.content) run.span.setAttributes(promptAttributes(event, details.content));
          return;
        case "hook.acted":
          if (event.middleware === "otel" || event.did.includes("passed")) return;
          return record(`hook ${event.middleware} ${event.point}`, hookOutcome(event), run.context, event.ms);
        case "tool.finished": {
          const executed = active.get(event.call);
          active.delete(event.call);
          if (executed) return executed.end(toolOutcome(event.result, details)); // has ended, unless a hook hangs
          return record(`execute_tool ${event.result.name}`, unexecutedOutcome(event, details), run.context);
        }
      }
    },
    end(outcome) {
      for (const operation of active.values()) operation.end({ error: "abandoned" });
      run.end(outcome);
    },
  };
}
