/**
 * `jizai replay FILE`: a recorded run.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { outline } from "../testing/outline.ts";
import { compare } from "../testing/replay/compare.ts";
import { readRecording, type Recording } from "../testing/replay/recording.ts";
import { agentsIn } from "./explain_file.ts";
import { visible } from "./terminal/terminal.ts";

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
