/**
 * Replays of recorded runs, by the same agent or by another one, which is compared.
 *
 * @module
 */
import type { Agent } from "../../core/agent.ts";
import { type AgentDefinition, defineAgent } from "../../core/definition.ts";
import type { NumberedEvent } from "../../core/events.ts";
import { canonicalJson } from "../../core/lib/json.ts";
import { memory } from "../../core/memory.ts";
import type { RunResult } from "../../core/points.ts";
import { nullSink, start } from "../../core/start.ts";
import { type AnyTool, schemaOf, tool } from "../../core/tool.ts";
import type { Model } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import { textOf } from "../../protocol/message.ts";
import { type Execution, Player } from "./player.ts";
import type { RecordedOrder, Recording } from "./recording.ts";
import { withoutInnermost } from "./tape.ts";

// Replays of recorded runs.

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
      execute: (input: unknown, ctx) => player.execute({ ...ctx, input, tool: replayed }),
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
async function play<V, O>(
  recording: Recording,
  agent: Agent<V, O>,
  { vars, model = "recorded" }: RerunOptions,
): Promise<Rerun> {
  const player = new Player(recording, model === "recorded");
  const events: Event[] = [];
  const definition = playing(agent["~definition"] as AgentDefinition, player, model); // agent() made it
  const { request, session, run, before, startedAt } = recording;
  const store = memory();
  if (before) await store.save({ ...before, version: 0 });
  const { detailed } = request;
  const options = request.type === "run"
    ? { messages: request.messages, call: request.call, run, startedAt, detailed }
    : { answers: request.answers, detailed };
  const sink = { ...nullSink, write: ({ event }: NumberedEvent) => void events.push(event) };
  const started = start(definition, { store, session, vars, ...options }, sink);
  player.onOrder((order) => repeatOrder(started, order));
  const result = await started.result;
  return { events, result, executions: player.executions };
}

/** Returns the agent with the player inside its hooks. */
function playing(
  definition: AgentDefinition,
  player: Player,
  model: "recorded" | "agent",
): AgentDefinition {
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

// Comparisons of a recorded run with the same run of another agent.

/** One difference: the recorded line, and the line of the other run. Undefined if a run has none. */
export interface Difference {
  /** The kind of the line. */
  readonly kind: "decision" | "call" | "text";
  /** The call id, or the name of the text. */
  readonly subject: string;
  /** The recorded line. */
  readonly recorded: string | undefined;
  /** The line of the other run. */
  readonly now: string | undefined;
}

/** The differences of two runs. */
export interface Comparison {
  /** Whether there is no difference. */
  readonly same: boolean;
  /** The differences, in the order of the recorded run. */
  readonly differences: readonly Difference[];
  /** The differences as text, such as for `console.log()`. */
  readonly report: string;
}

/**
 * Runs a recorded run again with another agent, and returns which decisions, calls and texts differ. With `model: "agent"`, the agent's own model answers, as a
 * changed prompt needs; calls that the recording has with the same input get their recorded result, and others are skipped.
 *
 * ```ts
 * import { agent, type Middleware } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { compare, recordable } from "@jizai/jizai/replay";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted("Hello!");
 * const recording = await recordable(agent({ model })).run({ prompt: "Hi", record: true }).recording;
 *
 * const shout: Middleware = {
 *   name: "shout",
 *   async prompt(_ctx, next) {
 *     const answer = await next();
 *     return { ...answer, text: answer.text.toUpperCase() };
 *   },
 * };
 * const { report } = await compare(recording!, agent({ model, use: [shout] }));
 * assertEquals(report, "text answer\n  - Hello!\n  + HELLO!");
 * ```
 */
export async function compare<V, O>(
  recording: Recording,
  agent: Agent<V, O>,
  options: RerunOptions = {},
): Promise<Comparison> {
  const now = await play(recording, agent, options);
  const calls = recording.entries.flatMap((entry) => entry.type === "call" ? [entry] : []);
  const before = linesOf(recording.events, calls, recording.result);
  const after = linesOf(now.events, now.executions, now.result);
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  const differences = keys.flatMap((key): Difference[] => {
    const [recorded, other] = [before.get(key)?.line, after.get(key)?.line];
    const { kind, subject } = before.get(key) ?? after.get(key)!; // one of them has the key
    return recorded === other ? [] : [{ kind, subject, recorded, now: other }];
  });
  return { same: differences.length === 0, differences, report: differences.map(linesOfDifference).join("\n") };
}

function linesOfDifference({ kind, subject, recorded, now }: Difference): string {
  return [
    `${kind} ${subject}`,
    ...(recorded === undefined ? [] : [`  - ${recorded}`]),
    ...(now === undefined ? [] : [`  + ${now}`]),
  ].join("\n");
}

/** One comparable line of a run. */
type Line = Pick<Difference, "kind" | "subject"> & { readonly line: string };

/** Returns the comparable lines of a run, by their key. */
function linesOf(
  events: readonly Event[],
  executions: readonly Execution[],
  { status, text }: { readonly status: string; readonly text: string },
): ReadonlyMap<string, Line> {
  const lines = new Map<string, Line>();
  function add(kind: Line["kind"], subject: string, line: string, detail = ""): void {
    let key = `${kind} ${subject} ${detail}`;
    while (lines.has(key)) key += "'"; // the next attempt
    lines.set(key, { kind, subject, line });
  }
  for (const event of events) {
    if (event.type === "call.ready") {
      add("call", event.call.id, `${event.call.name} ${canonicalJson(event.call.input)}`, "made");
    }
    if (event.type === "approval.asked") add("decision", event.call, `ask: ${event.questions.join("; ")}`);
    if (event.type === "approval.decided") {
      add("decision", event.call, `${event.decision} by ${event.by}${event.reason ? `: ${event.reason}` : ""}`);
    }
    if (event.type === "tool.finished") {
      add("call", event.call, `${event.result.status}: ${textOf(event.result)}`, "result");
    }
  }
  for (const { call, name, input } of executions) add("call", call, `ran ${name} ${canonicalJson(input)}`, "ran");
  add("text", "status", status);
  add("text", "answer", text);
  return lines;
}
