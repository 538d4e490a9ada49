/**
 * The values and services that a run receives when it starts.
 *
 * @module
 */
import type { Sink } from "../../stream/channel.ts";
import type { AnswerFormat } from "../agent/definition.ts";
import type { Rule } from "../persistence/session.ts";
import type { RunControl } from "./control.ts";
import type { Events, NumberedEvent, OnError } from "./events.ts";
import type { Limits } from "./limits.ts";
import type { LoopOptions } from "./loop.ts";
import type { RunSnapshot } from "./position.ts";
import type { Arrivals } from "./step.ts";
import type { Transcript } from "./transcript.ts";

/** The values and services that a run receives when it starts. */
export interface RunSetup {
  readonly session: string;
  /** The owner of the session. */
  readonly owner: string | undefined;
  readonly sink: Sink<NumberedEvent>;
  readonly vars: unknown;
  readonly limits: Limits;
  readonly control: RunControl;
  readonly arrivals: Arrivals;
  readonly start: RunSnapshot;
  readonly transcript: (events: Events) => Transcript;
  readonly rules: Rule[];
  readonly sessionState: Map<string, unknown>;
  readonly onError?: OnError | undefined;
  /** The format of the final answer, if the agent has none of its own. */
  readonly answerFormat?: AnswerFormat | undefined;
  /** Saves the run at a position. */
  readonly save: LoopOptions["save"];
  /** Saves a copy of the messages under a new session. Returns its id, or undefined if there is no room for it. */
  readonly archive: () => Promise<string | undefined>;
  /** True if the saved state outlives the process. */
  readonly durable: boolean;
  /** The reason to end a run that is only closed, once its open calls have results. */
  readonly closing?: string | undefined;
}
