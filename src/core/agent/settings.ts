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
import { limited, type Limits } from "../run/limits.ts";

/** The values of one run that take the place of its agent's. */
interface RunSettings {
  readonly limits: Limits;
  /** Tools of this run only. One with the name of an agent's own tool is left out. */
  readonly tools?: readonly AnyTool[] | undefined;
  /** The settings of the parent run, which a child takes over. */
  readonly inherited?: Partial<Settings> | undefined;
}

/** The part of an agent that its settings are made of. */
type Definition = Pick<AgentDefinition<never>, "model" | "instructions" | "tools">;

/** Returns the settings that the `session` hooks of a run receive. Returns no promise if the agent has its model and its instructions. */
export function settingsOf(definition: Definition, scope: Scope, given: RunSettings): Settings | Promise<Settings> {
  const { model, instructions, tools } = definition;
  const { limits, tools: more = [], inherited } = given;
  if (typeof model === "function" || typeof instructions === "function") {
    return chosenSettings(definition, scope, given);
  }
  const own = more.filter(({ name }) => !tools.some((own) => own.name === name));
  const settings: Settings = { model, instructions, tools: [...tools, ...own], limits };
  return inherited ? merged(settings, inherited) : settings;
}

/** Calls the functions that choose the model and the instructions. */
async function chosenSettings(definition: Definition, scope: Scope, given: RunSettings): Promise<Settings> {
  const { model, instructions } = definition;
  const chosen = {
    ...definition,
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
  };
  return await settingsOf(chosen, scope, given);
}

/** The settings of a run whose session is open. */
export type OpenSettings = Settings & ToolTable;

/** Completes the settings that the `session` hooks decided on. `base` are the limits of the run. */
export function openSettings(
  settings: Settings,
  { tools, toolTable: own }: Pick<AgentDefinition<never>, "tools" | "toolTable">,
  base: Limits,
): OpenSettings {
  const limits = settings.limits === base ? base : limited(base, settings.limits);
  const isUnchanged = settings.tools.length === tools.length && settings.tools.every((tool, at) => tool === tools[at]);
  const table = isUnchanged ? own : toolTable(settings.tools as readonly AnyTool[]); // run() requires the vars that they need
  return { ...settings, ...table, limits };
}
