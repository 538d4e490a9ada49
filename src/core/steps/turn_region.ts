/**
 * The region `turn`: one model response and the calls that it makes.
 *
 * @module
 */
import { callsOf, type Message } from "../../protocol/message.ts";
import { runTools } from "../calls/tools_step.ts";
import type { TurnChange, TurnContext, TurnResult } from "../hooks/points/turn.ts";
import { type PointPolicy, policyOf, requireField } from "../hooks/policy.ts";
import { reply } from "../hooks/results.ts";
import { reportFatal } from "../run/failure.ts";
import { closingMessages } from "../run/finish.ts";
import type { Position } from "../run/position.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import type { Inner, Region, TurnState } from "../run/step.ts";
import { afterTurn } from "./after_turn.ts";
import { askModel, messageOf } from "./model_step.ts";

/** One model response and the calls that it makes. Ends at `turnEnd`. */
export const turn: Region<StepScope> = {
  entry: "model",
  steps: { model: askModel, tools: runTools },
  async enter(scope, position, inner) {
    const { engine: { definition, arrivals, events, loop }, run, signal, emit, vars } = scope;
    const index = "turn" in position ? position.turn : 0;
    const resumed = position.at !== turn.entry;
    const isLast = !resumed && arrivals.finishing;
    if (isLast) events.announce(emit, { type: "steering.interrupted" });
    events.announce(emit, { type: "turn.started", turn: index });
    const { messages: transcript } = loop.transcript;
    const ctx: TurnContext = { run, signal, emit, vars, index, transcript, context: [], resumed };
    const call: TurnCall = { scope, inner, ctx, answeredBy: undefined };
    const result = await reportFatal(scope, "turn", definition.onions.turn(ctx, call, turnPolicy));
    scope.engine.exit.check(); // a hook that swallowed an interrupt changes nothing
    const added = loop.position.at === "turnEnd" ? [] : answeredMessages(scope.engine, result, call.answeredBy);
    events.announce(emit, { type: "turn.finished", turn: index });
    return afterTurn(scope, index, result, { added, isLast });
  },
};

/** The engine's own values of one `turn` onion. */
interface TurnCall {
  readonly scope: StepScope;
  readonly inner: Inner<StepScope>;
  readonly ctx: TurnContext;
  /** The middleware that gave the result. */
  answeredBy: string | undefined;
}

const requireResponse = /* @__PURE__ */ requireField<TurnContext, TurnResult, TurnCall>(
  "turn",
  "response",
  (response) => Array.isArray(Object(response).parts),
);

const turnPolicy: PointPolicy<TurnContext, TurnChange, TurnResult, TurnCall> = /* @__PURE__ */ policyOf(
  "turn",
  ["context", "transcript"],
  {
    late: true,
    core({ run, signal, emit, vars, context, transcript, resumed }, { scope, inner, ctx, answeredBy }) {
      const state: TurnState = { context: resumed ? [] : context };
      const { transcript: kept } = scope.engine.loop;
      const replaced = !resumed && transcript !== ctx.transcript && transcript !== kept.messages;
      const first = replaced ? { replace: kept.repaired(transcript, "turn", answeredBy) } : undefined;
      const reached = inner({ ...scope, run, signal, emit, vars, turn: state }, first);
      return reached.then((reached) => turnResult(scope.engine, reached, state));
    },
    derive: (inner, outer, own, name) => {
      own.answeredBy = name;
      return outer.resumed ? { ...inner, context: outer.context, transcript: outer.transcript } : inner;
    },
    finalize(answer) {
      answer.own.answeredBy = answer.name;
      return requireResponse(answer);
    },
  },
);

/** Returns the result of a turn whose messages are in the transcript. */
function turnResult({ loop }: EngineRun, reached: Position, { response }: TurnState): TurnResult {
  const added = reached.at === "turnEnd" ? reached.added : 0;
  const [message, answer] = added > 0 ? loop.transcript.messages.slice(-added) : [];
  const results = answer?.role === "tool" ? answer.results : [];
  if (response) return { response, results };
  const parts = message?.role === "assistant" ? message.parts : [];
  return { response: { ...reply(""), parts, finish: loop.finish ?? (results.length > 0 ? "calls" : "stop") }, results };
}

/** Returns the messages of a turn that a hook answered, or whose failure a hook caught. */
function answeredMessages(
  { loop }: EngineRun,
  { response, results }: TurnResult,
  answeredBy: string | undefined,
): readonly Message[] {
  const { transcript, position } = loop;
  const closed = closingMessages(position);
  const message = messageOf(response);
  const answer: readonly Message[] = !message
    ? []
    : callsOf(message).length > 0
    ? [message, { role: "tool", results }]
    : [message];
  const before = transcript.messages;
  return transcript.repaired([...before, ...closed, ...answer], "turn", answeredBy).slice(before.length);
}
