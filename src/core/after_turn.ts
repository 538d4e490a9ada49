/**
 * The way on after a turn: another turn, the `stop` hooks, or the end of the prompt.
 *
 * @module
 */
import { wasStopped } from "./call_results.ts";
import { reportFatal } from "./error_hooks.ts";
import { finish } from "./hook_answers.ts";
import { isReached } from "./limits.ts";
import type { Answer, Stop, StopContext, TurnResult } from "./points.ts";
import { type PointPolicy, policyOf, requireChoice } from "./policy.ts";
import { type Counters, directCall, type Move, type Position, type Step } from "./position.ts";
import { finishOf } from "./response.ts";
import type { EngineRun, StepScope } from "./run.ts";
import type { Change } from "./scope.ts";
import { withoutContext } from "./transcript.ts";
import type { Event } from "../protocol/event.ts";
import { type AssistantMessage, callsOf, type Message, textOf, type UserMessage } from "../protocol/message.ts";

/** The number of responses in a row that may end within a call for the same reason. The run ends with the last one. */
const maxCuts = 2;

/** Decides how the run continues after a turn. */
export function afterTurn(
  { engine }: StepScope,
  index: number,
  { response, results }: TurnResult,
  { added, isLast }: { readonly added: readonly Message[]; readonly isLast: boolean },
): Move {
  const { steering } = engine;
  const finish = finishOf(response.parts, response.finish);
  if (isLast) {
    return { add: added, finish, to: endWith({ status: "done", text: textOf(response), reason: "interrupted" }) };
  }
  if (engine.state.has(directCall)) {
    return { add: added, finish, to: endWith({ status: "done", text: textOf(response) }) };
  }
  const called = callsOf(response).length > 0;
  const counters = called ? { continuations: 0 } : {};
  if (called && engine.loop.counters.cuts >= maxCuts) {
    return { add: added, counters, finish, to: endWith({ status: "limit", text: textOf(response), reason: finish }) };
  }
  const isDone = !called || wasStopped(finish) || results.every(({ handled }) => handled);
  if (!isDone || steering.finishing || steering.waiting) {
    return { ...beginTurn(engine, added, counters), finish };
  }
  const message: AssistantMessage = { role: "assistant", parts: response.parts };
  return { add: added, counters, finish, to: { at: "stop", turn: index, message } };
}

/** Begins the next turn after `added`, with the messages that have arrived; or ends the prompt at a limit. `counters` change in both cases. */
export function beginTurn(engine: EngineRun, added: readonly Message[], counters: Partial<Counters> = {}): Move {
  const { steering, loop, control, claimed } = engine;
  if (claimed.type === "closing") control.abort(claimed.stop);
  const { turns } = loop.counters;
  const over = steering.draining ?? (isReached("turns", engine) ? "turns" : undefined);
  if (over !== undefined) {
    const last = added.findLast(({ role }) => role === "assistant");
    const text = last?.role === "assistant" ? textOf(last) : loop.transcript.lastText;
    return { add: added, counters, to: endWith({ status: "limit", text, reason: over }) };
  }
  const messages = control.aborted ? [] : steering.take();
  return {
    add: [...added, ...messages],
    to: { at: "model", turn: turns + 1 },
    counters: { ...counters, turns: turns + 1 },
    ...(messages.length > 0 && { events: [injected(messages)] }),
  };
}

/** Returns the event of messages that enter the transcript. Their context is for the model only. */
export function injected(messages: readonly UserMessage[]): Event {
  return { type: "steering.injected", messages: withoutContext(messages) };
}

/** Returns the end position of a prompt. */
function endWith(answer: Answer): Position {
  return { at: "promptEnd", answer };
}

const policy: PointPolicy<StopContext, Change, Stop, undefined> = /* @__PURE__ */ policyOf("stop", {
  core: () => Promise.resolve(finish()),
  finalize: /* @__PURE__ */ requireChoice("stop", "type", ["finish", "continue", "pause"]),
});

/** Asks the `stop` hooks. Leads to `promptEnd`, or to another turn. */
export const askStop: Step<"stop"> = async (scope, position) => {
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
  if (isReached("continuations", engine)) {
    return { to: endWith({ status: "limit", text: textOf(message), reason: "continuations" }) };
  }
  return beginTurn(engine, verdict.messages, { continuations: continuations + 1 });
};

/** Reads the final answer. Begins another turn if it has the wrong format, or if messages wait. */
async function finalMove(engine: EngineRun, message: AssistantMessage): Promise<Move> {
  const { answerFormat, loop, loop: { counters }, steering } = engine;
  const text = textOf(message);
  const read = await answerFormat?.read(text, loop.finish);
  if (read && "retry" in read) {
    if (wasStopped(loop.finish) || isReached("outputs", engine)) {
      return { to: endWith({ status: "limit", text, reason: "outputs" }) };
    }
    return beginTurn(engine, [read.retry], { outputs: counters.outputs + 1 });
  }
  if (steering.waiting) return beginTurn(engine, []);
  return { to: endWith({ status: "done", text, ...(read && { output: read.output }) }) };
}
