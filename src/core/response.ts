/**
 * The streamed response of a model: its parts grow, deltas are emitted, calls get ids, and the text that clients have seen is kept.
 *
 * @module
 */
import type { Events } from "./events.ts";
import { reasonOf } from "./lib/cancellation.ts";
import type { ModelResponse } from "./points.ts";
import type { EngineRun } from "./run.ts";
import { ModelError, type ModelEvent } from "../model/model.ts";
import type { Emit, Event, FinishReason } from "../protocol/event.ts";
import { type AssistantMessage, noUsage, textOf, type Usage } from "../protocol/message.ts";
import type { AddedPart, AnswerPart, Call, Json } from "../protocol/part.ts";

// The ids of calls: unique in a session, also if a provider or a cache repeats one. They contain no `/`, which joins the ids of a subagent's call and of its
// parent's call.

/** Renames calls whose ids the session knows, since a cache returns the same response again, and calls whose ids are empty or contain `/`. */
export function renameCalls(response: ModelResponse, engine: EngineRun, middleware: string): ModelResponse {
  const ids = new Set<string>();
  const parts = response.parts.map((part) => {
    if (part.type !== "call") return part;
    const id = uniqueId(engine, part.id, ids);
    return id === part.id ? part : { ...part, id };
  });
  if (parts.every((part, index) => part === response.parts[index])) return response;
  const isClear = response.parts.every((part) => part.type !== "call" || part.id === clear(part.id));
  const why = isClear ? "of other calls" : "that are empty or contain a /";
  engine.events.warn("transcript.repaired", `The response was not valid: its calls had ids ${why}`, {
    middleware,
    point: "model",
  });
  return { ...response, parts };
}

/** Returns `id`, or a new id made from it if another call has it, if it is empty, or if it contains `/`. */
export function uniqueId({ loop }: EngineRun, id: string, ids: Set<string>): string {
  const base = clear(id);
  let unique = base;
  for (let n = 2; ids.has(unique) || loop.transcript.knows(unique); n++) unique = `${base}_${n}`;
  ids.add(unique);
  return unique;
}

/** Returns an id that can be a part of a path of ids. */
function clear(id: string): string {
  return id.replaceAll("/", "_") || "call";
}

// The accumulator of a response: it adds up the events of the model, and emits those of the run.

const deltas = { text: "text.delta", reasoning: "reasoning.delta" } as const;

/** The parts whose event is not `part.added`. */
const ownEvents: { readonly [type in AddedPart["type"]]?: Event["type"] } = {
  provider_call: "provider_tool.started",
  provider_result: "provider_tool.finished",
};

/** A call whose input is streaming. */
interface StreamingCall {
  readonly id: string;
  readonly name: string;
  text: string;
}

/** The services of an accumulator. */
interface ResponseOptions {
  readonly turn: number;
  readonly emit: Emit;
  /** Emits the events that no filter may drop. */
  readonly events: { readonly emitThrough: Events["emitThrough"]; readonly warn: Events["warn"] };
  /** Returns an id that no other call of the session has. */
  readonly uniqueId: (id: string, usedIds: Set<string>) => string;
}

/** A response in progress. */
export class ResponseAccumulator {
  /** The reason why the model stopped, once it has. */
  finish: FinishReason | undefined;
  usage: Usage = noUsage;
  /** The provider's id of the response. */
  id: string | undefined;
  edits: ModelResponse["edits"];
  /** True once a client may have seen a part of the response. */
  shown = false;
  readonly #parts: AnswerPart[] = [];
  /** The calls that are streaming, and the ids of all calls, once there is one. */
  #calls: Map<string, StreamingCall> | undefined;
  #ids: Set<string> | undefined;
  readonly #options: ResponseOptions;
  readonly #emit: Emit;
  readonly #turn: number;
  /** The type of the growing part, and its text in pieces: a string that grew piece by piece is slow to read. */
  #growing: "text" | "reasoning" | undefined;
  #pieces: string[] = [];

  constructor(options: ResponseOptions) {
    this.#options = options;
    this.#emit = options.emit;
    this.#turn = options.turn;
  }

  /** Ends the growing part, and returns all parts. */
  end(): readonly AnswerPart[] {
    this.#endPart();
    return this.#parts;
  }

  /** Adds an event of the model. */
  add(event: ModelEvent): void {
    switch (event.type) {
      case "text":
      case "reasoning":
        return this.#grow(event);
      case "part":
        this.#endPart();
        if ("callId" in event.part) this.#calls?.delete(event.part.callId); // the provider runs the call that was streamed
        this.shown = true;
        this.#emit(addedEvent(event.part, { turn: this.#turn, part: this.#parts.length }));
        this.#parts.push(event.part);
        return;
      case "call.start": {
        const id = this.#options.uniqueId(event.id, this.#ids ??= new Set());
        this.#calls ??= new Map();
        this.#calls.set(event.id, { id, name: event.name, text: "" });
        return;
      }
      case "call.delta": {
        const call = this.#call(event.id);
        call.text += event.text;
        this.shown = true;
        return this.#emit({ type: "call.delta", turn: this.#turn, call: call.id, name: call.name, text: event.text });
      }
      case "call.end":
        return this.#endCall(event);
      case "warning":
        return this.#options.events.warn("response.unread", event.message);
      case "finish":
        this.usage = event.usage ?? noUsage;
        this.id = event.id;
        this.edits = event.edits;
        this.#endOpenCalls(event.reason);
        this.finish = event.reason;
    }
  }

  /** Ends the calls that the provider did not close. Throws if there is one, unless the response was cut. In a response that was cut, calls whose input is not JSON are incomplete. */
  #endOpenCalls(reason: FinishReason): void {
    const wasCut = reason !== "calls" && reason !== "stop";
    for (const [id, call] of this.#calls ?? []) {
      if (!wasCut) throw new ModelError(`Cannot read call "${id}": expected its end before the finish`);
      this.#addCall(id, call, parseInput(call.text, { isClosed: false }));
    }
    if (!wasCut) return;
    for (const [index, part] of this.#parts.entries()) {
      if (part.type === "call" && part.malformed !== undefined) this.#parts[index] = { ...part, incomplete: true };
    }
  }

  #grow(event: Extract<ModelEvent, { type: "text" | "reasoning" }>): void {
    const { type, text } = event;
    const meta = type === "reasoning" ? event.meta : undefined;
    if (text === "" && meta === undefined) return;
    if (this.#growing !== type) this.#endPart();
    this.#growing = type;
    this.#pieces.push(text);
    if (text !== "") {
      this.shown = true;
      this.#emit({ type: deltas[type], turn: this.#turn, part: this.#parts.length, text });
    }
    if (meta !== undefined) this.#endPart(meta);
  }

  /** Ends the growing part. `meta` belongs to it. */
  #endPart(meta?: Json): void {
    if (!this.#growing) return;
    const text = this.#pieces.join("");
    this.#parts.push(
      this.#growing === "text"
        ? { type: "text", text }
        : { type: "reasoning", text, ...(meta !== undefined && { meta }) },
    );
    this.#growing = undefined;
    this.#pieces = [];
  }

  #endCall({ id, input }: Extract<ModelEvent, { type: "call.end" }>): void {
    const call = this.#call(id);
    this.#addCall(id, call, input === undefined ? parseInput(call.text) : { input });
  }

  #addCall(key: string, { id, name }: StreamingCall, input: Omit<Call, "id" | "name">): void {
    this.#calls?.delete(key);
    const call: Call = { id, name, ...input };
    this.#endPart();
    this.#parts.push({ type: "call", ...call });
    this.shown = true;
    this.#options.events.emitThrough(this.#emit, { type: "call.ready", turn: this.#turn, call });
  }

  #call(id: string): StreamingCall {
    const call = this.#calls?.get(id);
    if (!call) throw new ModelError(`Cannot read call "${id}": expected its start first`);
    return call;
  }
}

/** Creates the event of a part that is complete at once. */
export function addedEvent(content: AddedPart, at: { readonly turn: number; readonly part: number }): Event {
  return { type: ownEvents[content.type] ?? "part.added", ...at, content } as Event; // of this type
}

/** Parses the JSON text of a call's input. An empty text is an empty input if the provider closed the call, and incomplete otherwise; so is a number, which may go on. */
export function parseInput(text: string, { isClosed = true } = {}): Omit<Call, "id" | "name"> {
  try {
    const input = isClosed && text.trim() === "" ? {} : JSON.parse(text);
    if (isClosed || typeof input !== "number") return { input };
    throw new SyntaxError("the number may go on");
  } catch (error) {
    return { input: text, malformed: reasonOf(error), ...(!isClosed && { incomplete: true }) };
  }
}

/** Returns the finish reason of a response. One that ended by itself, without text, file or call, is empty. */
export function finishOf(parts: ModelResponse["parts"], finish: FinishReason): FinishReason {
  if (finish !== "stop" && finish !== "calls") return finish;
  const hasContent = parts.some(({ type }) => type === "call" || type === "media") || textOf({ parts }).trim() !== "";
  return hasContent ? finish : "empty";
}

/** Collects the text that clients have seen. */
export class ShownText {
  #pieces: string[] = [];
  readonly #emit: Emit;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Passes an event on, and collects its text. */
  readonly emit: Emit = (event) => {
    if (event.type === "text.delta") this.#pieces.push(event.text);
    else if (event.type === "model.reset") this.#pieces = [];
    this.#emit(event);
  };

  get text(): string {
    return this.#pieces.join("");
  }
  get message(): AssistantMessage {
    return { role: "assistant", parts: this.#pieces.length === 0 ? [] : [{ type: "text", text: this.text }] };
  }
}
