/**
 * The loop: a prompt becomes turns, until the agent is done or a limit is reached.
 *
 * @module
 */
import type { ModelRequest } from "../model/model.ts";
import { type AssistantMessage, callsOf, type Message, textOf, user } from "../protocol/message.ts";
import { finish, reply } from "./answers.ts";
import { askModel } from "./ask_model.ts";
import { fit } from "./compact.ts";
import { blaming } from "./failure.ts";
import { runBatch } from "./fanout.ts";
import { leaveBatch } from "./outcome.ts";
import { authored, lawOf, saying } from "./law.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import { parseOutput } from "./output.ts";
import type {
  Answer,
  ModelResponse,
  PromptChange,
  PromptContext,
  Stop,
  StopContext,
  TurnChange,
  TurnContext,
  TurnResult,
} from "./points.ts";
import { type Change, type Scope, scopeOf } from "./scope.ts";
import { lastWords, steer } from "./steering.ts";
import { contextMessages } from "./transcript.ts";

/** The law of `prompt`. In a resumed run the prompt has been accepted: changes of it are ignored. */
export const promptLaw: Law<PromptContext, PromptChange, Answer, Live> = lawOf("prompt", ["prompt", "context"], {
  derive: (beneath, { resumed, prompt, context }) => resumed ? { ...beneath, prompt, context } : beneath,
  seal: saying("prompt", "status"),
});

/** The law of `turn`. */
export const turnLaw: Law<TurnContext, TurnChange, TurnResult, Live> = lawOf("turn", ["context"], {
  derive: (beneath, { resumed, context }) => resumed ? { ...beneath, context } : beneath,
  seal: authored,
});

/** The law of `stop`. */
export const stopLaw: Law<StopContext, Change, Stop, Live> = lawOf("stop", [], { seal: saying("stop", "type") });

/** The core of `prompt`: takes it in, and goes on until there is an answer. */
export async function answerPrompt(ctx: PromptContext, live: Live): Promise<Answer> {
  live.checkpoint();
  const scope = scopeOf(ctx);
  if (live.prompt) await accept(ctx, live, live.prompt);
  if (live.untold) live.events.announce(live.outer, { type: "prompt.accepted", prompt: ctx.prompt });
  live.untold = false;
  if (live.closing && live.closing !== "lost") leaveBatch(live);
  if (live.stopping && !live.turning && !live.closing) {
    const answer = await askStop(scope, live, true);
    if (answer && live.inbox.waiting.length === 0) return answer;
  }
  for (;;) {
    const resumed = live.pending?.batch !== undefined || live.turning !== undefined;
    if (live.closing && !resumed) live.abort(live.closing);
    live.checkpoint();
    const over = live.draining ?? (live.used.turns >= live.limits.turns ? "turns" : undefined);
    if (!resumed && over !== undefined) return limit(over, live);
    if (!resumed && steer(live, scope)) await live.keep();
    const lastTurn = !resumed && live.inbox.finishing;
    if (lastTurn) live.events.announce(scope.emit, { type: "steering.interrupted" });
    const { response, results } = await runTurn(scope, live, resumed);
    live.checkpoint();
    if (lastTurn) return { status: "done", text: textOf(response), reason: "interrupted" };
    const called = callsOf(response).length > 0;
    live.stopping = !called || results.every(({ handled }) => handled);
    if (called) {
      live.used.continuations = 0;
      await live.keep();
      if (!live.stopping) continue;
    }
    if (live.inbox.finishing || live.inbox.waiting.length > 0) continue;
    const answer = await askStop(scope, live, false, response);
    if (answer && live.inbox.waiting.length === 0) return answer;
    if (!answer) await live.keep();
  }
}

/** The prompt enters the transcript, and is kept before anybody hears of that and the model is asked. */
async function accept({ prompt, context }: PromptContext, live: Live, given: readonly Message[]): Promise<void> {
  live.prompt = undefined;
  live.transcript.replace([
    ...live.transcript.messages,
    ...given.slice(0, -1),
    prompt,
    ...contextMessages(context, "prompt"),
  ], "prompt");
  live.untold = true;
  await live.keep();
}

function limit(reason: string, { transcript }: Live): Answer {
  return { status: "limit", text: transcript.said, reason };
}

async function runTurn(scope: Scope, live: Live, resumed: boolean): Promise<TurnResult> {
  if (!resumed) {
    live.stopping = false;
    await fit(live, scope);
    live.used.turns++;
  }
  const done = live.turning === "done";
  live.turning ??= "begun";
  live.ground = live.transcript.messages;
  const turn = live.used.turns;
  const { emit } = scope;
  live.events.announce(emit, { type: "turn.started", turn });
  const ctx: TurnContext = { ...scope, index: turn, transcript: live.ground, context: [], resumed };
  const result = await blaming(live, scope, "turn", live.blueprint.onions.turn(ctx, live));
  if (live.pausing) throw live.pausing; // whatever a hook made of it
  live.turning = undefined;
  if (live.transcript.messages === live.ground && !done) answered(live, result); // a hook answered without the model
  live.events.announce(emit, { type: "turn.finished", turn });
  return result;
}

function answered(live: Live, { response, results }: TurnResult): void {
  leaveBatch(live);
  const message = messageOf(response);
  if (!message) return;
  const messages: readonly Message[] = callsOf(message).length > 0 ? [message, { role: "tool", results }] : [message];
  live.transcript.replace([...live.transcript.messages, ...messages], "turn", live.author);
}

/** The core of `turn`: asks the model, and runs the calls it makes. */
export async function takeTurn(ctx: TurnContext, live: Live): Promise<TurnResult> {
  const scope = scopeOf(ctx);
  if (live.turning === "done") return lastTurn(live);
  const { batch } = live.pending ?? {};
  if (batch) {
    const results = await runBatch(live, scope, { ...batch, turn: ctx.index, resumed: true });
    return { response: { ...reply(""), parts: batch.message.parts, finish: "calls" }, results };
  }
  const response = await askModel(live, scope, ctx.index, () => requestOf(ctx, live));
  const message = messageOf(response);
  if (message && callsOf(message).length > 0) {
    return { response, results: await runBatch(live, scope, { message, turn: ctx.index }) };
  }
  if (message) live.transcript.push(message);
  live.turning = "done";
  live.stopping = true;
  live.checkpoint();
  return { response, results: [] };
}

/** What the model said last, and what its calls came to, as far as the transcript has it: an answer that is empty is not in it. */
function lastTurn({ transcript: { messages }, stopping }: Live): TurnResult {
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const [message, ...after] = at < 0 ? [] : messages.slice(at);
  const { results } = after.find((message) => message.role === "tool") ?? { results: [] };
  const handled = results.length > 0 && results.every(({ handled }) => handled);
  const silent = message?.role !== "assistant" || (stopping && after.length > 0 && !handled);
  if (silent) return { response: reply(""), results: [] };
  return { response: { ...reply(""), parts: message.parts, finish: results.length > 0 ? "calls" : "stop" }, results };
}

function requestOf({ context }: TurnContext, live: Live): ModelRequest {
  const { model, instructions } = live.settings;
  const { output } = live.blueprint;
  const { finishing } = live.inbox;
  const said = finishing ? [...context, lastWords] : context;
  return {
    model,
    instructions: output ? `${instructions}\n\n${output.instructions}`.trim() : instructions,
    messages: said.length > 0
      ? [...live.transcript.messages, ...contextMessages(said, "turn")]
      : live.transcript.messages,
    tools: finishing ? [] : live.definitions,
    options: output ? { output: output.schema } : {},
  };
}

function messageOf({ parts }: ModelResponse): AssistantMessage | undefined {
  const kept = parts.filter((part) => part.type !== "text" || part.text !== "");
  return kept.length > 0 ? { role: "assistant", parts: kept } : undefined;
}

/** Asks `stop` whether the agent is done; gives the answer where it is. */
async function askStop(
  scope: Scope,
  live: Live,
  resumed: boolean,
  { parts }: ModelResponse = lastTurn(live).response,
): Promise<Answer | undefined> {
  const message: AssistantMessage = { role: "assistant", parts };
  const { limits, used: { continuations }, transcript: { messages: transcript } } = live;
  const verdict = await blaming(
    live,
    scope,
    "stop",
    live.blueprint.onions.stop(
      { ...scope, message, transcript, continuations, limit: limits.continuations, resumed },
      live,
    ),
  );
  live.checkpoint();
  if (verdict.type === "pause") {
    const { type: _, question, ...asked } = verdict;
    throw live.hold(live.view.pause(question, asked));
  }
  if (verdict.type === "continue") {
    if (continuations >= limits.continuations) {
      return { status: "limit", text: textOf(message), reason: "continuations" };
    }
    live.used.continuations++;
    live.stopping = false;
    live.transcript.replace([...live.transcript.messages, ...verdict.messages], "stop");
    return undefined;
  }
  const answer = await finalAnswer(live, message);
  live.stopping = answer !== undefined;
  return answer;
}

/** The final answer; nothing where the model is to be asked again. */
async function finalAnswer(live: Live, message: AssistantMessage): Promise<Answer | undefined> {
  const text = textOf(message);
  const { output } = live.blueprint;
  if (!output) return { status: "done", text };
  const checked = await parseOutput(output, text);
  if ("value" in checked) return { status: "done", text, output: checked.value };
  if (live.used.outputs >= live.limits.outputs) return { status: "limit", text, reason: "outputs" };
  live.used.outputs++;
  live.transcript.push(user(`Your answer does not match: ${checked.wrong}. Answer again, with JSON alone.`, "output"));
  return undefined;
}

/** The core of `stop`: it is done. */
export function stop(): Promise<Stop> {
  return Promise.resolve(finish());
}
