/**
 * The settings of a run, before its `session` hooks.
 *
 * @module
 */
import type { Settings } from "../hooks/points/run.ts";
import { merged } from "../hooks/policy.ts";
import type { EngineRun } from "../run/run.ts";
import type { StartOptions } from "./options.ts";

/** Returns the settings of a run. A child takes over what its parent sets. */
export async function settingsOf(engine: EngineRun, { parent, tools: more = [] }: StartOptions): Promise<Settings> {
  const { definition: { model, instructions, tools }, limits } = engine;
  const scope = engine.scope();
  return merged<Settings>({
    model: typeof model === "function" ? await model(scope) : model,
    instructions: typeof instructions === "function" ? await instructions(scope) : instructions,
    tools: [...tools, ...more.filter(({ name }) => !tools.some((own) => own.name === name))],
    limits,
  }, parent?.settings ?? {});
}
