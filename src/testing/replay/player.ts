/**
 * Players: they give a run the values of a recording, in the recorded order.
 *
 * @module
 */
import { skipped } from "../../core/hooks/results.ts";
import type { Middleware } from "../../core/hooks/middleware.ts";
import type { ExecuteContext } from "../../core/hooks/points/call.ts";
import { canonicalJson } from "../../core/lib/canonical_json.ts";
import type { Model, ModelEvent } from "../../model/model.ts";
import type { AnyTool } from "../../core/agent/tool.ts";
import type { OpenCall } from "../../core/calls/call.ts";
import type { ToolResult, Usage } from "../../protocol/message.ts";
import { errorOf } from "./recorded_error.ts";
import { innermost } from "./tape.ts";
import type { RecordedEntry, RecordedInput, RecordedOrder, Recording } from "./recording.ts";

/** An execution of a call, and the result that it received. */
export interface Execution {
  /** The id of the call. */
  readonly call: string;
  /** The name of the tool. */
  readonly name: string;
  /** The input that the tool received. */
  readonly input: unknown;
}

/** A source whose entries a run is reading. */
interface Source {
  /** The numbers of the entries that are left. */
  readonly left: number[];
  /** Resolves the waiting read. */
  wake?: (() => void) | undefined;
}

/** Plays one recording. */
export class Player {
  /** The executions so far, with the inputs that they received. */
  readonly executions: Execution[] = [];
  /** The clock, with the recorded times. A run that reads it more often than the recorded one gets the last time again. */
  readonly now: () => number;
  readonly #entries: readonly RecordedEntry[];
  readonly #inOrder: boolean;
  readonly #model: string;
  readonly #sources: Map<string, number[]>;
  readonly #active = new Set<Source>();
  readonly #orders: number[];
  readonly #children = new WeakSet<AnyTool>();
  readonly #counts = new Map<string, number>();
  #last: Source | undefined;
  #obey: (order: RecordedOrder) => void = () => {};

  /** Creates a player. `inOrder`: values of concurrent sources come in the recorded order, and orders of the caller are repeated. */
  constructor({ entries, model, times = [], startedAt }: Recording, inOrder: boolean) {
    let time = startedAt;
    const left = times.values();
    this.now = () => time = left.next().value ?? time;
    this.#entries = entries;
    this.#inOrder = inOrder;
    this.#model = model;
    const bySource = Map.groupBy(entries.keys(), (index) => entries[index]?.source ?? "");
    this.#orders = inOrder ? bySource.get("caller") ?? [] : [];
    bySource.delete("caller");
    this.#sources = bySource;
  }

  /** Sets the function that repeats the orders of the caller. */
  onOrder(obey: (order: RecordedOrder) => void): void {
    this.#obey = obey;
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
      "~execute": (ctx: ExecuteContext, { scope: { engine } }: OpenCall) =>
        this.execute(ctx, (usage) => engine.spend(usage)),
    };
    this.#children.add(played);
    return played;
  }

  /** Returns the recorded result of an execution, with its events. A call that is not recorded is skipped. */
  async execute(
    ctx: Pick<ExecuteContext, "callId" | "tool" | "input" | "emit" | "signal">,
    spend: (usage: Usage) => void = () => {},
  ): Promise<ToolResult> {
    this.executions.push({ call: ctx.callId, name: ctx.tool.name, input: ctx.input });
    const source = this.#open(ctx.callId) ?? this.#alike(ctx.tool.name, ctx.input);
    if (!source) return skipped("The recording has no result for this call.");
    for await (const entry of this.#read(source)) {
      if (entry.type === "emit") ctx.emit(entry.event);
      if (entry.type === "spend") spend(entry.usage);
      if (entry.type === "result") return entry.result;
      if (entry.type === "threw") throw errorOf(entry.error);
    }
    throw unreachable;
  }

  async *#respond(): AsyncGenerator<readonly ModelEvent[]> {
    const source = this.#open("model");
    if (!source) throw new Error("Cannot answer the request: the recording has no further response");
    for await (const entry of this.#read(source)) {
      if (entry.type === "read") yield entry.events;
      if (entry.type === "end") return;
      if (entry.type === "threw") throw errorOf(entry.error);
    }
    throw unreachable;
  }

  /** Returns the next recorded source of a kind, such as the second execution of a call. */
  #open(kind: string): Source | undefined {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    const left = this.#sources.get(`${kind}-${count}`);
    if (!left) return undefined;
    this.#counts.set(kind, count);
    return { left: [...left] };
  }

  /** Returns the first unused execution of the same tool with the same input: the ids of calls differ if another model answers. */
  #alike(name: string, input: unknown): Source | undefined {
    const wanted = canonicalJson(input);
    for (const entry of this.#entries) {
      if (entry.type !== "call" || this.#counts.has(entry.call) || entry.name !== name) continue;
      if (canonicalJson(entry.input) === wanted) return this.#open(entry.call);
    }
    return undefined;
  }

  /** Yields the entries of a source, each in its turn. A source that had not ended when the run ended does not end. */
  async *#read(source: Source): AsyncGenerator<RecordedInput> {
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
      const first = [...this.#active].sort((a, b) => place(a) - place(b))[0];
      const [order = Infinity] = this.#orders;
      if (!first || (order === Infinity && place(first) === Infinity)) return;
      if (place(first) < order) return wakeUp(first);
      if (!first.wake) return;
      this.#orders.shift();
      this.#obey(this.#entries[order] as RecordedOrder); // it has the source "caller"
    }
  }
}

/** Returns the number of the next entry of a source. */
function place({ left: [index = Infinity] }: Source): number {
  return index;
}

function wakeUp(source: Source): void {
  const { wake } = source;
  source.wake = undefined;
  wake?.();
}

/** Thrown nowhere: `#read()` returns only at the end of a source, which ends the loop over it. */
const unreachable = new Error("Cannot continue the replay: the recording has no end of a response or call");

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
