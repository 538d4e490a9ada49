/**
 * What a hook makes of a session's settings.
 *
 * @module
 */
import * as z from "zod";
import type { Model, Settings } from "../../../mod.ts";

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
const form = z.object(fields).partial();

/** The settings that `config` modifies; `complain` is told of what nothing comes of. */
export function settingsOf(
  config: Readonly<Record<string, unknown>>,
  { instructions, tools }: Settings,
  models: Readonly<Record<string, Model>>,
  complain: (field: string) => void,
): Partial<Settings> {
  const said: z.infer<typeof form> = {};
  for (const [field, value] of Object.entries(config)) {
    const parsed = form.safeParse({ [field]: value });
    if (field in fields && parsed.success) Object.assign(said, parsed.data);
    else complain(field);
  }
  const { systemMessage, availableTools, excludedTools = [] } = said;
  const model = said.model === undefined ? undefined : models[said.model];
  if (said.model !== undefined && !model) complain("model");
  const told = systemMessage?.mode === "append" ? [instructions, systemMessage.content] : [systemMessage?.content];
  return {
    ...(model && { model }),
    ...(systemMessage && { instructions: told.filter((text) => text).join("\n\n") }),
    ...((availableTools || excludedTools.length > 0) && {
      tools: tools.filter(({ name }) => (availableTools?.includes(name) ?? true) && !excludedTools.includes(name)),
    }),
  };
}
