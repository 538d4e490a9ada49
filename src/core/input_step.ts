/**
 * The `input` point: every message from outside passes it once, before it is accepted.
 *
 * @module
 */
import { reportFatal } from "./failure.ts";
import type { InputChange, InputContext, InputResult, InputSource } from "./points.ts";
import { type HookAnswer, type PointPolicy, policyOf } from "./policy.ts";
import type { Move, PositionAt } from "./position.ts";
import { cancelled, refused } from "./results.ts";
import type { EngineRun, StepScope } from "./run.ts";
import type { Scope } from "./scope.ts";
import { contextMessages, inputContext } from "./transcript.ts";
import type { Message } from "../protocol/message.ts";

const inputPolicy: PointPolicy<InputContext, InputChange, InputResult, undefined> = /* @__PURE__ */ policyOf(
  "input",
  ["messages", "context"],
  {
    core({ messages, context }) {
      const added = contextMessages(context, inputContext);
      return Promise.resolve({ status: "accepted", messages: added.length === 0 ? messages : [...added, ...messages] });
    },
    derive(inner, _, __, name) {
      validate(inner, name);
      return inner;
    },
    finalize,
  },
);

/** Throws a `TypeError` if a hook passes messages or context that the source cannot have. */
function validate({ source, messages, context }: InputContext, name: string): void {
  if (source === "history") return; // the transcript is repaired
  const fits = source === "prompt" || source === "steering" || context.length === 0;
  if (fits && messages.length === 1 && messages[0]?.role === "user") return;
  const expected = `expected one user message${fits ? "" : " without context"}`;
  throw new TypeError(`Cannot change the messages of a ${source} at input in "${name}": ${expected}`);
}

/** A refusal stands. An acceptance is that of the inner layers, so no hook can bypass a guard inside it. */
function finalize(
  { name, returned, called, below, runInner }: HookAnswer<InputContext, InputResult, undefined>,
): InputResult | Promise<InputResult> {
  if (returned?.status === "cancelled") return returned;
  if (returned?.status !== "accepted") {
    throw new TypeError(`Cannot leave input: "${name}" returned neither the result of next() nor refused()`);
  }
  return called ? below ?? refused("A guard failed.") : runInner();
}

/** Runs the `input` onion. */
export async function reviewInput(
  engine: EngineRun,
  { run, signal, emit, vars }: Scope,
  source: InputSource,
  messages: readonly Message[],
): Promise<InputResult> {
  const ctx: InputContext = { run, signal, emit, vars, source, messages, context: [] };
  const result = await engine.definition.onions.input(ctx, undefined, inputPolicy);
  return result.status === "accepted" ? result : refused(result.reason ?? "");
}

/** Reviews the history and the prompt of a new run. */
export async function reviewIncoming(scope: StepScope, position: PositionAt<"incoming">): Promise<Move> {
  const { messages } = position;
  const accepted: Message[] = [];
  const parts = [["history", messages.slice(0, -1)], ["prompt", messages.slice(-1)]] as const;
  for (const [source, part] of parts) {
    if (part.length === 0) continue;
    const result = await reportFatal(scope, "input", reviewInput(scope.engine, scope, source, part));
    scope.engine.exit.check(); // a hook that swallowed an interrupt changes nothing
    if (result.status === "cancelled") return refusal(result);
    accepted.push(...result.messages);
  }
  return { to: { ...position, at: "prompt", messages: accepted } };
}

function refusal({ reason = "" }: InputResult): Move {
  return { exit: { status: "refused", reason, answer: cancelled(reason), rollback: true } };
}
