/**
 * Loads the programs of the guides, so that tests can execute them with a model of their own.
 *
 * @module
 */
import type { Agent, Model } from "@jizai/jizai";
import type { App } from "../support/requests.ts";

/** The exports of a program: a server as its default, or an agent. */
export interface Program {
  readonly default: App;
  readonly assistant: Agent<unknown, unknown>;
}

const globals = globalThis as { guideModel?: Model };

/** Returns the TypeScript programs of a guide, in order. */
export async function programsOf(name: string): Promise<string[]> {
  const markdown = await Deno.readTextFile(`examples/guides/${name}.md`);
  return Array.from(markdown.matchAll(/^```ts\n([^]*?)^```$/gm), ([, program = ""]) => program);
}

/** Executes a program of a guide, in which `model` stands in for the model of `./model.ts`. */
export async function load(name: string, model: Model, index = 0): Promise<Program> {
  const program = (await programsOf(name))[index];
  if (!program) throw new Error(`Cannot load program ${index} of the guide "${name}": there is none`);
  globals.guideModel = model;
  const text = program.replace(/^import \{ model \} from "\.\/model\.ts";$/m, "const model = globalThis.guideModel;");
  return await import(`data:application/typescript,${encodeURIComponent(`${text}\n// ${crypto.randomUUID()}`)}`);
}
