/**
 * Scenarios: the runs in which a middleware is tested, at whichever points it has hooks.
 *
 * @module
 */
import { type Agent, agent } from "../../core/agent.ts";
import { compactionHooks } from "../../core/compaction.ts";
import { asTool } from "../../core/features/subagents.ts";
import type { Limits } from "../../core/limits.ts";
import type { Middleware } from "../../core/middleware.ts";
import { type AnyTool, type Schema, schemaOf, tool } from "../../core/tool.ts";
import { type Model, ModelError, type ModelEvent, type ModelRequest } from "../../model/model.ts";
import { scripted, type ScriptedStep } from "../../model/scripted.ts";
import type { Point } from "../../protocol/event.ts";
import { textOf } from "../../protocol/message.ts";
import type { Report } from "./findings.ts";

// The agent around the middleware under test. It uses every feature within a few ticks, and always does the same.

/** A call that the model makes. */
export type TestCall = readonly [name: string, input: unknown];

/** Options of `testAgent()`. */
interface TestAgentOptions {
  readonly use: readonly Middleware[];
  readonly tools: readonly AnyTool[];
  /** The calls of the model before it answers. */
  readonly calls: readonly TestCall[];
  /** The model's first response, in place of these calls. */
  readonly first?: ScriptedStep | undefined;
  readonly limits: Partial<Limits>;
  readonly now: () => number;
  /** Receives every request to the model, with its session. */
  readonly onRequest?: (request: ModelRequest, session: string) => void;
}

/** Parallel calls: of an idempotent tool, one that fails, an agent, an unknown tool, and with an input that is not JSON. */
export const defaultCalls: readonly TestCall[] = [
  ["repeat", { text: "Again" }],
  ["fail", {}],
  ["helper", { prompt: "Help" }],
  ["missing", {}],
  ["echo", "{"],
];

/** Creates an agent that calls its tools, reads their results, and answers. */
export function testAgent(
  { use, tools, calls, first, limits, now, onRequest }: TestAgentOptions,
): Agent<unknown, unknown> {
  return agent({
    name: "test",
    model: ({ run }) => testModel({ calls, first, onRequest: (request) => onRequest?.(request, run.session) }),
    instructions: "Play your part.",
    tools: [echo, repeat, fail, careful, helper, ...tools.map((tool) => Object.freeze({ ...tool }))],
    use: [{ name: "test.compaction", ...compactionHooks }, ...use],
    limits,
    now,
    strict: true,
  });
}

interface TestModelOptions {
  readonly calls: readonly TestCall[];
  readonly first?: ScriptedStep | undefined;
  readonly onRequest?: (request: ModelRequest) => void;
}

/** Creates a model that calls `echo` with the prompt, makes the other calls, and answers after the results. */
function testModel({ calls, first, onRequest }: TestModelOptions): Model {
  let asked = 0;
  return {
    id: "testModel",
    stream(request, options) {
      onRequest?.(request);
      asked++;
      const [prompt] = request.messages;
      const text = prompt?.role === "user" ? textOf(prompt) : "";
      const answered = calls.length === 0 || request.messages.some(({ role }) => role === "tool");
      const usual: ScriptedStep = answered
        ? { reasoning: "Hm.", text: ["That ", "is all."] }
        : { text: ["I look ", "it up."], calls: [["echo", { text }], ...calls] };
      return scripted(asked === 1 && first ? first : usual).stream(request, options);
    },
  };
}

/** A schema that accepts every input. */
export const anyInput: Schema = schemaOf({ type: "object" });

/** Returns a tool that returns its input. */
function echoing(name: string, idempotent: boolean): AnyTool {
  return tool({
    name,
    description: "Returns its input",
    input: anyInput,
    idempotent,
    async execute(input, { progress }) {
      progress("on it");
      await Promise.resolve();
      return JSON.stringify(input);
    },
  });
}

const echo = echoing("echo", false);
const repeat = echoing("repeat", true);

const fail = tool({
  name: "fail",
  description: "Always fails",
  input: anyInput,
  execute: () => Promise.reject(new Error("fail always fails")),
});

const careful = tool({
  name: "careful",
  description: "Runs when a person agrees",
  input: anyInput,
  ask: true,
  execute: () => "Done with care.",
});

const helper = asTool(agent({ name: "helper", model: () => testModel({ calls: [] }) }), {
  name: "helper",
  description: "An agent that helps",
});

// The scenarios: the runs in which a middleware is tested.

/** The state of a scenario while it runs, and what it can do. */
export interface Scene {
  /** The error that disturbances throw. */
  readonly trouble: Error;
  /** Whether the disturbance of the scenario has happened. */
  happened: boolean;
  /** Stops the run. */
  stop(): void;
  /** Reports a broken law. */
  readonly report: Report;
}

/** The parts of a scenario beside the middleware under test. */
export interface Participants {
  readonly outer?: Middleware;
  readonly inner?: Middleware;
  readonly tools?: readonly AnyTool[];
  readonly calls?: readonly TestCall[];
  /** The model's first response. */
  readonly first?: ScriptedStep;
  readonly limits?: Partial<Limits>;
}

/** One case in which a middleware is tested. */
export interface Scenario {
  /** The name in reports. */
  readonly name: string;
  /** The law that is broken if the run does not end as it does without the middleware. */
  readonly law?: "unwinds" | "stops";
  readonly cast?: (scene: Scene) => Participants;
  /** The answer to every question. Default: "approve". */
  readonly person?: "approve" | "deny";
  /** Whether the session has a second run. Default: false. */
  readonly twice?: boolean;
}

const carefulCalls: readonly TestCall[] = [["careful", {}], ["echo", {}], ["careful", {}]];

/** The scenarios of every middleware. */
export const defaultScenarios: readonly Scenario[] = [
  { name: "in a plain run" },
  { name: "in the second run of a session", twice: true },
  { name: "in an answer without calls", cast: () => ({ calls: [] }) },
  { name: "when the model says nothing", cast: () => ({ calls: [], first: { text: "" } }) },
  { name: "when the model refuses", cast: ({ trouble }) => ({ first: { error: trouble } }) },
  { name: "when the stream is cut", cast: () => ({ first: { reads: [[{ type: "text", text: "Half" }]] } }) },
  {
    name: "when the model breaks off, and may be asked again",
    cast: () => ({ first: { text: "Half", error: new ModelError("Overloaded", { recoverable: true }) } }),
  },
  { name: "when a person agrees", cast: () => ({ calls: carefulCalls }) },
  { name: "when a person refuses", cast: () => ({ calls: carefulCalls }), person: "deny" },
  { name: "when the transcript is compacted", twice: true, cast: () => ({ limits: { context: 1 } }) },
  { name: "when no more calls may be made", cast: () => ({ limits: { calls: 1 } }) },
  { name: "when no more turns may be taken", cast: () => ({ limits: { turns: 1 } }) },
  { name: "when stopped while the model streams", law: "stops", cast: (scene) => ({ first: { reads: half(scene) } }) },
  {
    name: "when stopped while tools run",
    law: "stops",
    cast: (scene) => ({ tools: [stopper(scene)], calls: [["stopper", {}], ["echo", {}]] }),
  },
];

/** Returns a response during which the run is stopped. */
export function* half({ stop }: Scene): Iterable<readonly ModelEvent[]> {
  yield [{ type: "text", text: "Half" }];
  stop();
}

function stopper(scene: Scene): AnyTool {
  return tool({
    name: "stopper",
    description: "Stops the run while it runs",
    input: anyInput,
    execute(_, { signal }) {
      scene.stop();
      expectAborted(signal, scene, "execute");
      signal.throwIfAborted();
    },
  });
}

/** Reports a signal that replaced `ctx.signal` and does not abort with it. */
export function expectAborted({ aborted }: AbortSignal, { report }: Scene, point: Point): void {
  if (!aborted) report("stops", "the inner signal does not abort with ctx.signal", point);
}
