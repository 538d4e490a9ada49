/**
 * The `input` point for a message to a run that another process executes.
 *
 * @module
 */
import type { UserMessage } from "../../protocol/message.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import { Steering } from "../features/steering.ts";
import type { Session } from "../persistence/session.ts";
import { RunControl } from "../run/control.ts";
import type { OnError } from "../run/events.ts";
import { hasInputHooks, reviewMessage } from "./review.ts";
import { EngineRun, type StepScope } from "../run/run.ts";
import { nullSink } from "./options.ts";
import { Transcript } from "../run/transcript.ts";

/** A message, the session of its run, the vars of the request that brought it, and the receiver of errors. */
export interface RemoteMessage {
  readonly session: Session;
  readonly message: UserMessage;
  readonly vars: unknown;
  readonly onError: OnError;
}

/**
 * Runs the `input` hooks of `agent` for a message, before it is saved for the run that has `session`. Returns it after its context. The hooks see the run
 * as it was saved last; their events and changes of its state are dropped. Throws a `SessionError` if the message is refused.
 */
export async function reviewForRemoteRun(
  agent: { readonly "~definition": object },
  { session, message, vars, onError }: RemoteMessage,
): Promise<readonly UserMessage[]> {
  const definition = agent["~definition"] as AgentDefinition<StepScope>; // agent() made it
  const { run: start } = session;
  if (!start || !hasInputHooks(definition)) return [message];
  const engine = new EngineRun({
    definition,
    session: session.id,
    owner: session.owner,
    sink: nullSink,
    vars,
    limits: definition.limits,
    control: new RunControl(),
    arrivals: new Steering(),
    start,
    transcript: (events) => new Transcript({ ...session, before: start.before }, events),
    rules: [],
    sessionState: new Map(session.state),
    onError,
    save: () => Promise.resolve(),
    archive: () => Promise.resolve(undefined),
    durable: false,
  });
  try {
    return await reviewMessage(engine, engine.scope(), "steering", message);
  } finally {
    engine.close();
  }
}
