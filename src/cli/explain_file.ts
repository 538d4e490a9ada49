/**
 * `jizai explain FILE` and `jizai replay FILE`: the hooks of an agent at every point, and a recorded run.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { visible } from "./terminal.ts";
import type { Agent } from "../core/agent.ts";
import { explain } from "../core/explain.ts";
import { outline } from "../testing/outline.ts";
import { readRecording, type Recording } from "../testing/replay/recording.ts";
import { compare } from "../testing/replay/replay.ts";

// `jizai explain FILE`: the hooks of an agent at every point.

/** Returns the hooks and tools of every agent that a module exports, as text. Throws a `TypeError` if it exports none. */
export async function explainFile(file: string): Promise<string> {
  const agents = await agentsIn(file);
  if (agents.length === 0) throw new TypeError(`Cannot explain "${file}": expected an exported agent, found none`);
  return agents.map((agent) => explain(agent)).join("\n\n");
}

/** Imports a module, and returns the agents that it exports. */
async function agentsIn(file: string): Promise<readonly Agent<unknown, unknown>[]> {
  const exported: object = await import(pathToFileURL(resolve(file)).href).catch((error) => {
    if (error?.code !== "ERR_UNKNOWN_FILE_EXTENSION") throw error;
    const expected = "expected Node 22.18 or newer, Deno or Bun, which run TypeScript, or a JavaScript file";
    throw new TypeError(`Cannot import "${file}" with Node ${process.versions.node}: ${expected}`, { cause: error });
  });
  return Object.values(exported).filter(isAgent);
}

/** Whether a value is an agent, of this or another copy of the package. */
function isAgent(value: unknown): value is Agent<unknown, unknown> {
  return typeof value === "object" && value !== null && "~definition" in value;
}

// `jizai replay FILE`: a recorded run.

/** Returns the events of a recorded run, one line each. Reads the key of an encrypted recording from `JIZAI_RECORDING_KEY`. */
export async function replayFile(file: string): Promise<string> {
  const { agent, startedAt, run, events } = await recordingIn(file);
  const head = `${agent}, ${new Date(startedAt).toISOString()}, run ${run}`;
  return [head, ...outline(events)].map(visible).join("\n");
}

/**
 * Replays a recorded run with the agent of its name that `module` exports, or with the only one. Returns the outline. Throws an `Error` that lists the
 * differences, if there are any, and a `TypeError` if there is no such agent.
 */
export async function replayWith(file: string, module: string): Promise<string> {
  const recording = await recordingIn(file);
  const agents = await agentsIn(module);
  const agent = agents.find(({ name }) => name === recording.agent) ?? (agents.length === 1 ? agents[0] : undefined);
  if (!agent) {
    throw new TypeError(
      `Cannot replay with "${module}": expected an exported agent with the name "${recording.agent}"`,
    );
  }
  const { same, report } = await compare(recording, agent);
  if (!same) throw new Error(`Cannot confirm the recording: the run differs\n${visible(report)}`);
  return `The run is the same as the recording: ${recording.events.length} events.`;
}

async function recordingIn(file: string): Promise<Recording> {
  const text = await readFile(file, "utf8");
  const isPlain = text.trimStart().startsWith("{");
  return await readRecording(text, isPlain ? {} : { key: process.env.JIZAI_RECORDING_KEY });
}
