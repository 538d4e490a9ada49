/**
 * The `input` point for a message to a run that another process executes.
 *
 * @module
 */
import type { UserMessage } from "../../protocol/message.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import { Steering } from "../features/steering.ts";
import type { Mail, Session } from "../persistence/session.ts";
import { claimOf } from "../persistence/claim.ts";
import { savedForm } from "../persistence/saved_session.ts";
import { SessionVersion } from "../persistence/session_version.ts";
import type { SessionWriter } from "../persistence/writer.ts";
import { RunControl } from "../run/control.ts";
import type { OnError } from "../run/events.ts";
import { orRefuse, reviewMessage } from "./review.ts";
import { EngineRun, type StepScope } from "../run/run.ts";
import { nullSink } from "./options.ts";

/** A request of another process that brings a message. */
type MessageMail = Extract<Mail, { type: "message" }>;

/** A message, the session of its run, the vars of the request that brought it, and the receiver of errors. */
export interface RemoteMessage {
  readonly session: Session;
  readonly mail: MessageMail;
  readonly vars: unknown;
  readonly onError: OnError;
}

/** Saves nothing: the run is only looked at. */
const noWriter: SessionWriter = {
  claim: () => Promise.resolve(true),
  checkpoint: () => undefined,
  end: () => Promise.resolve(true),
};

/** Returns true if the agent reviews messages from outside: it has `input` hooks. */
export function reviewsInput(agent: { readonly "~definition": object }): boolean {
  return (agent["~definition"] as AgentDefinition<StepScope>).reviewsInput; // agent() made it
}

/**
 * Runs the `input` hooks of `agent` for a message, before it is saved for the run that has `session`. Returns it with its context, in the form that
 * the store keeps. The hooks see the run as it was saved last; their events and changes of its state are dropped. Throws a `SessionError` if the message is
 * refused.
 */
export async function reviewForRemoteRun(
  agent: { readonly "~definition": object },
  { session, mail, vars, onError }: RemoteMessage,
): Promise<Mail> {
  const definition = agent["~definition"] as AgentDefinition<StepScope>; // agent() made it
  const { run: start } = session;
  if (!start || !definition.reviewsInput) return mail;
  const beginning = {
    definition,
    options: { vars, onError },
    limits: definition.limits,
    session: session.id,
    sink: nullSink,
    control: new RunControl(),
    arrivals: new Steering(),
  };
  const engine = new EngineRun(beginning, { ...claimOf(session, SessionVersion.none), start }, () => noWriter);
  try {
    const reviewed = reviewMessage(engine, engine.scope(), "steering", mail.message);
    const accepted = await orRefuse(`Cannot send a message to run "${engine.id}"`, reviewed);
    return storedForm(definition, session, { ...mail, ...fieldsOf(accepted) });
  } finally {
    engine.close();
  }
}

/** Returns the parts of a request for a message after its context. */
function fieldsOf(accepted: readonly UserMessage[]): Partial<MessageMail> {
  const [message, context] = [accepted.at(-1), accepted.slice(0, -1)];
  return { ...(message && { message }), ...(context.length > 0 && { context }) };
}

/** Returns a request as the middleware of an agent lets the store keep it. */
function storedForm(definition: AgentDefinition<StepScope>, { id }: Session, mail: Mail): Mail {
  const { mail: [stored = mail] = [] } = savedForm(definition, { id, messages: [], mail: [mail] });
  return stored;
}
