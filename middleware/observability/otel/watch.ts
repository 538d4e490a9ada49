/**
 * A run, while it is watched.
 *
 * @module
 */
import type { Event } from "../../../mod.ts";
import type { Context } from "./api.ts";
import type { Begun, Measures, Operation } from "./measure.ts";
import { acted, called, notExecuted, prompted, type Saying } from "./operations.ts";

/** A run that has begun. */
export interface Watched extends Begun {
  /** Begins something in it: the execution of a call under its id, a request to the model under "". */
  begin(id: string, operation: Operation): Begun;
  /** Where the execution of a call belongs. */
  within(call: string): Context | undefined;
  /** Makes spans of what only events tell. */
  hear(event: Event): void;
}

/** Watches a run: when it ends, whatever is left in it ends too. */
export function watch(run: Begun, { begin, mark }: Measures, saying: Saying): Watched {
  const begun = new Map<string, Begun>();
  return {
    ...run,
    begin(id, operation) {
      const inside = begin(operation, run.context);
      begun.set(id, inside);
      return inside;
    },
    within: (call) => begun.get(call)?.context,
    hear(event) {
      switch (event.type) {
        case "prompt.accepted":
          if (saying.content) run.span.setAttributes(prompted(event));
          return;
        case "hook.acted":
          if (event.middleware === "otel" || event.did.includes("passed")) return;
          return mark(`hook ${event.middleware} ${event.point}`, acted(event), run.context, event.ms);
        case "tool.finished": {
          const executed = begun.get(event.call);
          begun.delete(event.call);
          if (executed) return executed.end(called(event.result, saying)); // it has ended, unless a hook hangs
          return mark(`execute_tool ${event.result.name}`, notExecuted(event, saying), run.context);
        }
      }
    },
    end(outcome) {
      for (const left of begun.values()) left.end({ error: "abandoned" });
      run.end(outcome);
    },
  };
}
