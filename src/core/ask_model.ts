/**
 * The `model` point: one request and its streamed response.
 *
 * @module
 */
import type { ModelEvent, ModelRequest } from "../model/model.ts";
import { ModelError } from "../model/model.ts";
import type { FinishReason } from "../protocol/event.ts";
import { addUsage, type AnswerPart, type Call, type Json, noUsage, textOf, type Usage } from "../protocol/message.ts";
import { abandon, delay, type Stopping, stopping } from "./abandon.ts";
import { reply } from "./answers.ts";
import { judge, recoverable } from "./failure.ts";
import { isInterrupt } from "./interrupt.ts";
import { lawOf, merged } from "./law.ts";
import type { Live } from "./live.ts";
import type { Law } from "./onion.ts";
import type { ModelChange, ModelContext, ModelResponse } from "./points.ts";
import type { Scope } from "./scope.ts";

/** What the engine knows of one request and its tries. */
export interface Asking {
  readonly live: Live;
  readonly turn: number;
  /** How many requests were sent. */
  attempts: number;
  /** Whether a try that failed had shown something. */
  shown: boolean;
}

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
  seal({ name, returned, below, own: { live } }) {
    return returned === below ? returned : distinct(returned, live, name);
  },
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

/** An id for a call: the given one, or one made of it where it is taken. */
function unique(id: string, ids: Set<string>, live: Live): string {
  let unique = id;
  for (let n = 2; ids.has(unique) || live.transcript.knows(unique); n++) unique = `${id}_${n}`;
  ids.add(unique);
  return unique;
}

/** Asks the model for one turn's response; `error` decides about a failure. */
export async function askModel(live: Live, scope: Scope, turn: number, request: ModelRequest): Promise<ModelResponse> {
  const { run, signal, emit, vars } = scope;
  const asking: Asking = { live, turn, attempts: 0, shown: false };
  let shown: string[] = [];
  live.partial = () => ({
    role: "assistant",
    parts: shown.length === 0 ? [] : [{ type: "text", text: shown.join("") }],
  });
  live.events.announce(emit, { type: "model.started", turn, model: request.model.id });
  const ctx: ModelContext = {
    run,
    signal,
    vars,
    request,
    turn,
    attempt: 1,
    emit(event) {
      if (event.type === "text.delta") shown.push(event.text);
      else if (event.type === "model.reset") shown = [];
      emit(event);
    },
  };
  for (let attempt = 1;; attempt++) {
    try {
      const response = await live.blueprint.onions.model(
        asking.attempts > 0 ? { ...ctx, attempt: asking.attempts + 1 } : ctx,
        asking,
      );
      return finished(response);
    } catch (error) {
      if (isInterrupt(error) || live.aborted) throw error;
      const decision = await judge(live, scope, { error, source: "model", recoverable: recoverable(error), attempt });
      if (decision.type === "abort") throw error;
      if (decision.type === "skip") return finished(reply(""));
      await delay(decision.after, signal);
    }
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
  const at: Stopping = ctx.signal === live.signal ? live : stopping(ctx.signal);
  return abandon(
    read(ctx, asking, at),
    at,
    live.limits.grace,
    () =>
      live.events.warn("hook.abandoned", `The model ${ctx.request.model.id} did not stop when it was told to.`, {
        point: "model",
      }),
  );
}

async function read(ctx: ModelContext, asking: Asking, at: Stopping): Promise<ModelResponse> {
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
    if (full) await abandon(full, at, 0, () => {});
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

const deltas = { text: "text.delta", reasoning: "reasoning.delta" } as const;

/** A response as it is heard: parts grow, deltas go out. */
class Hearing {
  finish: FinishReason | undefined;
  usage: Usage = noUsage;
  readonly #parts: AnswerPart[] = [];
  readonly #calls = new Map<string, { readonly id: string; readonly name: string; text: string }>();
  readonly #ids = new Set<string>();
  readonly #ctx: ModelContext;
  readonly #asking: Asking;
  /** The part that grows, and its text so far: in pieces, since a string that grew piece by piece is slow to read. */
  #growing: "text" | "reasoning" | undefined;
  #pieces: string[] = [];

  constructor(ctx: ModelContext, asking: Asking) {
    this.#ctx = ctx;
    this.#asking = asking;
  }

  /** The parts so far. */
  get parts(): readonly AnswerPart[] {
    return this.#growing ? [...this.#parts, { type: this.#growing, text: this.#text }] : this.#parts;
  }

  get #text(): string {
    return this.#pieces.join("");
  }

  hear(event: ModelEvent): void {
    const { live, turn } = this.#asking;
    switch (event.type) {
      case "text":
      case "reasoning":
        return this.#grow(event);
      case "call.start":
        this.#calls.set(event.id, { id: unique(event.id, this.#ids, live), name: event.name, text: "" });
        return;
      case "call.delta": {
        const call = this.#call(event.id);
        call.text += event.text;
        this.#asking.shown = true;
        return this.#ctx.emit({ type: "call.delta", turn, call: call.id, name: call.name, text: event.text });
      }
      case "call.end": {
        const { id, name, text } = this.#call(event.id);
        this.#calls.delete(event.id);
        const call: Call = { id, name, ...(event.input === undefined ? parsed(text) : { input: event.input }) };
        this.#end();
        this.#parts.push({ type: "call", ...call });
        this.#asking.shown = true;
        return live.events.announce(this.#ctx.emit, { type: "call.ready", turn, call });
      }
      case "finish":
        this.finish = event.reason;
        this.usage = event.usage ?? noUsage;
        live.usage = addUsage(live.usage, this.usage);
    }
  }

  #grow(event: Extract<ModelEvent, { type: "text" | "reasoning" }>): void {
    const { type, text } = event;
    const meta = type === "reasoning" ? event.meta : undefined;
    if (text === "" && meta === undefined) return;
    if (this.#growing !== type) this.#end();
    this.#growing = type;
    this.#pieces.push(text);
    if (text !== "") {
      this.#asking.shown = true;
      this.#ctx.emit({ type: deltas[type], turn: this.#asking.turn, part: this.#parts.length, text });
    }
    if (meta !== undefined) this.#end(meta);
  }

  /** Ends the part that grows; `meta` belongs to it. */
  #end(meta?: Json): void {
    if (this.#growing === "reasoning") {
      this.#parts.push({ type: "reasoning", text: this.#text, ...(meta !== undefined && { meta }) });
    } else if (this.#growing) this.#parts.push({ type: "text", text: this.#text });
    this.#growing = undefined;
    this.#pieces = [];
  }

  #call(id: string): { readonly id: string; readonly name: string; text: string } {
    const call = this.#calls.get(id);
    if (!call) throw new ModelError(`Cannot read call ${id}: it did not start`);
    return call;
  }
}

/** The input of a call, read from its JSON text; an empty text is no input. */
function parsed(text: string): Pick<Call, "input" | "malformed"> {
  try {
    return { input: text.trim() === "" ? {} : JSON.parse(text) };
  } catch (error) {
    return { input: text, malformed: error instanceof Error ? error.message : "not JSON" };
  }
}
