/**
 * A streamed response in chunks: events of a model request become chunks, and chunks that leave the hooks become events and a response.
 *
 * @module
 */
import { usageOf } from "./session_view.ts";
import type { Data } from "./patterns.ts";
import {
  type AnswerPart,
  type CallPart,
  type Event,
  type FinishReason,
  type ModelContext,
  type ModelResponse,
  noUsage,
} from "../../../mod.ts";
import { holdEvent } from "../../../src/core/kit.ts";
import { parseJson } from "../kit/answers.ts";

/** The reasons of stops, as mods see them. */
export const stopReasons: Readonly<Record<FinishReason, string>> = {
  ...{ stop: "end_turn", calls: "tool_use", length: "max_tokens", filter: "refusal", refusal: "refusal" },
  ...{ empty: "end_turn", other: "end_turn" },
};

/** The events of parts that a filter may hold back. */
const parts = ["part.added", "provider_tool.started", "provider_tool.finished"];

// From the model to the hooks.

/** A block of a response: a part, with the chunks of its content. */
interface Block {
  readonly kind: "text" | "thinking" | "tool" | "engine";
  readonly chunks: Data[];
}

/** The response to one request, as chunks for the hooks. */
export class Incoming {
  readonly #ctx: ModelContext;
  readonly #outgoing: Outgoing;
  readonly #queue: Data[] = [];
  readonly #blocks: Block[] = [];
  readonly #callBlocks = new Map<string, number>();
  /** The number of chunks of the kind `engine`. */
  #engineChunks = 0;
  #arrived = Promise.withResolvers<void>();
  #error: { readonly error: unknown } | undefined;
  #open: number | undefined;
  /** Set once the response has ended. */
  response: ModelResponse | undefined;

  constructor(ctx: ModelContext, outgoing: Outgoing) {
    this.#ctx = ctx;
    this.#outgoing = outgoing;
  }

  /** Filters the events of the request: those of the response wait for the hooks, others pass. */
  emit(event: Event): void {
    switch (event.type) {
      case "text.delta":
        return this.#add("text", event.part, { text: event.text });
      case "reasoning.delta":
        return this.#add("thinking", event.part, { text: event.text });
      case "call.delta":
        return this.#addInput(event.call, event.name, event.text);
      case "call.ready": {
        const { id, name, input, malformed } = event.call;
        if (!this.#callBlocks.has(id)) {
          this.#addInput(id, name, malformed === undefined ? JSON.stringify(input) : String(input));
        }
        return holdEvent(this.#ctx.run, event);
      }
      case "model.reset":
        this.#queue.splice(0);
        this.#outgoing.reset(event, this.#blocks.length > 0);
        this.#blocks.splice(0);
        this.#callBlocks.clear();
        this.#open = undefined;
        return;
      default:
        if (!parts.includes(event.type)) return this.#ctx.emit(event);
        this.#open = undefined;
        this.#blocks.push({ kind: "engine", chunks: [] });
        this.#engineChunks++;
        this.#push({ kind: "engine", ref: this.#outgoing.refTo(event) });
    }
  }

  #add(kind: "text" | "thinking", part: number, content: Data): void {
    if (this.#open !== part || this.#blocks.at(-1)?.kind !== kind) this.#blocks.push({ kind, chunks: [] });
    this.#open = part;
    this.#addTo(this.#blocks.length - 1, { kind, ...content });
  }

  #addInput(id: string, name: string, json: string): void {
    this.#open = undefined;
    let index = this.#callBlocks.get(id);
    if (index === undefined) {
      index = this.#blocks.push({ kind: "tool", chunks: [] }) - 1;
      this.#callBlocks.set(id, index);
      this.#addTo(index, { kind: "tool", id, name });
    }
    this.#addTo(index, { kind: "input", json });
  }

  #addTo(index: number, { kind, ...content }: Data): void {
    const chunk = { kind, index, ...content };
    this.#blocks[index]?.chunks.push(chunk);
    this.#push(chunk);
  }

  #push(chunk: Data): void {
    this.#queue.push(chunk);
    this.#arrived.resolve();
  }

  /** Ends the response. Parts that an inner hook has added without events become chunks. */
  end(response: ModelResponse): void {
    this.response = response;
    if (this.#blocks.length === 0) this.#addParts(response.parts);
    const stopReason = stopReasons[response.finish];
    this.#push({ kind: "stop", stopReason, usage: usageOf(response.usage, response.model) });
  }

  #addParts(added: readonly AnswerPart[]): void {
    for (const [index, part] of added.entries()) {
      if (part.type === "text") this.#add("text", index, { text: part.text });
      else if (part.type === "reasoning") this.#add("thinking", index, { text: part.text });
      else if (part.type === "call") this.#addInput(part.id, part.name, JSON.stringify(part.input));
      else this.#blocks.push({ kind: "engine", chunks: [] });
    }
  }

  /** Ends the response with an error. */
  fail(error: unknown): void {
    this.#error = { error };
    this.#arrived.resolve();
  }

  /** Yields the chunks as they arrive. Throws the error of the request. */
  async *chunks(): AsyncIterable<Data> {
    while (true) {
      for (let chunk = this.#queue.shift(); chunk; chunk = this.#queue.shift()) yield chunk;
      if (this.#error) throw this.#error.error;
      if (this.response) return;
      this.#arrived = Promise.withResolvers();
      await this.#arrived.promise;
    }
  }

  /** Whether chunks are the response as it arrived. */
  isWhole(chunks: readonly Data[]): boolean {
    const made = this.#blocks.flatMap((block) => block.chunks);
    const streamed = chunks.filter(({ kind }) => kind !== "stop" && kind !== "engine");
    const engine = chunks.filter(({ kind }) => kind === "engine");
    return engine.length === this.#engineChunks && streamed.length === made.length &&
      streamed.every((chunk, at) => isSameChunk(chunk, made[at]));
  }

  /** Returns the part of the response behind a block; undefined if inner hooks have changed the parts. */
  partOf(index: number): AnswerPart | undefined {
    const made = this.response?.parts ?? [];
    return made.length === this.#blocks.length ? made[index] : undefined;
  }

  /** Returns the chunks of a block, as they arrived. */
  chunksOf(index: number): readonly Data[] {
    return this.#blocks[index]?.chunks ?? [];
  }
}

function isSameChunk(a: Data, b: Data | undefined): boolean {
  return b !== undefined && ["kind", "index", "text", "id", "name", "json"].every((field) => a[field] === b[field]);
}

// From the hooks to the client and the transcript.

/** A block that has left the hooks. */
interface OutBlock {
  readonly kind: unknown;
  readonly index: number;
  readonly chunks: Data[];
  /** The event of a part that hooks passed on. */
  readonly event?: Event;
}

/** The response that leaves the hooks: its events are emitted, and its parts are collected. */
export class Outgoing {
  readonly #ctx: ModelContext;
  readonly #chunks: Data[] = [];
  readonly #blocks: OutBlock[] = [];
  /** The events that hooks see as chunks of the kind `engine`, by their `ref`. */
  readonly #events: Event[] = [];
  #stop: Data | undefined;

  constructor(ctx: ModelContext) {
    this.#ctx = ctx;
  }

  /** Returns the number by which a chunk refers to an event. */
  refTo(event: Event): number {
    return this.#events.push(event) - 1;
  }

  /** Takes back what clients have seen. If another request follows in the same step, what hooks yielded before stays. */
  reset(event: Event, isRetry: boolean): void {
    this.#ctx.emit(event);
    if (isRetry) {
      this.#chunks.splice(0);
      this.#blocks.splice(0);
      return;
    }
    for (const [part, block] of this.#blocks.entries()) {
      for (const chunk of block.chunks) this.#emit(chunk, part, block);
    }
  }

  /** Adds a chunk, and emits its event. */
  add(chunk: Data): void {
    this.#chunks.push(chunk);
    if (chunk.kind === "stop") {
      this.#stop = chunk;
      return;
    }
    const block = chunk.kind === "engine" ? this.#engineBlock(chunk) : this.#blockOf(chunk);
    if (!block) return;
    block.chunks.push(chunk);
    this.#emit(chunk, this.#blocks.indexOf(block), block);
  }

  #engineBlock({ ref }: Data): OutBlock | undefined {
    const event = this.#events[Number(ref)];
    if (!event) return undefined;
    const block: OutBlock = { kind: "engine", index: -1, chunks: [], event };
    this.#blocks.push(block);
    return block;
  }

  #blockOf({ kind, index }: Data): OutBlock | undefined {
    const type = kind === "input" ? "tool" : kind;
    const known = this.#blocks.findLast((block) => block.index === index && block.kind === type);
    if (known || kind === "input") return known; // arguments without their call
    const block = { kind: type, index: Number(index), chunks: [] };
    this.#blocks.push(block);
    return block;
  }

  #emit(chunk: Data, part: number, { event, chunks: [first] }: OutBlock): void {
    const { turn } = this.#ctx;
    const text = String(chunk.text ?? chunk.json ?? "");
    if (event) this.#ctx.emit(event);
    else if (chunk.kind === "text") this.#ctx.emit({ type: "text.delta", turn, part, text });
    else if (chunk.kind === "thinking") this.#ctx.emit({ type: "reasoning.delta", turn, part, text });
    else if (chunk.kind === "input" && first) {
      this.#ctx.emit({ type: "call.delta", turn, call: String(first.id), name: String(first.name), text });
    }
  }

  /** Ends the response. Without a request, it is the hooks' own. */
  end(requests: readonly Incoming[], model: string): ModelResponse {
    const last = requests.findLast(({ response }) => response);
    const response = last?.response;
    if (last && response && requests.length === 1 && last.isWhole(this.#chunks)) {
      for (const part of response.parts) if (part.type === "call") this.#emitReady(part);
      return this.#stopped(response);
    }
    const parts = this.#blocks.flatMap((block): readonly AnswerPart[] => this.#partOf(block, last));
    for (const part of parts) if (part.type === "call") this.#emitReady(part);
    const partsFinish = parts.some(({ type }) => type === "call") ? "calls" : "stop";
    const finish = response && !isEnd(response.finish) ? response.finish : partsFinish;
    const base = response ?? { usage: noUsage, model, attempts: 0 };
    return this.#stopped({ ...base, parts, finish });
  }

  #emitReady({ type: _, ...call }: CallPart): void {
    this.#ctx.emit({ type: "call.ready", turn: this.#ctx.turn, call });
  }

  /** Applies another reason in the last chunk. */
  #stopped(response: ModelResponse): ModelResponse {
    const reason = this.#stop?.stopReason;
    if (reason === undefined || reason === stopReasons[response.finish] || reason === null) return response;
    const finish = (Object.keys(stopReasons) as FinishReason[]).find((each) => stopReasons[each] === reason); // its keys
    return finish && finish !== "stop" && finish !== "calls" ? { ...response, finish } : response;
  }

  /** Returns the part of a block. One that did not change is the model's own. */
  #partOf({ kind, index, chunks, event }: OutBlock, last: Incoming | undefined): readonly AnswerPart[] {
    if (event) return "content" in event ? [event.content] : [];
    const before = last?.chunksOf(index) ?? [];
    const made = last?.partOf(index);
    const isSame = chunks.length === before.length && chunks.every((chunk, at) => isSameChunk(chunk, before[at]));
    if (made && isSame && made.type === partTypes[String(kind)]) return [made];
    if (kind === "thinking") return made?.type === "reasoning" ? [made] : []; // the signed original is kept
    if (kind === "text") return [{ type: "text", text: chunks.map(({ text }) => text).join("") }];
    return [callOf(chunks)];
  }
}

/** The types of parts, by the kinds of their chunks. */
const partTypes: Readonly<Record<string, string>> = { text: "text", thinking: "reasoning", tool: "call" };

/** Whether a response ended by itself. */
function isEnd(finish: FinishReason): boolean {
  return finish === "stop" || finish === "calls" || finish === "empty";
}

/** Returns the call of a block: its pieces are joined and parsed. */
function callOf([{ id, name } = {}, ...pieces]: readonly Data[]): CallPart {
  const json = pieces.map((piece) => piece.json ?? "").join("");
  const input = json.trim() === "" ? {} : parseJson(json);
  const call = { type: "call", id: String(id), name: String(name) } as const;
  return input === undefined ? { ...call, input: json, malformed: "its pieces are no JSON" } : { ...call, input };
}
