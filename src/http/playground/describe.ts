/**
 * Describes an agent for the page.
 *
 * @module
 */
import type { AgentParts } from "../../core/definition.ts";
import type { DescribedAgent, PageData, PlaygroundOptions } from "./page_data.ts";

/** Returns the data of the page of an agent. */
export function pageData(
  { name, "~definition": definition }: DescribedAgent,
  { prompts = [], prices = {} }: PlaygroundOptions,
): PageData {
  const { model, tools } = definition as AgentParts<unknown>; // agent() made it
  return {
    agent: name,
    ...(typeof model !== "function" && { model: model.id }),
    tools: tools.map(({ name, description }) => ({ name, description })),
    prompts,
    prices,
  };
}
