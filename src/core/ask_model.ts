/**
 * The `model` point: one request and its streamed response.
 *
 * @module
 */
import type { ModelRequest } from "../model/model.ts";
import { ModelError } from "../model/model.ts";
import type { Emit } from "../protocol/event.ts";
import { textOf } from "../protocol/message.ts";
import { type Cancellation, delay, withGracePeriod } from "./abandon.ts";
import { reply } from "./answers.ts";
import { compact } from "./compact.ts";
import { judge, recoverable } from "./failure.ts";
import { Hearing, unique } from "./hearing.ts";
import type { Asking } from "./blueprint.ts";
import { isInterrupt } from "./interrupt.ts";
import { lawOf, merged } from "./law.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "./points.ts";
import type { Scope } from "./scope.ts";

/** The law of `model`. */
export const modelLaw: Law<ModelContext, ModelChange, ModelResponse, Asking> = lawOf("model", ["request"], {
  again: (ctx, { attempts }) => ({ ...ctx, attempt: attempts + 1 }),
  derive(beneath, above, { live }, name) {
    if (beneath.request === above.request) return beneath;
    const request = merged(above.request, beneath.request);
    if (request.messages === above.request.messages) return { ...beneath, request };
    return {
      ...beneath,
      request: { ...request, messages: live.transcript.mended(request.messages, "model", name) },
    };
  },
  seal: ({ name, returned, own: { live } }) => distinct(returned, live, name),
});

/** A response that a hook gave, its calls told from those that the session knows: a cache gives the same ones again. */
function distinct(response: ModelResponse, live: Live, middleware: string): ModelResponse {
  const ids = new Set<string>();
  const parts = response.parts.map((part) => {
    if (part.type !== "call") return part;
    const id = unique(part.id, ids, live);
    return id === part.id ? part : { ...part, id };
  });
  if (parts.every((part, index) => part === response.parts[index])) return response;
  live.events.warn("transcript.repaired", "The response was not valid: its calls had ids of other calls", {
    middleware,
    point: "model",
  });
  return { ...response, parts };
}

/**
 * Asks the model for one turn's response, with what `requestNow` gives; `error` decides about a failure. Where the request is too large, the transcript is
 * compacted and the model asked again, once.
 */
export async function askModel(
  live: Live,
  scope: Scope,
  turn: number,
  requestNow: () => ModelRequest,
): Promise<ModelResponse> {
  const { run, signal, emit, vars } = scope;
  const asking: Asking = { live, turn, attempts: 0, shown: false };
  let request = requestNow();
  let refitted = false;
  let shown: string[] = [];
  live.partial = () => ({
    role: "assistant",
    parts: shown.length === 0 ? [] : [{ type: "text", text: shown.join("") }],
  });
  live.events.announce(emit, { type: "model.started", turn, model: request.model.id });
  const tell: Emit = (event) => {
    if (event.type === "text.delta") shown.push(event.text);
    else if (event.type === "model.reset") shown = [];
    emit(event);
  };
  for (let attempt = 1;; attempt++) {
    try {
      const ctx: ModelContext = { run, signal, vars, request, turn, attempt: asking.attempts + 1, emit: tell };
      return finished(await live.blueprint.onions.model(ctx, asking));
    } catch (error) {
      if (isInterrupt(error) || live.aborted) throw error;
      if (await refit(error)) continue;
      const decision = await judge(live, scope, { error, source: "model", recoverable: recoverable(error), attempt });
      if (decision.type === "abort") throw error;
      if (decision.type === "skip") return finished(reply(""));
      await delay(decision.after, signal);
    }
  }

  /** Makes another request of a transcript that was compacted, where that may help. */
  async function refit(error: unknown): Promise<boolean> {
    if (refitted || !(error instanceof ModelError && error.overflow)) return false;
    refitted = true;
    const { type } = await compact(live, scope, { trigger: "overflow" });
    if (type === "declined") return false;
    live.events.report(error);
    request = requestNow();
    return true;
  }

  function finished(given: ModelResponse): ModelResponse {
    const response = { ...given, attempts: asking.attempts };
    const { finish, usage, attempts } = response;
    const text = textOf(response);
    live.partial = undefined;
    live.gather();
    const differs = text !== shown.join("");
    live.events.announce(emit, { type: "model.finished", turn, finish, usage, attempts, ...(differs && { text }) });
    return response;
  }
}

/** The core of `model`: sends the request and reads the answer. */
export function request(ctx: ModelContext, asking: Asking): Promise<ModelResponse> {
  const { live, turn } = asking;
  asking.attempts++;
  if (asking.shown) {
    asking.shown = false;
    live.events.announce(ctx.emit, { type: "model.reset", turn });
  }
  const at = live.at(ctx.signal);
  return withGracePeriod(
    read(ctx, asking, at),
    at,
    live.limits.grace,
    () =>
      live.events.warn("hook.abandoned", `The model ${ctx.request.model.id} did not stop when it was told to.`, {
        point: "model",
      }),
  );
}

async function read(ctx: ModelContext, asking: Asking, at: Cancellation): Promise<ModelResponse> {
  const { live, turn } = asking;
  const { sink } = live;
  const { model } = ctx.request;
  const answer = new Hearing(ctx, asking);
  for await (const events of model.stream(ctx.request, { signal: ctx.signal })) {
    if (at.aborted) throw at.reason;
    if (events.length > 1) sink.cork(); // what arrived together travels together
    try {
      for (const event of events) answer.hear(event);
    } finally {
      sink.uncork();
    }
    const full = sink.full;
    if (full) await withGracePeriod(full, at, 0, () => {});
  }
  if (at.aborted) throw at.reason;
  if (!answer.finish) {
    throw new ModelError(`Cannot complete turn ${turn}: the stream of ${model.id} was cut`, { recoverable: true });
  }
  return {
    parts: answer.parts,
    finish: answer.finish,
    usage: answer.usage,
    model: model.id,
    attempts: asking.attempts,
  };
}
