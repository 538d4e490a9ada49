/**
 * Replays of recorded runs.
 *
 * @module
 */
import type { Agent } from "../../core/agent.ts";
import { type AgentDefinition, defineAgent } from "../../core/definition.ts";
import { type AnyTool, schemaOf, tool } from "../../core/tool.ts";
import type { ExecuteContext, RunResult } from "../../core/points.ts";
import { memory } from "../../core/memory.ts";
import type { NumberedEvent } from "../../core/events.ts";
import type { StepScope } from "../../core/run.ts";
import { nullSink, start } from "../../core/start.ts";
import type { Model } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { type Execution, Player } from "./player.ts";
import { withoutInnermost } from "./tape.ts";
import type { RecordedOrder, Recording } from "./recording.ts";

/** The recorded responses and results, as a model and tools. */
export interface Replay {
  /** A model that answers each request with the next recorded response. */
  readonly model: Model;
  /** The tools of the agent. A call gets its recorded result and progress. */
  readonly tools: readonly AnyTool[];
  /** The clock: hooks that read it with `ctx.run.now()` get the recorded times. */
  readonly now: () => number;
}

/**
 * Returns the model, the tools and the clock of a recorded run, for a test. They need no network, and each serves one run.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { recordable, replay } from "@jizai/jizai/replay";
 * import { assertEquals } from "@std/assert";
 *
 * const recorded = recordable(agent({ model: scripted("Hello!") }));
 * const recording = await recorded.run({ prompt: "Hi", record: true }).recording;
 *
 * const { text } = await agent(replay(recording!)).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function replay(recording: Recording): Replay {
  const player = new Player(recording, false);
  const tools = recording.tools.map(({ name, description, schema }) => {
    const replayed: AnyTool = tool({
      name,
      description,
      input: schemaOf<unknown>(schema),
      execute: (input: unknown, ctx) => player.execute({ ...ctx, input, tool: replayed } as ExecuteContext), // the player reads no other fields
    });
    return replayed;
  });
  return { model: player.model(), tools, now: player.now };
}

/** A replayed run. */
export interface Rerun {
  /** The events, with the ids and the times of the recording where both runs emit the same. */
  readonly events: readonly Event[];
  /** The result. */
  readonly result: RunResult;
  /** The executions of tools, with the inputs that they received. */
  readonly executions: readonly Execution[];
}

/** Options of `rerun()`. */
export interface RerunOptions {
  /** The vars of the run. Default: none. */
  readonly vars?: unknown;
  /** The model that answers: the recorded responses, or the agent's own model. Default: "recorded". */
  readonly model?: "recorded" | "agent";
}

/**
 * Runs a recorded run again, with the hooks of `agent`, and with the recorded responses, results and orders of the caller. Neither a model nor a tool runs.
 * `ctx.run.now()` returns the recorded times. Timers and `Date.now()` are real: a run that a timeout ended takes as long again.
 */
export async function rerun<V, O>(
  recording: Recording,
  agent: Agent<V, O>,
  options: RerunOptions = {},
): Promise<Rerun> {
  const played = await play(recording, agent, options);
  return { ...played, events: restoreIds(played.events, recording.events) };
}

/** Runs a recorded run again. The events have ids of errors of their own. */
export async function play<V, O>(
  recording: Recording,
  agent: Agent<V, O>,
  { vars, model = "recorded" }: RerunOptions,
): Promise<Rerun> {
  const player = new Player(recording, model === "recorded");
  const events: Event[] = [];
  const definition = playing(agent["~definition"] as AgentDefinition<StepScope>, player, model); // agent() made it
  const { request, session, run, before, startedAt } = recording;
  const store = memory();
  if (before) await store.save({ ...before, version: 0 });
  const options = request.type === "run"
    ? { messages: request.messages, run, startedAt }
    : { answers: request.answers };
  const sink = { ...nullSink, write: ({ event }: NumberedEvent) => void events.push(event) };
  const started = start(definition, { store, session, vars, ...options }, sink);
  player.onOrder((order) => repeatOrder(started, order));
  const result = await started.result;
  return { events, result, executions: player.executions };
}

/** Returns the agent with the player inside its hooks. */
function playing(
  definition: AgentDefinition<StepScope>,
  player: Player,
  model: "recorded" | "agent",
): AgentDefinition<StepScope> {
  const { model: asks, ...middleware } = player.middleware;
  return defineAgent({
    ...definition,
    ...withoutInnermost(definition),
    now: player.now,
    tools: definition.tools.map((tool) => player.tool(tool)),
    use: [...definition.use, model === "agent" || !asks ? middleware : player.middleware],
    model: model === "agent" ? definition.model : player.model(),
  });
}

/** Repeats an order of the recorded caller: a stop, a message, a request to finish. */
function repeatOrder(started: ReturnType<typeof start>, order: RecordedOrder): void {
  switch (order.type) {
    case "stop":
      return started.stop(order.reason, { rollback: order.rollback });
    case "finish":
      return void started.finish();
    case "drain":
      return started.drain(order.reason);
    case "send":
      // a refusal was recorded too: the run behaves as it did then
      started.send(order.message, order.after ? { after: order.after } : {}).catch(() => {});
  }
}

/** The ids of errors: the engine makes them, and nothing depends on them. */
const errorIds = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Returns the events with the recorded ids of errors and durations of hooks, where an event equals the recorded one in everything else. */
function restoreIds(events: readonly Event[], recorded: readonly Event[]): readonly Event[] {
  return events.map((event, index) => {
    const same = recorded[index];
    if (same?.type !== event.type) return event;
    const [was, is] = [JSON.stringify(same), JSON.stringify(event)];
    return was === is || plain(was) === plain(is) ? same : event;
  });
}

/** Returns the JSON of an event without ids of errors and durations of hooks. */
function plain(json: string): string {
  return json.replace(errorIds, "id").replace(/"ms":[\d.e-]+/g, '"ms":0');
}
