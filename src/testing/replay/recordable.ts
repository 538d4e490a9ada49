/**
 * Recordable agents.
 *
 * @module
 */
import {
  type Agent,
  expectRunOptions,
  type PromptOptions,
  type ResumeOptions,
  type RunHandle,
  runHandle,
  type VarsOption,
} from "../../core/agent.ts";
import { type AgentDefinition, defineAgent } from "../../core/definition.ts";
import type { RunResult } from "../../core/points.ts";
import { stops } from "../../core/position.ts";
import { memory } from "../../core/memory.ts";
import type { Store } from "../../core/store.ts";
import type { NumberedEvent } from "../../core/events.ts";
import { start, type Started, type StartOptions } from "../../core/start.ts";
import { user } from "../../protocol/message.ts";
import type { Sink } from "../../stream/channel.ts";
import type { RecordedRequest, Recording } from "./recording.ts";
import { Tape, watchedStore, withoutInnermost } from "./tape.ts";

/** Whether a run is recorded. */
export interface RecordOption {
  /** Records the run. Default: the option of `recordable()`. */
  readonly record?: boolean;
}

/** The handle of a run that may be recorded. */
export interface RecordedHandle<O> extends RunHandle<O> {
  /** The recording, after the end of the run. Undefined if the run is not recorded. */
  readonly recording: Promise<Recording | undefined>;
}

/** An agent whose runs can be recorded. */
export interface RecordableAgent<V, O> extends Agent<V, O> {
  /** Answers a prompt. */
  run(options: PromptOptions & RecordOption & VarsOption<V>): RecordedHandle<O>;
  /** Answers a prompt of an agent that needs no vars. */
  run(prompt: Record<never, never> extends VarsOption<V> ? string : never): RecordedHandle<O>;
  /** Continues a run after a pause. */
  resume(options: ResumeOptions & RecordOption & VarsOption<V>): RecordedHandle<O>;
}

/** Options of `recordable()`. */
export interface RecordableOptions extends RecordOption {
  /** Receives the recording of each recorded run, also of those that `serve()` starts. Its errors go to `onError` of the run. Default: none. */
  readonly save?: (recording: Recording) => void | Promise<void>;
}

/** The options of a run, however it starts. */
type Given = Omit<StartOptions, "store" | "vars"> & RecordOption & {
  readonly store?: Store;
  readonly vars?: unknown;
  readonly prompt?: string;
};

/**
 * Returns an agent whose runs can be recorded: those with `record: true`. A recording contains the prompt, and the output of the model and of the tools
 * before any hook masks it, the values that tools set with `state()`, and the times that hooks read with `ctx.run.now()`. State that a tool or a hook keeps
 * elsewhere, the times that a hook reads with `Date.now()`, and messages of other processes are not recorded.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { recordable, rerun } from "@jizai/jizai/replay";
 * import { assertEquals } from "@std/assert";
 *
 * const assistant = recordable(agent({ model: scripted("Hello!") }));
 * const recording = await assistant.run({ prompt: "Hi", record: true }).recording;
 *
 * const again = await rerun(recording!, assistant); // the model is not asked again
 * assertEquals(JSON.stringify(again.events), JSON.stringify(recording!.events));
 * ```
 */
export function recordable<V, O>(agent: Agent<V, O>, options: RecordableOptions = {}): RecordableAgent<V, O> {
  const definition = agent["~definition"] as AgentDefinition; // agent() made it
  const memoryStore = memory();

  function startRun(
    startOptions: object,
    sink: Sink<NumberedEvent>,
  ): Started & { recording: Promise<Recording | undefined> } {
    const { record = options.record ?? false, prompt, ...rest } = startOptions as Given; // the methods of the agent declare it
    expectRunOptions(rest, { ofServer: true });
    const all: StartOptions = {
      store: memoryStore,
      vars: undefined,
      ...rest,
      ...(prompt !== undefined && { messages: [user(prompt)] }),
    };
    if (!record) return Object.assign(start(definition, all, sink), { recording: Promise.resolve(undefined) });
    const tape = new Tape();
    const { startedAt } = tape;
    const watched = { ...all, startedAt, store: watchedStore(all.store, tape) };
    const started = start(tapedAgent(definition, tape), watched, sink);
    const recording = finished(started, tape, definition, requestOf(all));
    const { save } = options;
    const saved = save ? recording.then(save) : recording;
    saved.catch((error) => all.onError?.(error, { id: crypto.randomUUID(), session: started.session }));
    return Object.assign(ordered(started, tape, all.signal), { recording });
  }

  function handle(promptOrOptions: object | string): RecordedHandle<O> {
    let recording!: Promise<Recording | undefined>;
    const run = runHandle<O>((sink) => {
      const started = startRun(
        typeof promptOrOptions === "string" ? { prompt: promptOrOptions } : promptOrOptions,
        sink,
      );
      recording = started.recording;
      return started;
    }, definition.format?.stream);
    return Object.assign(run, { recording });
  }

  const { name, description } = agent;
  return { name, description, run: handle, resume: handle, start: startRun, "~definition": definition };
}

/** Returns the agent with the recorder inside its hooks. */
function tapedAgent(definition: AgentDefinition, tape: Tape): AgentDefinition {
  const { model, use, observers, now } = definition;
  return defineAgent({
    ...definition,
    ...withoutInnermost(definition),
    now: tape.timed(now),
    use: [...use, tape.middleware],
    observers: [...observers, (event) => tape.events.push(event)],
    async model(scope) {
      const chosen = typeof model === "function" ? await model(scope) : model;
      tape.model ??= chosen.id;
      return tape.taped(chosen);
    },
  });
}

/** Returns the handle with its orders recorded. */
function ordered(started: Started, tape: Tape, signal: AbortSignal | undefined): Started {
  const onAbort = () => tape.order({ type: "stop", reason: stops.signal.reason, rollback: false });
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const { session, ready, result } = started;
  result.finally(() => signal?.removeEventListener("abort", onAbort)); // the result never rejects
  return {
    session,
    ready,
    get messages() {
      return started.messages;
    },
    get waiting() {
      return started.waiting;
    },
    result,
    handOver: (grace) => started.handOver(grace),
    stop(reason = stops.stop.reason, options = {}) {
      tape.order({ type: "stop", reason, rollback: options.rollback ?? false });
      started.stop(reason, options);
    },
    abort(stop, options = {}) {
      tape.order({ type: "stop", reason: stop.reason, rollback: options.rollback ?? false });
      started.abort(stop, options);
    },
    send(message, options = {}) {
      tape.order({ type: "send", message, ...(options.after && { after: options.after }) });
      return started.send(message, options);
    },
    finish() {
      tape.order({ type: "finish" });
      return started.finish();
    },
    drain(reason) {
      tape.order({ type: "drain", reason });
      started.drain(reason);
    },
  };
}

function requestOf(
  { messages, call, answers = [], detailed }: Pick<StartOptions, "messages" | "call" | "answers" | "detailed">,
): RecordedRequest {
  const details = detailed === undefined ? {} : { detailed };
  return messages
    ? { type: "run", messages, ...(call && { call }), ...details }
    : { type: "resume", answers, ...details };
}

/** Returns the recording at the end of a run. A run that could not start has an empty one. */
async function finished(
  started: Started,
  tape: Tape,
  { name, model, tools }: AgentDefinition,
  request: RecordedRequest,
): Promise<Recording> {
  const { status, text, run, session }: RunResult = await started.result;
  return {
    version: 1,
    agent: name,
    model: tape.model ?? (typeof model === "function" ? "" : model.id),
    startedAt: tape.startedAt,
    run,
    session,
    ...(tape.before && { before: tape.before }),
    request,
    tools: tools.map(({ definition }) => definition),
    entries: tape.entries,
    events: tape.events,
    times: tape.times,
    result: { status, text },
  };
}
