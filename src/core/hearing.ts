/**
 * A response of a model, as it is heard.
 *
 * @module
 */
import { ModelError, type ModelEvent } from "../model/model.ts";
import type { FinishReason } from "../protocol/event.ts";
import { type AnswerPart, type Call, type Json, noUsage, type Usage } from "../protocol/message.ts";
import type { Asking } from "./blueprint.ts";
import type { Live } from "./live.ts";
import type { ModelContext } from "./points.ts";

const deltas = { text: "text.delta", reasoning: "reasoning.delta" } as const;

/** A call whose input grows. */
interface Making {
  readonly id: string;
  readonly name: string;
  text: string;
}

/** A response as it is heard: parts grow, deltas go out. */
export class Hearing {
  /** Why the model stopped, once it has said so. */
  finish: FinishReason | undefined;
  /** What it took. */
  usage: Usage = noUsage;
  readonly #parts: AnswerPart[] = [];
  readonly #calls = new Map<string, Making>();
  readonly #ids = new Set<string>();
  readonly #ctx: ModelContext;
  readonly #asking: Asking;
  /** The part that grows, and its text so far: in pieces, since a string that grew piece by piece is slow to read. */
  #growing: "text" | "reasoning" | undefined;
  #pieces: string[] = [];

  /** Begins with nothing heard; deltas go out where `ctx` says. */
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

  /** Takes the next piece. */
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
        const call: Call = { id, name, ...(event.input === undefined ? inputOf(text) : { input: event.input }) };
        this.#end();
        this.#parts.push({ type: "call", ...call });
        this.#asking.shown = true;
        return live.events.announce(this.#ctx.emit, { type: "call.ready", turn, call });
      }
      case "finish":
        this.finish = event.reason;
        this.usage = event.usage ?? noUsage;
        live.spend(this.usage);
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

  #call(id: string): Making {
    const call = this.#calls.get(id);
    if (!call) throw new ModelError(`Cannot read call ${id}: it did not start`);
    return call;
  }
}

/** The input of a call, read from its JSON text; an empty text is no input. */
export function inputOf(text: string): Pick<Call, "input" | "malformed"> {
  try {
    return { input: text.trim() === "" ? {} : JSON.parse(text) };
  } catch (error) {
    return { input: text, malformed: error instanceof Error ? error.message : "not JSON" };
  }
}

/** An id for a call: the given one, or one made of it where it is taken. */
export function unique(id: string, ids: Set<string>, live: Live): string {
  let unique = id;
  for (let n = 2; ids.has(unique) || live.transcript.knows(unique); n++) unique = `${id}_${n}`;
  ids.add(unique);
  return unique;
}
