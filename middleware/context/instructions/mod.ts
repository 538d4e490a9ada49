/**
 * Tells the model what is written for it where it works.
 *
 * @module
 */
import {
  type Event,
  type Files,
  type Middleware,
  type Next,
  type Scope,
  state,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { onlyIf, startTimer } from "../../../src/core/kit.ts";
import { addressOf, shown, textAt } from "./address.ts";

/** What is loaded, and from where. */
export interface InstructionsOptions {
  /** The names of files with instructions: in the root when the session is opened, and in each folder that the agent enters. Default: `AGENTS.md`. */
  readonly files?: readonly string[];
  /** Where else instructions are, when the session is opened. Nothing else is fetched, whatever these redirect to. Default: nowhere. */
  readonly urls?: readonly string[];
  /** The most bytes of one file or URL: what is longer is not loaded at all. Default: 65,536. */
  readonly maxBytes?: number;
  /** Milliseconds that a URL may take. Default: 5,000. */
  readonly time?: number;
  /** Whether URLs may be `http:`, for tests and networks of your own. Default: false. */
  readonly insecure?: boolean;
}

/** Where instructions may be. */
interface Source {
  /** As it is told. */
  readonly path: string;
  readonly load: (ctx: Scope) => Promise<string | undefined>;
}

/** Instructions that were found. */
interface Found {
  readonly path: string;
  readonly text: string;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Adds the instructions of a workspace to those of the agent: the files of such names in its root, and what is at `urls`, whenever the session is opened.
 * When the agent enters a folder with `change_directory`, those of the folder, and of the folders it is in, are told to it in addition, once in a run.
 * `from` is what `workspace()` was given.
 *
 * What is not there is no failure. What cannot be loaded is left out, and the operator is told. Whoever can write these files tells the agent what to do.
 *
 * Throws a `TypeError` for a URL that is none, or is not `https:`, and a `RangeError` where `maxBytes` is not 1 or more, or `time` not more than 0.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { instructions } from "@jizai/jizai/middleware/instructions";
 * import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const files = memoryFiles({ "AGENTS.md": "Answer in one word." });
 * const model = scripted("Yes.");
 *
 * await agent({ model, use: [workspace(files), instructions(files)] }).run("Is it raining?").result;
 * assertEquals(model.requests[0]?.instructions, "Instructions from AGENTS.md:\n\nAnswer in one word.");
 * ```
 */
export function instructions<V = unknown>(
  from: Files | ((scope: Scope<V>) => Files),
  { files = ["AGENTS.md"], urls = [], maxBytes = 65_536, time = 5_000, insecure = false }: InstructionsOptions = {},
): Middleware<V> {
  if (!(maxBytes >= 1)) throw new RangeError(`Cannot load instructions of ${maxBytes} bytes: expected 1 or more`);
  if (!(time > 0)) throw new RangeError(`Cannot load instructions in ${time} ms: expected more than 0`);
  const allowed = new Set(urls.map((url) => addressOf(url, insecure)));
  const placeOf = typeof from === "function" ? from : () => from;
  const addresses = Array.from(allowed, (url): Source => ({ path: shown(url), load: (ctx) => fetched(url, ctx) }));
  const entered = state<readonly string[]>("instructions", () => []);

  function filesIn(folder: string, place: Files): readonly Source[] {
    return files.map((file) => {
      const path = folder === "." ? file : `${folder}/${file}`;
      return { path, load: () => read(path, place) };
    });
  }

  async function read(path: string, place: Files): Promise<string | undefined> {
    const stat = await place.stat(path);
    if (stat?.type !== "file") return undefined;
    if (stat.size > maxBytes) throw new RangeError(`Cannot read ${path}: it has more than ${maxBytes} bytes`);
    const file = await place.read(path);
    return file && decoder.decode(file.bytes);
  }

  async function fetched(address: string, { signal }: Scope): Promise<string> {
    const late = new AbortController();
    const timer = startTimer(() => late.abort(new DOMException(`Not done after ${time} ms`, "TimeoutError")), time);
    try {
      return await textAt(address, { allowed, maxBytes, signal: AbortSignal.any([signal, late.signal]) });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Tells the model what is in the folders that a call enters. */
  async function entering(ctx: ToolContext<V>, next: Next<ToolChange, ToolResult>): Promise<ToolResult> {
    let cwd = ".";
    const emit = (event: Event) => {
      if (event.type === "cwd.changed") cwd = event.to;
      ctx.emit(event);
    };
    const result = await next({ emit });
    const folders = foldersTo(cwd).filter((folder) => !entered.get(ctx).includes(folder));
    entered.update(ctx, (before) => [...before, ...folders]);
    const all = await found(folders.flatMap((folder) => filesIn(folder, placeOf(ctx))), ctx);
    const { turn, call } = ctx;
    for (const { path } of all) {
      ctx.emit({ type: "instructions.loaded", path, reason: "directory", turn, call: call.id });
    }
    return all.length === 0 ? result : { ...result, context: [...result.context ?? [], ...all.map(told)] };
  }

  return {
    name: "instructions",
    async session(ctx, next) {
      const all = await found([...filesIn(".", placeOf(ctx)), ...addresses], ctx);
      for (const { path } of all) ctx.emit({ type: "instructions.loaded", path, reason: "session" });
      if (all.length === 0) return await next();
      const own = ctx.settings.instructions;
      return await next({ settings: { instructions: [...own ? [own] : [], ...all.map(told)].join("\n\n") } });
    },
    tool: onlyIf(entering, ({ name }) => name === "change_directory"),
  };
}

/** What there is. What cannot be loaded is left out, and reported. */
async function found(sources: readonly Source[], ctx: Scope): Promise<readonly Found[]> {
  const all = await Promise.all(sources.map(async ({ path, load }): Promise<Found[]> => {
    try {
      const text = (await load(ctx))?.trim();
      return text ? [{ path, text }] : [];
    } catch (cause) {
      ctx.signal.throwIfAborted();
      ctx.run.report(new Error(`Cannot load instructions from ${path}`, { cause }));
      return [];
    }
  }));
  return all.flat();
}

function told({ path, text }: Found): string {
  return `Instructions from ${path}:\n\n${text}`;
}

/** A folder beneath the root, after the folders it is in. */
function foldersTo(path: string): readonly string[] {
  if (path === ".") return [];
  const names = path.split("/");
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}
