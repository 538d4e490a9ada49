/**
 * The requests to the shop of the examples, and its expected answers on every platform.
 *
 * @module
 */

/** Milliseconds of a step that does not finish before the shop is killed. */
export const unlimited = 2 ** 30;

/** Makes the shop run two calls in parallel, each in three steps. */
export const prompt = "Count the kettles and deliver 2 hooks";

/** The expected events until both calls have made a step. */
export const begun: readonly string[] = [
  "run.started",
  "session.opened new",
  `prompt.accepted ${prompt}`,
  "turn.started 1",
  "model.started rule-based",
  'call.delta call_1 {"item":"kettles"}',
  "call.ready count call_1",
  'call.delta call_2 {"item":"hooks","amount":2}',
  "call.ready deliver call_2",
  "model.finished calls",
  "tool.started count call_1",
  "approval.decided call_1 allow policy",
  "tool.started deliver call_2",
  "approval.decided call_2 allow policy",
  'tool.progress call_1 {"shelf":1}',
  'tool.progress call_2 {"shelf":1}',
];

/** The expected events after a kill: the count starts again, the delivery does not. */
export const resumedEvents: readonly string[] = [
  "run.started resumed",
  "session.opened resume",
  "turn.started 1",
  "tool.started count call_1",
  "tool.started deliver call_2",
  'tool.progress call_1 {"shelf":1}',
  'tool.progress call_1 {"shelf":2}',
  'tool.progress call_1 {"shelf":3}',
  "tool.finished call_1 ok There are 7 kettles.",
  "tool.finished call_2 aborted Interrupted: it is not known whether it was done.",
  "turn.finished 1",
  "turn.started 2",
  "model.started rule-based",
  "text.delta There are 7 kettles. Interrupted: it is not known whether it was done.",
  "model.finished stop",
  "turn.finished 2",
  "session.closed",
  "run.finished done There are 7 kettles. Interrupted: it is not known whether it was done.",
];
