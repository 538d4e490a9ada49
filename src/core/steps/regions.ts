/**
 * The regions of a run, `prompt` and `turn`, and their short steps. The order of the whole lifecycle is visible here.
 *
 * @module
 */
import { type AssistantMessage, callsOf, type Message, textOf, type UserMessage } from "../../protocol/message.ts";
import { policyOf, requireField } from "../hooks/policy.ts";
import type { PointPolicy } from "../hooks/onion.ts";
import type { Answer, PromptChange, PromptContext } from "../hooks/points/run.ts";
import type { TurnChange, TurnContext, TurnResult } from "../hooks/points/turn.ts";
import { reply } from "../hooks/results.ts";
import { reportFatal } from "../run/failure.ts";
import { closingMessages } from "../run/finish.ts";
import { askModel, messageOf } from "./model_step.ts";
import type { Move, Position, PositionAt } from "../run/position.ts";
import { reviewArrived } from "./input_step.ts";
import { beginTurn, endWith } from "./next.ts";
import type { EngineRun, StepScope, TurnState } from "../run/run.ts";
import type { Inner, Region, Steps } from "../run/step.ts";
import { askStop } from "./stop_step.ts";
import { runTools } from "../calls/tools_step.ts";
import { contextMessages } from "../run/transcript.ts";

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

const turnPolicy: PointPolicy<TurnContext, TurnChange, TurnResult, TurnCall> = /* @__PURE__ */ policyOf(
  "turn",
  ["context", "transcript"],
  {
    async core({ run, signal, emit, vars, context, transcript, resumed }, { scope, inner, ctx, answeredBy }) {
      const state: TurnState = { context: resumed ? [] : context };
      const { transcript: kept } = scope.engine.loop;
      const replaced = !resumed && transcript !== ctx.transcript && transcript !== kept.messages;
      const first = replaced ? { replace: kept.repaired(transcript, "turn", answeredBy) } : undefined;
      const reached = await inner({ ...scope, run, signal, emit, vars, turn: state }, first);
      return turnResult(scope.engine, reached, state);
    },
    derive: (inner, outer, own, name) => {
      own.answeredBy = name;
      return outer.resumed ? { ...inner, context: outer.context, transcript: outer.transcript } : inner;
    },
    finalize({ name, own, returned }) {
      own.answeredBy = name;
      return returned;
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
  return { response: { ...reply(""), parts, finish: results.length > 0 ? "calls" : "stop" }, results };
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

/** Decides how the run continues after a turn. */
function afterTurn(
  { engine }: StepScope,
  index: number,
  { response, results }: TurnResult,
  { added, isLast }: { readonly added: readonly Message[]; readonly isLast: boolean },
): Move {
  const { arrivals } = engine;
  if (isLast) return { add: added, to: endWith({ status: "done", text: textOf(response), reason: "interrupted" }) };
  const called = callsOf(response).length > 0;
  const counters = called ? { counters: { ...engine.loop.counters, continuations: 0 } } : {};
  const isDone = !called || results.every(({ handled }) => handled);
  if (!isDone || arrivals.finishing || arrivals.waiting) {
    const move = beginTurn(engine, added);
    return { ...move, counters: { ...counters.counters, ...move.counters } };
  }
  const message: AssistantMessage = { role: "assistant", parts: response.parts };
  return { add: added, ...counters, to: { at: "stop", turn: index, message } };
}

/** A prompt, up to its final answer. Ends at `promptEnd`. */
export const prompt: Region<StepScope> = {
  entry: "input",
  steps: { input: accept, model: turn, tools: turn, turnEnd: turn, stop: askStop },
  async enter(scope, position, inner) {
    const { engine: { definition, loop }, run, signal, emit, vars } = scope;
    const { messages: transcript } = loop.transcript;
    const resumed = position.at !== prompt.entry;
    const message = promptOf(position, transcript);
    const ctx: PromptContext = { run, signal, emit, vars, prompt: message, transcript, context: [], resumed };
    const answer = await definition.onions.prompt(ctx, { scope, inner }, promptPolicy);
    scope.engine.exit.check();
    const { status, reason } = answer;
    const refused = status === "cancelled";
    return {
      exit: {
        status: refused ? "refused" : status,
        answer,
        rollback: refused,
        ...(reason !== undefined && { reason }),
      },
    };
  },
};

/** The steps of every run. */
export const promptSteps: Steps<StepScope> = {
  arrived: reviewArrived,
  input: prompt,
  model: prompt,
  tools: prompt,
  turnEnd: prompt,
  stop: prompt,
  promptEnd: prompt,
};

/** The engine's own values of the `prompt` onion. */
interface PromptCall {
  readonly scope: StepScope;
  readonly inner: Inner<StepScope>;
}

const promptPolicy: PointPolicy<PromptContext, PromptChange, Answer, PromptCall> = /* @__PURE__ */ policyOf(
  "prompt",
  ["prompt", "context"],
  {
    async core({ run, signal, emit, vars, prompt, context }, { scope, inner }) {
      const inside = { ...scope, run, signal, emit, vars, outside: scope.emit, prompt: { message: prompt, context } };
      scope.engine.loop.sendUnsent(inside);
      const reached = await inner(inside);
      if (reached.at === "promptEnd") return reached.answer;
      throw new TypeError(`Cannot leave the prompt: the run is at "${reached.at}"; expected "promptEnd"`);
    },
    derive: (inner, { resumed, prompt, context }) => resumed ? { ...inner, prompt, context } : inner,
    finalize: /* @__PURE__ */ requireField("prompt", "status"),
  },
);

/** Returns the prompt of a run: in a resumed run, the person's last message. */
function promptOf(position: Position, transcript: readonly Message[]): UserMessage {
  const message = (position.at === "input" ? position.messages.at(-1) : undefined) ??
    transcript.findLast((message) => message.role === "user" && message.from === undefined) ??
    transcript.findLast((message) => message.role === "user");
  if (message?.role !== "user") throw new TypeError("Cannot run: expected the last message to be the person's");
  return message;
}

/** Accepts the prompt: it enters the transcript, and the first turn begins. */
function accept({ engine, prompt }: StepScope, { messages }: PositionAt<"input">): Promise<Move> {
  const { transcript } = engine.loop;
  const { message, context } = prompt ?? { message: promptOf({ at: "input", messages }, []), context: [] };
  const given = [...messages.slice(0, -1), message, ...contextMessages(context, "prompt")];
  const before = transcript.messages;
  const accepted = messages.length === 1
    ? given
    : transcript.repaired([...before, ...given], "prompt").slice(before.length);
  const move = beginTurn(engine, accepted);
  const event = { type: "prompt.accepted", prompt: message } as const;
  return Promise.resolve({ ...move, announce: [event, ...move.announce ?? []] });
}
