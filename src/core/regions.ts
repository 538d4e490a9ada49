/**
 * The order of the steps of a run, and the regions around them: `prompt` and `turn`.
 *
 * @module
 */
import { afterTurn, askStop, beginTurn } from "./after_turn.ts";
import { reportFatal } from "./error_hooks.ts";
import { reply } from "./hook_answers.ts";
import { reviewIncoming } from "./input_hooks.ts";
import { askModel, messageOf } from "./model_step.ts";
import type { Answer, PromptChange, PromptContext, TurnChange, TurnContext, TurnResult } from "./points.ts";
import { type PointPolicy, policyOf, requireField, requireStatus } from "./policy.ts";
import type { Inner, Move, Position, PositionAt, Region, Steps, TurnState } from "./position.ts";
import type { EngineRun, StepScope } from "./run.ts";
import { closingMessages } from "./run_end.ts";
import { runTools } from "./tools_step.ts";
import { contextMessages } from "./transcript.ts";
import { callsOf, type Message, type UserMessage } from "../protocol/message.ts";

// The region `turn`: one model response and the calls that it makes.

/** One model response and the calls that it makes. Ends at `turnEnd`. */
const turn: Region = {
  entry: "model",
  steps: { model: askModel, tools: runTools },
  async enter(scope, position, inner) {
    const { engine: { definition, steering, events, loop }, run, signal, emit, vars } = scope;
    const index = "turn" in position ? position.turn : 0;
    const resumed = position.at !== turn.entry;
    const isLast = !resumed && steering.finishing;
    if (isLast) events.emitThrough(emit, { type: "steering.interrupted" });
    events.emitThrough(emit, { type: "turn.started", turn: index });
    const { messages: transcript } = loop.transcript;
    const ctx: TurnContext = { run, signal, emit, vars, index, transcript, context: [], resumed };
    const call: TurnCall = { scope, inner, ctx, answeredBy: undefined };
    const result = await reportFatal(scope, "turn", definition.onions.turn(ctx, call, turnPolicy));
    scope.engine.exit.check(); // a hook that swallowed an interrupt changes nothing
    const added = loop.position.at === "turnEnd" ? [] : answeredMessages(scope.engine, result, call.answeredBy);
    events.emitThrough(emit, { type: "turn.finished", turn: index });
    return afterTurn(scope, index, result, { added, isLast });
  },
};

/** The engine's own values of one `turn` onion. */
interface TurnCall {
  readonly scope: StepScope;
  readonly inner: Inner;
  readonly ctx: TurnContext;
  /** The middleware that gave the result. */
  answeredBy: string | undefined;
}

const requireResponse = /* @__PURE__ */ requireField<TurnContext, TurnResult, TurnCall>(
  "turn",
  "response",
  (response) => Array.isArray(Object(response).parts),
);

const turnPolicy: PointPolicy<TurnContext, TurnChange, TurnResult, TurnCall> = /* @__PURE__ */ policyOf("turn", {
  late: true,
  core({ run, signal, emit, vars, context, transcript, resumed }, { scope, inner, ctx, answeredBy }) {
    const state: TurnState = { context: resumed ? [] : context };
    const { transcript: stored } = scope.engine.loop;
    const replaced = !resumed && transcript !== ctx.transcript && transcript !== stored.messages;
    const first = replaced ? { replace: stored.repaired(transcript, "turn", answeredBy) } : undefined;
    const reached = inner({ ...scope, run, signal, emit, vars, turn: state }, first);
    return reached.then((reached) => turnResult(scope.engine, reached, state));
  },
  derive: (inner, outer, locals, name) => {
    locals.answeredBy = name;
    return outer.resumed ? { ...inner, context: outer.context, transcript: outer.transcript } : inner;
  },
  finalize(answer) {
    answer.locals.answeredBy = answer.name;
    return requireResponse(answer);
  },
});

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

// The region `prompt`: from the prompt to its final answer. The order of the steps of a run is visible here.

/** A prompt, up to its final answer. Ends at `promptEnd`. */
const prompt: Region = {
  entry: "prompt",
  steps: { prompt: accept, model: turn, tools: turn, turnEnd: turn, stop: askStop },
  async enter(scope, position, inner) {
    const { engine: { definition, loop }, run, signal, emit, vars } = scope;
    const transcript = keptMessages(position, loop.transcript.messages);
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
export const promptSteps: Steps = {
  incoming: reviewIncoming,
  prompt,
  model: prompt,
  tools: prompt,
  turnEnd: prompt,
  stop: prompt,
  promptEnd: prompt,
};

/** The engine's own values of the `prompt` onion. */
interface PromptCall {
  readonly scope: StepScope;
  readonly inner: Inner;
}

const promptPolicy: PointPolicy<PromptContext, PromptChange, Answer, PromptCall> = /* @__PURE__ */ policyOf("prompt", {
  core({ run, signal, emit, vars, prompt, context }, { scope, inner }) {
    const inside = { ...scope, run, signal, emit, vars, outside: scope.emit, prompt: { message: prompt, context } };
    return inner(inside).then(answerAt); // no async function: each that waits for the model takes half a kilobyte of an open stream
  },
  derive: (inner, { resumed, prompt, context }) => resumed ? { ...inner, prompt, context } : inner,
  finalize: /* @__PURE__ */ requireStatus("prompt", ["done", "limit", "cancelled"]),
});

/** Returns the answer of a prompt that has ended. */
function answerAt(reached: Position): Answer {
  if (reached.at === "promptEnd") return reached.answer;
  throw new TypeError(`Cannot leave the prompt: the run is at "${reached.at}"; expected "promptEnd"`);
}

/** Returns the prompt of a run: in a resumed run, the person's last message. */
function promptOf(position: Position, transcript: readonly Message[]): UserMessage {
  const message = (position.at === "prompt" ? position.messages.at(-1) : undefined) ??
    transcript.findLast((message) => message.role === "user" && message.from === undefined) ??
    transcript.findLast((message) => message.role === "user");
  if (message?.role !== "user") throw new TypeError("Cannot run: expected the last message to be the person's");
  return message;
}

/** Accepts the prompt: it enters the transcript, and the first turn begins. */
function accept({ engine, prompt }: StepScope, position: PositionAt<"prompt">): Promise<Move> {
  const { messages } = position;
  const { transcript } = engine.loop;
  const { message, context } = prompt as NonNullable<StepScope["prompt"]>; // the region has set it
  const newMessages = [...messages.slice(0, -1), message, ...contextMessages(context, "prompt")];
  const before = keptMessages(position, transcript.messages);
  const accepted = messages.length === 1
    ? newMessages
    : transcript.repaired([...before, ...newMessages], "prompt").slice(before.length);
  const move = beginTurn(engine, accepted);
  const event = { type: "prompt.accepted", prompt: message } as const;
  return Promise.resolve({
    ...move,
    ...(before !== transcript.messages && { keep: before.length }),
    events: [event, ...move.events ?? []],
  });
}

/** Returns the transcript without the messages that the prompt replaces. */
function keptMessages(position: Position, messages: readonly Message[]): readonly Message[] {
  return position.at === "prompt" && position.keep !== undefined ? messages.slice(0, position.keep) : messages;
}
