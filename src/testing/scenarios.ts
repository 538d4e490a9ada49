/**
 * The scenarios: what may happen around a middleware while it runs, whatever it hooks.
 *
 * @module
 */
import type { Limits } from "../core/limits.ts";
import type { Middleware } from "../core/points.ts";
import { type AnyTool, tool } from "../core/tool.ts";
import { ModelError, type ModelEvent } from "../model/model.ts";
import type { ScriptedStep } from "../model/scripted.ts";
import type { Point } from "../protocol/event.ts";
import type { Tell } from "./laws.ts";
import { anything, type StageCall } from "./stage.ts";

/** What a scenario may do while it is played. */
export interface Scene {
  /** What is thrown where something has to be thrown. */
  readonly trouble: Error;
  /** Whether what makes the scenario has happened. */
  happened: boolean;
  /** Stops the run. */
  stop(): void;
  /** Tells of a broken law. */
  readonly tell: Tell;
}

/** Who plays besides the middleware. */
export interface Cast {
  readonly above?: Middleware;
  readonly beneath?: Middleware;
  readonly tools?: readonly AnyTool[];
  readonly calls?: readonly StageCall[];
  /** What the model does at its first request. */
  readonly first?: ScriptedStep;
  readonly limits?: Partial<Limits>;
}

/** One thing that may happen. */
export interface Scenario {
  /** As a report says it. */
  readonly name: string;
  /** The law that is broken where the run does not end as it does without the middleware. */
  readonly law?: "unwinds" | "stops";
  readonly cast?: (scene: Scene) => Cast;
  /** What a person says to every question. Default: "approve". */
  readonly person?: "approve" | "deny";
  /** Whether the session has a second run. Default: false. */
  readonly twice?: boolean;
}

const cares: readonly StageCall[] = [["careful", {}], ["echo", {}], ["careful", {}]];

/** What may happen to every middleware. */
export const usual: readonly Scenario[] = [
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
  { name: "when a person agrees", cast: () => ({ calls: cares }) },
  { name: "when a person refuses", cast: () => ({ calls: cares }), person: "deny" },
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

/** An answer of which the half is said when the run is stopped. */
export function* half({ stop }: Scene): Iterable<readonly ModelEvent[]> {
  yield [{ type: "text", text: "Half" }];
  stop();
}

function stopper(scene: Scene): AnyTool {
  return tool({
    name: "stopper",
    description: "Stops the run while it runs",
    input: anything,
    execute(_, { signal }) {
      scene.stop();
      expectAborted(signal, scene, "execute");
      signal.throwIfAborted();
    },
  });
}

/** Tells where a signal was replaced by one that does not hear the one above it. */
export function expectAborted({ aborted }: AbortSignal, { tell }: Scene, point: Point): void {
  if (!aborted) tell("stops", "the signal beneath does not abort with ctx.signal", point);
}
