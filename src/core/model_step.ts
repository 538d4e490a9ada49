/**
 * The model step: one request and its streamed response, with retries that the `error` hooks decide.
 *
 * @module
 */
import { injected } from "./after_turn.ts";
import { retried } from "./error_hooks.ts";
import { reply } from "./hook_answers.ts";
import { type Cancellation, withGracePeriod } from "./lib/cancellation.ts";
import type { ModelChange, ModelContext, ModelResponse } from "./points.ts";
import { merged, type PointPolicy, policyOf, requireField } from "./policy.ts";
import { type CallRecord, type DirectCall, directCall, type Position, type Step } from "./position.ts";
import { finishOf, renameCalls, ResponseAccumulator, ShownText, uniqueId } from "./response.ts";
import type { EngineRun, EngineScope, StepScope } from "./run.ts";
import { contextMessages } from "./transcript.ts";
import { type Model, ModelError, type ModelRequest } from "../model/model.ts";
import type { Emit, FinishReason } from "../protocol/event.ts";
import { type AssistantMessage, callsOf, textOf } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";

/** The instruction for a run that should end with one more answer. */
const finishNow = "Finish now: answer with what you have, without tools.";

/** Asks the model, unless the run makes a direct call. Calls lead to `tools`, a plain answer to `turnEnd`. */
export const askModel: Step<"model"> = async (scope, position) => {
  const { engine, engine: { steering } } = scope;
  const { turn } = position;
  if (steering.waiting) { // they arrived while the position was saved
    const messages = steering.take();
    return { to: position, add: messages, events: [injected(messages)] };
  }
  const response = directResponse(scope, turn) ?? await respond(scope, turn, position.shown);
  if (scope.turn) scope.turn.response = response;
  const { finish } = response;
  const message = messageOf(response);
  const calls = message ? callsOf(message) : [];
  const cuts = cutsWith(calls, finish, engine);
  if (message && calls.length > 0) {
    const counters = { calls: engine.loop.counters.calls + calls.length, cuts };
    return { to: { at: "tools", turn, message, calls: calls.map(pendingRecord) }, counters, finish };
  }
  const to: Position = { at: "turnEnd", turn, added: message ? 1 : 0 };
  return { to, ...(message && { add: [message] }), counters: { cuts }, finish };
};

/** Returns the response of a run that only makes a direct call. */
function directResponse({ engine, emit }: StepScope, turn: number): ModelResponse | undefined {
  const call = engine.state.get(directCall) as DirectCall | undefined; // claim() has set it
  if (!call) return undefined;
  const identified = { id: uniqueId(engine, "call", new Set()), name: call.name, input: call.input };
  engine.events.emitThrough(emit, { type: "call.ready", turn, call: identified });
  return { ...reply(""), parts: [{ type: "call", ...identified }], finish: "calls" };
}

/** Counts the responses in a row that ended within a call for the same reason, with the calls of the last one. */
function cutsWith(calls: readonly Call[], finish: FinishReason, { loop }: EngineRun): number {
  if (!calls.some(({ incomplete }) => incomplete)) return 0;
  return loop.finish === finish ? loop.counters.cuts + 1 : 1;
}

/** Returns the record of a call that is not decided. */
function pendingRecord({ id, name, input, malformed, incomplete }: Call): CallRecord {
  const call = { id, name, input }; // copying all fields but one is slow
  if (malformed === undefined && !incomplete) return { call, state: "pending" };
  const flaws = { ...(malformed !== undefined && { malformed }), ...(incomplete && { incomplete }) };
  return { call: { ...call, ...flaws }, state: "pending" };
}

/** Returns the message that enters the transcript, or undefined for an empty response. */
export function messageOf({ parts }: ModelResponse): AssistantMessage | undefined {
  const kept = parts.filter((part) => part.type !== "text" || part.text !== "");
  return kept.length > 0 ? { role: "assistant", parts: kept } : undefined;
}

/** The engine's own values of one request and its attempts. */
interface ModelCall {
  readonly engine: EngineRun;
  readonly turn: number;
  /** The number of requests that were sent. */
  attempts: number;
  /** True if a failed attempt may have been seen by a client. */
  shown: boolean;
  /** True if clients receive nothing of the response. */
  readonly quiet?: boolean;
}

const requireParts = /* @__PURE__ */ requireField<ModelContext, ModelResponse, ModelCall>(
  "model",
  "parts",
  Array.isArray,
);

const policy: PointPolicy<ModelContext, ModelChange, ModelResponse, ModelCall> = /* @__PURE__ */ policyOf("model", {
  core: request,
  late: true,
  retry: (ctx, { attempts }) => ({ ...ctx, attempt: attempts + 1 }),
  derive(inner, outer, { engine }, name) {
    if (inner.request === outer.request) return inner;
    const request = merged(outer.request, inner.request);
    if (request.messages === outer.request.messages) return { ...inner, request };
    const messages = engine.loop.transcript.repaired(request.messages, "model", name);
    return { ...inner, request: { ...request, messages } };
  },
  finalize: (answer) => renameCalls(requireParts(answer), answer.locals.engine, answer.name),
});

/** Runs the `model` onion until it succeeds, or the `error` hooks give up. */
async function respond(scope: StepScope, turn: number, shown = false): Promise<ModelResponse> {
  const { engine, run, signal, emit, vars } = scope;
  const { definition, events } = engine;
  const call: ModelCall = { engine, turn, attempts: 0, shown };
  const request = requestOf(scope);
  expectModel(request.model);
  const shownText = new ShownText(emit);
  engine.work.streamPartial(() => shownText.message);
  events.emitThrough(emit, { type: "model.started", turn, model: request.model.id });
  const modelResponse = await retried(scope, "model", () => {
    const { emit } = shownText;
    const ctx: ModelContext = { run, signal, vars, request, turn, attempt: call.attempts + 1, purpose: "turn", emit };
    return definition.onions.model(ctx, call, policy);
  }, () => {
    takeBack(shownText.emit, call);
    return reply("");
  });
  const response = {
    ...modelResponse,
    finish: finishOf(modelResponse.parts, modelResponse.finish),
    attempts: call.attempts,
  };
  const { finish, usage, attempts, edits } = response;
  const text = textOf(response);
  const differs = text !== shownText.text;
  engine.work.streamPartial(undefined);
  events.gather();
  const more = { ...(differs && { text }), ...(edits && { edits }) };
  events.emitThrough(emit, { type: "model.finished", turn, finish, usage, attempts, ...more });
  return response;
}

/** The events of a response, which clients do not receive for a summary. */
const responseEvents = /^(text|reasoning|call|part|provider_tool|model)\./;

/** Sends the request of a compaction through the `model` hooks, outside of a turn. */
export async function askForSummary(
  { engine, run, signal, emit, vars }: EngineScope,
  request: ModelRequest,
): Promise<ModelResponse> {
  const { turns: turn } = engine.loop.counters;
  const call: ModelCall = { engine, turn, attempts: 0, shown: false, quiet: true };
  const ctx: ModelContext = {
    run,
    signal,
    vars,
    request,
    turn,
    attempt: 1,
    purpose: "summary",
    emit: (event) => !responseEvents.test(event.type) && emit(event),
  };
  const response = await engine.definition.onions.model(ctx, call, policy);
  return { ...response, finish: finishOf(response.parts, response.finish), attempts: call.attempts };
}

/** Returns the model that a function or a hook chose. Throws a `TypeError` for another value, such as the name of a model. */
function expectModel(model: Model): Model {
  if (typeof model?.stream === "function") return model;
  const chosen = typeof model === "string" ? `"${model}"` : model === null ? "null" : typeof model;
  throw new TypeError(
    `Cannot ask the model: \`model\` is ${chosen}; expected a model, such as openai({ model, apiKey })`,
  );
}

function requestOf({ engine, turn }: StepScope): ModelRequest {
  const { settings: { model, instructions, definitions }, steering, loop, answerFormat } = engine;
  const { messages } = loop.transcript;
  const context = [...turn?.context ?? [], ...(steering.finishing ? [finishNow] : [])];
  const request: ModelRequest = {
    model,
    instructions,
    messages: context.length > 0 ? messages.concat(contextMessages(context, "turn")) : messages,
    tools: steering.finishing ? [] : definitions,
    options: {},
  };
  return answerFormat?.shape(request) ?? request;
}

/** Takes back the answer that clients may have seen: its attempt failed, and another answer follows. */
function takeBack(emit: Emit, call: ModelCall): void {
  if (!call.shown) return;
  call.shown = false;
  call.engine.events.emitThrough(emit, { type: "model.reset", turn: call.turn });
}

/** The core of `model`: sends the request and reads the response. */
function request(ctx: ModelContext, call: ModelCall): Promise<ModelResponse> {
  const { engine: { events, control, limits } } = call;
  call.attempts++;
  takeBack(ctx.emit, call);
  const cancellation = control.of(ctx.signal);
  return withGracePeriod(read(ctx, call, cancellation), cancellation, limits.grace, () => {
    const message = `The model ${ctx.request.model.id} did not stop when its signal aborted.`;
    events.warn("hook.abandoned", message, { point: "model" });
  });
}

async function read(modelContext: ModelContext, call: ModelCall, cancellation: Cancellation): Promise<ModelResponse> {
  const { engine, turn, attempts, quiet = false } = call;
  const { sink, events, settings: { prepare }, definition: { senders } } = engine;
  const ctx = prepare ? await prepare(modelContext) : modelContext;
  const request = senders.reduce((request, change) => change(request, ctx), ctx.request);
  const model = expectModel(request.model);
  if (!quiet) engine.definition.wrapHooks?.requested?.({ ...ctx, request });
  const answer = new ResponseAccumulator({
    turn,
    ...(quiet
      ? { emit: ignore, events: { emitThrough: ignore, warn: events.warn.bind(events) } }
      : { emit: ctx.emit, events }),
    uniqueId: (id, usedIds) => uniqueId(engine, id, usedIds),
  });
  const start = performance.now();
  let firstChunk: number | undefined;
  try {
    for await (const events of model.stream(request, { signal: ctx.signal })) {
      firstChunk ??= performance.now() - start;
      if (cancellation.aborted) throw cancellation.reason;
      if (events.length > 1) sink.cork(); // events that arrived together are sent together
      try {
        for (const event of events) answer.add(event);
      } finally {
        sink.uncork();
      }
      const full = sink.full;
      if (full) await withGracePeriod(full, cancellation, 0, () => {});
    }
  } finally {
    call.shown ||= answer.shown && !quiet;
    engine.spend(answer.usage, model.id);
  }
  if (cancellation.aborted) throw cancellation.reason;
  const { finish, usage, id, edits } = answer;
  if (finish && firstChunk !== undefined) {
    const parts = answer.end();
    const facts = { usage, model: model.id, attempts, ...(id && { id }), ...(edits && { edits }), firstChunk };
    return { parts, finish: finishOf(parts, finish), ...facts };
  }
  throw new ModelError(`Cannot complete turn ${turn}: the stream of ${model.id} was cut`, { recoverable: true });
}

function ignore(): void {}
