/**
 * Scenarios: the runs in which a middleware is tested, at whichever points it has hooks.
 *
 * @module
 */
import type { Limits } from "../../core/limits.ts";
import type { Middleware } from "../../core/middleware.ts";
import { type AnyTool, tool } from "../../core/tool.ts";
import { ModelError, type ModelEvent } from "../../model/model.ts";
import type { ScriptedStep } from "../../model/scripted.ts";
import type { Point } from "../../protocol/event.ts";
import type { Report } from "./findings.ts";
import { anyInput, type TestCall } from "./test_agent.ts";

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
