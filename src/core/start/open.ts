/**
 * The opening of a run: it claims its session, and prepares the engine.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Sink } from "../../stream/channel.ts";
import type { AgentDefinition } from "../agent/definition.ts";
import type { Steering } from "../features/steering.ts";
import { expectJson } from "../lib/json_value.ts";
import { claim } from "../persistence/claim.ts";
import type { Claimed } from "../persistence/claim_options.ts";
import { SessionError } from "../persistence/session_error.ts";
import type { SessionWriter } from "../persistence/store.ts";
import type { RunControl } from "../run/control.ts";
import type { NumberedEvent } from "../run/events.ts";
import type { Limits } from "../run/limits.ts";
import { EngineRun, type StepScope } from "../run/run.ts";
import type { Opened, StartOptions } from "./options.ts";
import { reviewAnswers } from "./review.ts";
import { StoredRun } from "./stored_run.ts";

/** The parts of a run that exist before it has its session. */
export interface Beginning {
  readonly definition: AgentDefinition<StepScope>;
  readonly options: StartOptions;
  readonly limits: Limits;
  readonly session: string;
  readonly sink: Sink<NumberedEvent>;
  readonly control: RunControl;
  readonly steering: Steering;
  readonly opened: Promise<Opened>;
}

/** A run that has its session. */
export interface Ready {
  readonly engine: EngineRun;
  readonly writer: SessionWriter;
  readonly claimed: Claimed;
  /** The run as its writer sees it. */
  readonly stored: StoredRun;
  /** The number of the event before its first one. */
  readonly after: number;
  /** Events of the `input` hooks that ran before the first event. */
  readonly early: Event[];
}

/** Closes the run that has the session, with a reason. */
export type CloseOther = (reason: string) => Promise<unknown>;

/** Claims the session. A run that has it and must be closed is closed before. */
export async function open(beginning: Beginning, closeOther: CloseOther): Promise<Ready> {
  const { definition, options, session } = beginning;
  const tools = [...definition.tools, ...options.tools ?? []];
  const { recoveries } = beginning.limits;
  const about = { tools, session, child: options.parent !== undefined, arrival: arrivalOf(beginning), recoveries };
  const busy = () => new SessionError(`Cannot run session "${session}": another run took it`, "busy");
  if (options.compact && !definition.steps.compact) {
    const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
    throw new SessionError(`Cannot compact session "${session}": ${expected}`, "invalid");
  }
  for (const answer of options.answers ?? []) {
    if (answer.type === "approve") expectJson(`Cannot resume session "${session}" with an edited input`, answer.input);
  }
  let claimed = await claim(options, about);
  if ("close" in claimed) {
    await closeOther(claimed.close);
    claimed = await claim({ ...options, busy: "refuse" }, about);
    if ("close" in claimed) throw busy();
  }
  checkTools(beginning, claimed);
  const run = engineOf(beginning, claimed);
  if (!options.parent) await reviewGiven(run);
  if (!await run.writer.claim()) throw busy();
  return run;
}

/** Throws if a tool of this run has the name of an agent's own tool, or of one that a middleware may add: it would run in its place. */
function checkTools({ definition, options, session }: Beginning, { exit }: Claimed): void {
  for (const { name } of options.tools ?? []) {
    const isOwn = definition.tools.some((own) => own.name === name);
    const prefix = definition.use.flatMap(({ toolPrefixes = [] }) => toolPrefixes).find((each) =>
      name.startsWith(each)
    );
    const isAsked = exit?.questions?.some(({ tool }) => tool === name); // wires create a tool for each question that a client may answer
    if ((isOwn || prefix !== undefined) && !isAsked) {
      const why = isOwn
        ? `the agent has a tool "${name}"; expected another name`
        : `a middleware adds tools with the prefix "${prefix}"; expected a name without it, got "${name}"`;
      throw new SessionError(`Cannot add a tool to session "${session}": ${why}`, "invalid");
    }
  }
}

/** Returns the first position of a prompt. A parent's prompt to its child does not come from outside. */
function arrivalOf({ definition, options: { parent } }: Beginning): "arrived" | "input" {
  return definition.reviewsInput && !parent ? "arrived" : "input";
}

/** Runs the `input` hooks for the answers that a run continues with. Nothing is stored before. */
async function reviewGiven({ engine, claimed: { start, given }, early }: Ready): Promise<void> {
  if (given.length === 0) return;
  const scope = { ...engine.scope(), emit: (event: Event) => void early.push(event) };
  const earlier = start.answers.slice(0, start.answers.length - given.length);
  engine.loop.receive([...earlier, ...await reviewAnswers(engine, scope, given)]);
}

function engineOf(beginning: Beginning, claimed: Claimed): Ready {
  const { definition, options, limits, session, sink, control, steering } = beginning;
  const { store, parent, lease = 30_000, vars, onError } = options;
  const { start } = claimed;
  if (claimed.rollback) control.rollBack();
  const stored = new StoredRun({ ...beginning, claimed, engine: () => engine });
  const always = options.session !== undefined && !parent;
  if (!store.writer) {
    throw new TypeError('Cannot use the store: expected durable(store) of "@jizai/jizai/session/durable"');
  }
  const { version, mail: { length: mail } } = claimed;
  const writer = store.writer(store, stored, { version, always, lease, session, run: start.id, mail });
  const engine = new EngineRun({
    definition,
    session,
    owner: claimed.owner,
    sink,
    vars,
    limits,
    control,
    arrivals: steering,
    start,
    transcript: claimed,
    rules: parent?.run.rules ?? [...claimed.rules],
    sessionState: parent?.run.sessionState ?? new Map(claimed.state),
    parent,
    onError,
    answerFormat: options.answerFormat,
    writer,
    closing: claimed.closing,
  });
  steering.attach(engine.state);
  steering.receive(claimed.mail);
  return { engine, writer, claimed, stored, after: start.events, early: [] };
}
