/**
 * The values and services that a run receives when it starts.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AnswerFormat } from "../agent/definition.ts";
import type { Rule } from "../persistence/session.ts";
import type { SessionWriter } from "../persistence/store.ts";
import type { RunControl } from "./control.ts";
import type { NumberedEvent, OnError } from "./events.ts";
import type { Limits } from "./limits.ts";
import type { RunSnapshot } from "./position.ts";
import type { Arrivals } from "./step.ts";

/** The part of a session's writer that a run uses while it works. */
export type RunWriter = Pick<SessionWriter, "durable" | "checkpoint" | "archive">;

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
  /** The session's messages, and the session that keeps those from before the last compaction. */
  readonly transcript: { readonly messages: readonly Message[]; readonly archive?: string | undefined };
  readonly rules: Rule[];
  readonly sessionState: Map<string, unknown>;
  readonly onError?: OnError | undefined;
  /** The format of the final answer, if the agent has none of its own. */
  readonly answerFormat?: AnswerFormat | undefined;
  /** Writes the session. */
  readonly writer: RunWriter;
  /** The reason to end a run that is only closed, once its open calls have results. */
  readonly closing?: string | undefined;
}
