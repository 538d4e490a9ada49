/**
 * A run as hooks and tools see it.
 *
 * @module
 */
import type { Usage } from "../../protocol/message.ts";
import { replySchema } from "../calls/question.ts";
import { End, Pause } from "../hooks/interrupt.ts";
import type { Run } from "../hooks/scope.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Events } from "./events.ts";
import type { Limits } from "./limits.ts";
import type { Loop } from "./loop.ts";

/** The key of a run in its view, for features of the engine. A property, so that it works across copies of the package. */
export const engineKey = "~engine";

/** The part of a run that its view shows. */
export interface ViewedRun
  extends Pick<Run, "id" | "session" | "owner" | "startedAt" | "path" | "call" | "state" | "sessionState"> {
  readonly definition: { readonly name: string };
  readonly parent: ViewedRun | undefined;
  readonly view: Run;
  readonly events: Pick<Events, "report">;
  readonly loop: Pick<Loop<never>, "answers" | "counters" | "offerInterrupt">;
  readonly arrivals: Pick<Arrivals, "finishing">;
  readonly usage: Usage;
  readonly limits: Limits;
}

/** Returns a run as hooks see it. */
export function viewOf(engine: ViewedRun): Run & { readonly [engineKey]: ViewedRun } {
  const { id, session, owner, startedAt, path, state, sessionState, definition, call, events, loop, arrivals } = engine;
  return {
    get [engineKey]() {
      return engine;
    },
    id,
    session,
    owner,
    startedAt,
    path,
    state,
    sessionState,
    agent: definition.name,
    call,
    parent: engine.parent?.view,
    get answers() {
      return loop.answers.map(({ answer }) => answer);
    },
    get usage() {
      return engine.usage;
    },
    get used() {
      const { turns, calls, continuations } = loop.counters;
      return { turns, calls, continuations };
    },
    get limits() {
      return engine.limits;
    },
    get finishing() {
      return arrivals.finishing;
    },
    report: (error) => events.report(error),
    end(reason, options) {
      const end = new End(reason, options);
      for (let run: ViewedRun | undefined = engine; run; run = end.tree ? run.parent : undefined) {
        run.loop.offerInterrupt(end);
      }
      return end;
    },
    pause: (question, options) => new Pause([{ questions: [question], schema: replySchema, ...options }]),
  };
}
