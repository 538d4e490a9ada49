/**
 * The settings of a run whose session is open.
 *
 * @module
 */
import type { ToolDefinition } from "../../model/model.ts";
import type { AnyTool } from "./tool.ts";
import type { Settings } from "../hooks/points/run.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { limited, type Limits } from "../run/limits.ts";

/** The settings of a run whose session is open. */
export interface OpenSettings extends Settings {
  readonly toolsByName: ReadonlyMap<string, AnyTool>;
  readonly definitions: readonly ToolDefinition[];
  /** Changes each request right before it is sent, if a tool of the run needs it. */
  readonly prepare: AnyTool["~request"];
  /** The slots for running tools, shared with child runs. */
  readonly slots: Semaphore;
  /** The slots for child runs. */
  readonly agentSlots: Semaphore;
}

/** Completes the settings that the `session` hooks decided on. `slots` are those of the parent run. */
export function openSettings(settings: Settings, base: Limits, slots?: Semaphore): OpenSettings {
  const tools = settings.tools as readonly AnyTool[]; // run() requires the vars that they need
  const limits = settings.limits === base ? base : limited(base, settings.limits);
  const toolsByName = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    ...settings,
    limits,
    toolsByName,
    definitions: [...toolsByName.values()].map(({ definition }) => definition),
    prepare: tools.find((tool) => tool["~request"])?.["~request"],
    slots: slots ?? new Semaphore(limits.parallel),
    agentSlots: new Semaphore(limits.agents),
  };
}
