/**
 * `modifiedConfig`: the settings that a hook changes for a session.
 *
 * @module
 */
import * as z from "zod";
import type { Model, Settings } from "../../../mod.ts";
import { readFields } from "../kit/fields.ts";

const names = z.array(z.string());
const fields = {
  model: z.string(),
  systemMessage: z.union([
    z.string().transform((content) => ({ mode: "append" as const, content })),
    z.object({ mode: z.enum(["append", "replace"]).default("append"), content: z.string() }),
  ]),
  availableTools: names,
  excludedTools: names,
};

/** Applies `config` to the settings of a session. `onUnused` receives the fields that have no effect. */
export function settingsOf(
  config: Readonly<Record<string, unknown>>,
  { instructions, tools }: Settings,
  models: Readonly<Record<string, Model>>,
  onUnused: (field: string) => void,
): Partial<Settings> {
  const read = readFields(fields, config, onUnused);
  Object.keys(config).filter((field) => !(field in fields)).forEach(onUnused);
  const { systemMessage, availableTools, excludedTools = [] } = read;
  const model = read.model === undefined ? undefined : models[read.model];
  if (read.model !== undefined && !model) onUnused("model");
  const texts = systemMessage?.mode === "append" ? [instructions, systemMessage.content] : [systemMessage?.content];
  return {
    ...(model && { model }),
    ...(systemMessage && { instructions: texts.filter((text) => text).join("\n\n") }),
    ...((availableTools || excludedTools.length > 0) && {
      tools: tools.filter(({ name }) => (availableTools?.includes(name) ?? true) && !excludedTools.includes(name)),
    }),
  };
}
