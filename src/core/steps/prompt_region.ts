/**
 * The region `prompt`: from the prompt's arrival to its final answer. The order of the steps of a run is visible here.
 *
 * @module
 */
import type { Message, UserMessage } from "../../protocol/message.ts";
import type { Answer, PromptChange, PromptContext } from "../hooks/points/run.ts";
import { type PointPolicy, policyOf, requireStatus } from "../hooks/policy.ts";
import type { Move, Position, PositionAt } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import type { Inner, Region, Steps } from "../run/step.ts";
import { contextMessages } from "../run/transcript.ts";
import { askStop, beginTurn } from "./after_turn.ts";
import { reviewArrived } from "./input_step.ts";
import { turn } from "./turn_region.ts";

/** A prompt, up to its final answer. Ends at `promptEnd`. */
export const prompt: Region<StepScope> = {
  entry: "input",
  steps: { input: accept, model: turn, tools: turn, turnEnd: turn, stop: askStop },
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
    core({ run, signal, emit, vars, prompt, context }, { scope, inner }) {
      const inside = { ...scope, run, signal, emit, vars, outside: scope.emit, prompt: { message: prompt, context } };
      scope.engine.loop.sendUnsent(inside);
      return inner(inside).then(answerAt); // no async function: each that waits for the model takes half a kilobyte of an open stream
    },
    derive: (inner, { resumed, prompt, context }) => resumed ? { ...inner, prompt, context } : inner,
    finalize: /* @__PURE__ */ requireStatus("prompt", ["done", "limit", "cancelled"]),
  },
);

/** Returns the answer of a prompt that has ended. */
function answerAt(reached: Position): Answer {
  if (reached.at === "promptEnd") return reached.answer;
  throw new TypeError(`Cannot leave the prompt: the run is at "${reached.at}"; expected "promptEnd"`);
}

/** Returns the prompt of a run: in a resumed run, the person's last message. */
function promptOf(position: Position, transcript: readonly Message[]): UserMessage {
  const message = (position.at === "input" ? position.messages.at(-1) : undefined) ??
    transcript.findLast((message) => message.role === "user" && message.from === undefined) ??
    transcript.findLast((message) => message.role === "user");
  if (message?.role !== "user") throw new TypeError("Cannot run: expected the last message to be the person's");
  return message;
}

/** Accepts the prompt: it enters the transcript, and the first turn begins. */
function accept({ engine, prompt }: StepScope, position: PositionAt<"input">): Promise<Move> {
  const { messages } = position;
  const { transcript } = engine.loop;
  const { message, context } = prompt as NonNullable<StepScope["prompt"]>; // the region has set it
  const given = [...messages.slice(0, -1), message, ...contextMessages(context, "prompt")];
  const before = keptMessages(position, transcript.messages);
  const accepted = messages.length === 1
    ? given
    : transcript.repaired([...before, ...given], "prompt").slice(before.length);
  const move = beginTurn(engine, accepted);
  const event = { type: "prompt.accepted", prompt: message } as const;
  return Promise.resolve({
    ...move,
    ...(before !== transcript.messages && { keep: before.length }),
    announce: [event, ...move.announce ?? []],
  });
}

/** Returns the transcript without the messages that the prompt replaces. */
function keptMessages(position: Position, messages: readonly Message[]): readonly Message[] {
  return position.at === "input" && position.keep !== undefined ? messages.slice(0, position.keep) : messages;
}
