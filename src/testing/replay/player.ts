/**
 * Plays a recording: answers the model requests and the executions of a run with the recorded values.
 *
 * @module
 */
import { skipped } from "../../core/results.ts";
import type { Middleware } from "../../core/middleware.ts";
import type { ExecuteContext } from "../../core/points.ts";
import type { Run } from "../../core/scope.ts";
import type { Model, ModelEvent } from "../../model/model.ts";
import type { AnyTool } from "../../core/tool.ts";
import type { OpenCall } from "../../core/call.ts";
import type { ToolResult, Usage } from "../../protocol/message.ts";
import { EntryReader } from "./entry_reader.ts";
import { errorOf } from "./recorded_error.ts";
import { innermost } from "./tape.ts";
import type { RecordedInput, RecordedOrder, Recording } from "./recording.ts";

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
      "~execute": (ctx: ExecuteContext, { scope: { engine } }: OpenCall) =>
        this.execute(ctx, (usage) => engine.spend(usage)),
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
    const source = this.#reader.open(ctx.callId) ?? this.#reader.openByInput(ctx.tool.name, ctx.input);
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
    const source = this.#reader.open("model");
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
