/**
 * Loads the programs of the guides, so that tests can execute them with a model of their own.
 *
 * @module
 */
import type { Schedules } from "@jizai/jizai/schedule";
import { type Agent, memory, type Middleware, type Model, type ServedApp, type Store } from "@jizai/jizai";

/** The exports of a program: a server as its default, an agent, and functions. */
export interface Program {
  readonly default: ServedApp & { readonly scheduled: Schedules["scheduled"] };
  readonly model: Model;
  readonly assistant: Agent<unknown, unknown>;
  readonly assistantOn: (bucket: object) => Agent<unknown, unknown>;
  readonly copilotHooks: (files: readonly object[]) => Middleware;
  readonly deleteOldData: () => Promise<void>;
  readonly deleteAllOf: (owner: string) => Promise<void>;
  readonly lines: readonly string[];
  readonly persistence: { readonly store: Store };
  readonly continueLostRuns: () => Promise<number>;
  readonly managedHooks: (project: object, managed: object) => Middleware;
  readonly probe: (url: string, send: typeof fetch) => Promise<readonly number[]>;
  readonly shutDown: () => Promise<void>;
  readonly text: string;
  readonly app: ServedApp;
  readonly unreadable: (store: Store) => Promise<readonly string[]>;
  readonly types: readonly string[];
  readonly stopSession: (base: string, session: string, send: typeof fetch) => Promise<boolean>;
}

const globals = globalThis as { guides?: object };

/** Returns the TypeScript programs of a guide, in order, without those that are not executed. */
export async function programsOf(name: string): Promise<string[]> {
  const markdown = await Deno.readTextFile(`examples/guides/${name}.md`);
  return Array.from(markdown.matchAll(/^```ts\n([^]*?)^```$/gm), ([, program = ""]) => program);
}

/** A program of a guide. */
interface Which {
  /** Its number, from 0. Default: 0. */
  readonly index?: number;
  /** The environment that it sees as `process.env`. Default: that of this process. */
  readonly env?: object;
}

/**
 * Executes a program of a guide. `model` stands in for that of `./model.ts`, and `persistence` for that of `./persistence.ts`. With `word`, the lines for a platform
 * that contain it follow the program.
 */
export async function load(name: string, model: Model, which: number | Which = {}, word?: string): Promise<Program> {
  const { index = 0, env } = typeof which === "number" ? { index: which } : which;
  const found = (await programsOf(name))[index];
  if (!found) throw new Error(`Cannot load program ${index} of the guide "${name}": there is none`);
  const program = word === undefined ? found : `${found}\n${await linesWith(word, name)}`;
  globals.guides = { model, persistence: { store: memory() }, process: { env } };
  const local = program.replace(/^import (\{ \w+ \}) from "\.{1,2}\/\w+\.ts";.*$/gm, "const $1 = globalThis.guides;");
  const text = env
    ? local.replace('import process from "node:process";', "const { process } = globalThis.guides;")
    : local;
  return await import(`data:application/typescript,${encodeURIComponent(`${text}\n// ${crypto.randomUUID()}`)}`);
}

/** Returns the lines of a guide, for one of its platforms, that contain `word`. */
async function linesWith(word: string, name: string): Promise<string> {
  const markdown = await Deno.readTextFile(`examples/guides/${name}.md`);
  const blocks = Array.from(markdown.matchAll(/^```ts ignore\n([^]*?)^```$/gm), ([, text = ""]) => text);
  const [found, ...others] = blocks.filter((text) => text.includes(word));
  if (!found || others.length > 0) throw new Error(`Cannot load "${word}" of the guide "${name}": expected one block`);
  return found;
}
