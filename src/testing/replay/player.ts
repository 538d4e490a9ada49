/**
 * Plays a recording: reads its entries, and answers the model requests and the executions of a run with the recorded values.
 *
 * @module
 */
import type { OpenCall } from "../../core/call.ts";
import { collectInnerCalls } from "../../core/features/inner_calls.ts";
import { skipped } from "../../core/hook_answers.ts";
import { canonicalJson } from "../../core/lib/json.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { ExecuteContext } from "../../core/points.ts";
import type { Run } from "../../core/scope.ts";
import type { AnyTool } from "../../core/tool.ts";
import type { Model, ModelEvent } from "../../model/model.ts";
import type { ToolResult, Usage } from "../../protocol/message.ts";
import { errorOf, type RecordedEntry, type RecordedInput, type RecordedOrder, type Recording } from "./recording.ts";
import { innermost } from "./tape.ts";

// Reads the entries of a recording. Entries of concurrent sources come in the recorded order.

/** A source whose entries a run is reading: a response of the model, or an execution of a call. */
interface Source {
  /** The indexes of the entries that are left. */
  readonly left: number[];
  /** Resolves the waiting read. */
  wake?: (() => void) | undefined;
}

/** Reads the entries of one recording, and repeats the orders of the caller among them. */
class EntryReader {
  readonly #entries: readonly RecordedEntry[];
  readonly #inOrder: boolean;
  readonly #sources: ReadonlyMap<string, readonly number[]>;
  /** The indexes of the orders that are left. */
  readonly #orders: number[];
  readonly #active = new Set<Source>();
  /** The number of opened sources of each kind. */
  readonly #counts = new Map<string, number>();
  #last: Source | undefined;
  #repeatOrder: (order: RecordedOrder) => void = () => {};

  /** Creates a reader. Without `inOrder`, sources do not wait for each other, and no orders are repeated. */
  constructor(entries: readonly RecordedEntry[], inOrder: boolean) {
    this.#entries = entries;
    this.#inOrder = inOrder;
    const bySource = Map.groupBy(entries.keys(), (index) => entries[index]?.source ?? "");
    this.#orders = inOrder ? bySource.get("caller") ?? [] : [];
    bySource.delete("caller");
    this.#sources = bySource;
  }

  /** Sets the function that repeats the orders of the caller. */
  onOrder(repeat: (order: RecordedOrder) => void): void {
    this.#repeatOrder = repeat;
  }

  /** Opens the next source of a kind: `model`, or the id of a call. Returns undefined if there is none. */
  nextSource(kind: string): Source | undefined {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    const left = this.#sources.get(`${kind}-${count}`);
    if (!left) return undefined;
    this.#counts.set(kind, count);
    return { left: [...left] };
  }

  /** Opens the first unused execution of the same tool with the same input: the ids of calls differ if another model answers. */
  nextSourceByInput(name: string, input: unknown): Source | undefined {
    const expected = canonicalJson(input);
    for (const entry of this.#entries) {
      if (entry.type !== "call" || this.#counts.has(entry.call) || entry.name !== name) continue;
      if (canonicalJson(entry.input) === expected) return this.nextSource(entry.call);
    }
    return undefined;
  }

  /** Yields the entries of a source, each in its turn. A source that had not ended when the run ended does not end. */
  async *read(source: Source): AsyncGenerator<RecordedInput> {
    this.#active.add(source);
    try {
      for (;;) {
        await this.#turn(source);
        yield this.#entries[source.left.shift() ?? -1] as RecordedInput; // the caller's orders are no source
      }
    } finally {
      this.#active.delete(source);
      this.#next();
    }
  }

  /** Waits until the next entry of a source is the first of all sources that are being read. */
  async #turn(source: Source): Promise<void> {
    const turn = new Promise<void>((resolve) => source.wake = resolve);
    this.#next();
    await turn;
    // hooks around another source finish first, as they did while the recorded run waited
    if (this.#last !== undefined && this.#last !== source && this.#active.has(this.#last)) await macrotask();
    this.#last = source;
  }

  /** Wakes the source whose entry is next, or repeats the caller's order that is next. */
  #next(): void {
    if (!this.#inOrder) {
      for (const source of this.#active) if (source.left.length > 0) wakeUp(source);
      return;
    }
    for (;;) {
      const first = [...this.#active].sort((a, b) => nextIndex(a) - nextIndex(b))[0];
      const [order = Infinity] = this.#orders;
      if (!first || (order === Infinity && nextIndex(first) === Infinity)) return;
      if (nextIndex(first) < order) return wakeUp(first);
      if (!first.wake) return;
      this.#orders.shift();
      this.#repeatOrder(this.#entries[order] as RecordedOrder); // it has the source "caller"
    }
  }
}

/** Returns the index of the next entry of a source. */
function nextIndex({ left: [index = Infinity] }: Source): number {
  return index;
}

function wakeUp(source: Source): void {
  const { wake } = source;
  source.wake = undefined;
  wake?.();
}

/** Resolves after the work that is ready now. A timer would take milliseconds. */
function macrotask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      port2.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

// The player: a model and tools that repeat the answers of a recording.

/** An execution of a call. */
export interface Execution {
  /** The id of the call. */
  readonly call: string;
  /** The name of the tool. */
  readonly name: string;
  /** The input that the tool received. */
  readonly input: unknown;
}

/** Plays one recording. */
export class Player {
  /** The executions so far, with the inputs that they received. */
  readonly executions: Execution[] = [];
  /** The clock, with the recorded times. A run that reads it more often than the recorded one gets the last time again. */
  readonly now: () => number;
  readonly #reader: EntryReader;
  readonly #model: string;
  readonly #children = new WeakSet<AnyTool>();

  /** Creates a player. `inOrder`: values of concurrent sources come in the recorded order, and orders of the caller are repeated. */
  constructor({ entries, model, times = [], startedAt }: Recording, inOrder: boolean) {
    let time = startedAt;
    const left = times.values();
    this.now = () => time = left.next().value ?? time;
    this.#reader = new EntryReader(entries, inOrder);
    this.#model = model;
  }

  /** Sets the function that repeats the orders of the caller. */
  onOrder(repeat: (order: RecordedOrder) => void): void {
    this.#reader.onOrder(repeat);
  }

  /** Returns a model that answers each request with the next recorded response. */
  model(id: string = this.#model): Model {
    return { id, stream: () => this.#respond() };
  }

  /** Answers model requests and executions. As the innermost, it replaces only what is outside the run. */
  readonly middleware: Middleware = {
    name: innermost,
    inherit: false,
    model: (ctx, next) => next({ request: { model: this.model(ctx.request.model.id) } }),
    execute: (ctx, next) => this.#children.has(ctx.tool) ? next() : this.execute(ctx),
  };

  /** Returns a tool whose calls get their recorded results. The tokens of a subagent count for the run. */
  tool(tool: AnyTool): AnyTool {
    if (!tool["~execute"]) return tool; // the middleware answers
    const played: AnyTool = {
      ...tool,
      "~execute": (ctx: ExecuteContext, call: OpenCall) =>
        collectInnerCalls(call, () => this.execute(ctx, (usage) => call.scope.engine.spend(usage, this.#model))),
    };
    this.#children.add(played);
    return played;
  }

  /** Returns the recorded result of an execution, with its events and the state that it set. A call that is not recorded is skipped. */
  async execute(
    ctx: Pick<ExecuteContext, "callId" | "tool" | "input" | "emit" | "signal" | "run">,
    spend: (usage: Usage) => void = () => {},
  ): Promise<ToolResult> {
    this.executions.push({ call: ctx.callId, name: ctx.tool.name, input: ctx.input });
    const source = this.#reader.nextSource(ctx.callId) ?? this.#reader.nextSourceByInput(ctx.tool.name, ctx.input);
    if (!source) return skipped("The recording has no result for this call.");
    for await (const entry of this.#reader.read(source)) {
      if (entry.type === "emit") ctx.emit(entry.event);
      if (entry.type === "spend") spend(entry.usage);
      if (entry.type === "state") setState(ctx.run, entry);
      if (entry.type === "result") return entry.result;
      if (entry.type === "threw") throw errorOf(entry.error);
    }
    throw unreachable;
  }

  async *#respond(): AsyncGenerator<readonly ModelEvent[]> {
    const source = this.#reader.nextSource("model");
    if (!source) throw new Error("Cannot answer the request: the recording has no further response");
    for await (const entry of this.#reader.read(source)) {
      if (entry.type === "read") yield entry.events;
      if (entry.type === "end") return;
      if (entry.type === "threw") throw errorOf(entry.error);
    }
    throw unreachable;
  }
}

/** Sets recorded state, as a copy: hooks may change it. */
function setState(
  { state, sessionState }: Run,
  { lifetime, name, value }: Extract<RecordedInput, { type: "state" }>,
): void {
  (lifetime === "session" ? sessionState : state).set(name, structuredClone(value));
}

/** Never thrown: `read()` does not return before the entry that ends the loop over it. */
const unreachable = new Error("Cannot continue the replay: the recording has no end of a response or call");
