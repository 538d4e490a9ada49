/**
 * A run as hooks and tools see it.
 *
 * @module
 */
import type { Usage } from "../../protocol/message.ts";
import type { PersonAnswer } from "../../protocol/question.ts";
import { replySchema } from "../calls/question.ts";
import { expectNames } from "../../protocol/shape.ts";
import { End, type EndOptions, Pause } from "../hooks/interrupt.ts";
import { expectJson } from "../lib/json_value.ts";
import type { QuestionOptions, Run, Used } from "../hooks/scope.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Events } from "./events.ts";
import type { ExitState } from "./exit_state.ts";
import type { Limits } from "./limits.ts";
import type { Loop } from "./loop.ts";

/** The part of a run that its view shows. */
export interface ViewedRun
  extends Pick<Run, "id" | "session" | "owner" | "startedAt" | "path" | "call" | "state" | "sessionState"> {
  readonly definition: { readonly name: string; readonly now: (() => number) | undefined };
  readonly parent: ViewedRun | undefined;
  readonly view: Run;
  readonly events: Pick<Events, "report">;
  readonly exit: Pick<ExitState, "offerInterrupt">;
  readonly loop: Pick<Loop<never>, "answers" | "counters">;
  readonly arrivals: Pick<Arrivals, "finishing">;
  readonly usage: Usage;
  readonly limits: Limits;
}

/** A run as hooks see it. A class, because an object literal with accessors costs a microsecond each time it is created. */
export class RunView implements Run {
  readonly id: string;
  readonly session: string;
  readonly owner: string | undefined;
  readonly startedAt: number;
  readonly path: readonly string[];
  readonly agent: string;
  readonly parent: Run | undefined;
  readonly call: string | undefined;
  readonly state: Map<string, unknown>;
  readonly sessionState: Map<string, unknown>;
  readonly #engine: ViewedRun;

  constructor(engine: ViewedRun) {
    this.id = engine.id;
    this.session = engine.session;
    this.owner = engine.owner;
    this.startedAt = engine.startedAt;
    this.path = engine.path;
    this.agent = engine.definition.name;
    this.parent = engine.parent?.view;
    this.call = engine.call;
    this.state = engine.state;
    this.sessionState = engine.sessionState;
    this.#engine = engine;
  }

  /** The run, for features of the engine. A property, so that it works across copies of the package. */
  get "~engine"(): ViewedRun {
    return this.#engine;
  }
  get answers(): readonly PersonAnswer[] {
    return this.#engine.loop.answers.map(({ answer }) => answer);
  }
  get usage(): Usage {
    return this.#engine.usage;
  }
  get used(): Used {
    const { turns, calls, continuations } = this.#engine.loop.counters;
    return { turns, calls, continuations };
  }
  get limits(): Limits {
    return this.#engine.limits;
  }
  get finishing(): boolean {
    return this.#engine.arrivals.finishing;
  }

  readonly now = (): number => (this.#engine.definition.now ?? Date.now)();

  readonly report = (error: unknown): string => this.#engine.events.report(error);

  readonly end = (reason: string, options: EndOptions = {}): End => {
    expectJson("Cannot end the run", reason);
    expectNames("Cannot end the run", options, ["as", "rollback", "withhold", "tree"]);
    const end = new End(reason, options);
    for (let run: ViewedRun | undefined = this.#engine; run; run = end.tree ? run.parent : undefined) {
      run.exit.offerInterrupt(end);
    }
    return end;
  };

  readonly pause = (question: string, options?: QuestionOptions): Pause => {
    const pause = new Pause([{ questions: [question], schema: replySchema, ...options }]);
    // after the constructor, which handles the rejection of a promise
    if (typeof question !== "string") throw new TypeError("Cannot pause: expected a question as text");
    return pause;
  };
}
