/**
 * The settings of a run: those that its `session` hooks receive, and those of its open session.
 *
 * @module
 */
import type { AgentDefinition } from "./definition.ts";
import { type AnyTool, type ToolTable, toolTable } from "./tool.ts";
import type { Settings } from "../hooks/points/run.ts";
import { merged } from "../hooks/policy.ts";
import type { Scope } from "../hooks/scope.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { limited, type Limits } from "../run/limits.ts";

/** The values of one run that take the place of its agent's. */
interface RunSettings {
  readonly limits: Limits;
  /** Tools of this run only. One with the name of an agent's own tool is left out. */
  readonly tools?: readonly AnyTool[] | undefined;
  /** The settings of the parent run, which a child takes over. */
  readonly inherited?: Partial<Settings> | undefined;
}

/** Returns the settings that the `session` hooks of a run receive. */
export async function settingsOf(
  { model, instructions, tools }: Pick<AgentDefinition<never>, "model" | "instructions" | "tools">,
  scope: Scope,
  { limits, tools: more = [], inherited }: RunSettings,
): Promise<Settings> {
  const settings: Settings = {
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools: [...tools, ...more.filter(({ name }) => !tools.some((own) => own.name === name))],
    limits,
  };
  return inherited ? merged(settings, inherited) : settings;
}

/** The settings of a run whose session is open. */
export interface OpenSettings extends Settings, ToolTable {
  /** The slots for running tools, shared with child runs. */
  readonly slots: Semaphore;
  /** The slots for child runs. */
  readonly agentSlots: Semaphore;
}

/** Completes the settings that the `session` hooks decided on. `base` are the limits of the run, and `slots` those of its parent. */
export function openSettings(
  settings: Settings,
  { tools, toolTable: own }: Pick<AgentDefinition<never>, "tools" | "toolTable">,
  { limits: base, slots }: { readonly limits: Limits; readonly slots: Semaphore | undefined },
): OpenSettings {
  const limits = settings.limits === base ? base : limited(base, settings.limits);
  const isUnchanged = settings.tools.length === tools.length && settings.tools.every((tool, at) => tool === tools[at]);
  const table = isUnchanged ? own : toolTable(settings.tools as readonly AnyTool[]); // run() requires the vars that they need
  return {
    ...settings,
    ...table,
    limits,
    slots: slots ?? new Semaphore(limits.parallel),
    agentSlots: new Semaphore(limits.agents),
  };
}
