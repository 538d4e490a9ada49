/**
 * An agent that works on files, and the outcome.
 *
 * @module
 */
import { agent, type Event, type Middleware, textOf } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { workspace } from "@jizai/jizai/middleware/workspace";
import { collect, outline, scripted, type ScriptedStep } from "@jizai/jizai/testing";

/** A call: the tool and its input. */
export type Call = readonly [name: string, input: unknown];

/** The outcome of an agent's work. */
export interface Work {
  /** One line for each result, in the order of the calls. */
  readonly results: readonly string[];
  /** One line for each event about files, directories and instructions. */
  readonly reported: readonly string[];
  readonly events: readonly Event[];
  /** The errors that the operator received. */
  readonly errors: readonly unknown[];
}

/** Runs an agent that makes these batches of calls. `last` is the last response of its model. */
export async function work(
  use: Files | readonly Middleware[],
  batches: readonly (readonly Call[])[],
  last: ScriptedStep | string = "Done.",
): Promise<Work> {
  const errors: unknown[] = [];
  const model = scripted(...batches.map((calls) => ({ calls })), last);
  const assistant = agent({ model, use: "read" in use ? [workspace(use)] : use, limits: { calls: Infinity } });
  const { events } = await collect(assistant.run({ prompt: "Go", onError: (error) => errors.push(error) }));
  const results = events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
  return {
    results: results.map((result) => result.status === "ok" ? textOf(result) : `${result.status}: ${textOf(result)}`),
    reported: outline(events).filter((line) => /^(file|cwd|instructions)\./.test(line)),
    events,
    errors,
  };
}

/** Returns the text of a file. */
export async function read(files: Files, path: string): Promise<string | undefined> {
  const file = await files.read(path);
  return file && new TextDecoder("utf-8", { ignoreBOM: true }).decode(file.bytes);
}

/** Writes a file and replaces an existing one. */
export async function write(files: Files, path: string, content: string | Uint8Array<ArrayBuffer>): Promise<void> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  await files.write(path, bytes, (await files.read(path))?.version);
}

/** Returns `files` that call `first` with the path before each of these functions. */
export function before(files: Files, keys: readonly (keyof Files)[], first: (path: string) => unknown): Files {
  const changed = keys.map((key) => {
    const original = files[key] as (...given: unknown[]) => unknown; // the first parameter of each method is a path
    return [key, async (path: string, ...rest: unknown[]) => {
      await first(path);
      return await original(path, ...rest);
    }];
  });
  return { ...files, ...Object.fromEntries(changed) };
}
