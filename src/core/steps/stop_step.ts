/**
 * The stop step: asks the `stop` hooks whether the agent is done, and reads the final answer.
 *
 * @module
 */
import { type AssistantMessage, textOf } from "../../protocol/message.ts";
import type { PointPolicy } from "../hooks/onion.ts";
import type { Stop, StopContext } from "../hooks/points/turn.ts";
import { policyOf, requireField } from "../hooks/policy.ts";
import { finish } from "../hooks/results.ts";
import type { Change } from "../hooks/scope.ts";
import { reportFatal } from "../run/failure.ts";
import type { Move } from "../run/position.ts";
import type { EngineRun, StepScope } from "../run/run.ts";
import { beginTurn, endWith } from "./next.ts";
import type { Step } from "../run/step.ts";

const policy: PointPolicy<StopContext, Change, Stop, undefined> = /* @__PURE__ */ policyOf("stop", [], {
  core: () => Promise.resolve(finish()),
  finalize: /* @__PURE__ */ requireField("stop", "type"),
});

/** Asks the `stop` hooks. Leads to `promptEnd`, or to another turn. */
export const askStop: Step<StepScope, "stop"> = async (scope, position) => {
  const { engine, run, signal, emit, vars } = scope;
  const { loop, limits, definition } = engine;
  const { continuations } = loop.counters;
  const { messages: transcript } = loop.transcript;
  const { message } = position;
  const resumed = !loop.moved;
  const ctx: StopContext = {
    run,
    signal,
    emit,
    vars,
    message,
    transcript,
    continuations,
    limit: limits.continuations,
    resumed,
  };
  const verdict = await reportFatal(scope, "stop", definition.onions.stop(ctx, undefined, policy));
  engine.exit.check();
  if (verdict.type === "pause") {
    const { type: _, question, ...options } = verdict;
    throw run.pause(question, options);
  }
  if (verdict.type === "finish") return await finalMove(engine, message);
  if (continuations >= limits.continuations) {
    return { to: endWith({ status: "limit", text: textOf(message), reason: "continuations" }) };
  }
  const move = beginTurn(engine, verdict.messages);
  return { ...move, counters: { ...move.counters, continuations: continuations + 1 } };
};

/** Reads the final answer. Begins another turn if it has the wrong format, or if messages wait. */
async function finalMove(engine: EngineRun, message: AssistantMessage): Promise<Move> {
  const { answerFormat, loop: { counters }, limits, arrivals } = engine;
  const text = textOf(message);
  const read = await answerFormat?.read(text);
  if (read && "retry" in read) {
    if (counters.outputs >= limits.outputs) return { to: endWith({ status: "limit", text, reason: "outputs" }) };
    const move = beginTurn(engine, [read.retry]);
    return { ...move, counters: { ...move.counters, outputs: counters.outputs + 1 } };
  }
  if (arrivals.waiting) return beginTurn(engine, []);
  return { to: endWith({ status: "done", text, ...(read && { output: read.output }) }) };
}
