/**
 * `jizai explain FILE`: the hooks of an agent at every point.
 *
 * @module
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "../core/agent.ts";
import { explain } from "../core/explain.ts";

/** Returns the hooks and tools of every agent that a module exports, as text. Throws a `TypeError` if it exports none. */
export async function explainFile(file: string): Promise<string> {
  const agents = await agentsIn(file);
  if (agents.length === 0) throw new TypeError(`Cannot explain "${file}": expected an exported agent, found none`);
  return agents.map((agent) => explain(agent)).join("\n\n");
}

/** Imports a module, and returns the agents that it exports. */
export async function agentsIn(file: string): Promise<readonly Agent<unknown, unknown>[]> {
  const exported: object = await import(pathToFileURL(resolve(file)).href);
  return Object.values(exported).filter(isAgent);
}

/** Whether a value is an agent, of this or another copy of the package. */
function isAgent(value: unknown): value is Agent<unknown, unknown> {
  return typeof value === "object" && value !== null && "~definition" in value;
}
