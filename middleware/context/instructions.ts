/**
 * Loads instructions for the model from the workspace and from URLs.
 *
 * @module
 */
import {
  type Event,
  type Middleware,
  type Next,
  type Scope,
  state,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../mod.ts";
import { expectNames, fetchBytes, type Files, onlyIf, withinTime } from "../../src/core/kit.ts";
export type { Files } from "../../src/core/kit.ts";

// The URLs.

/** Normalizes a URL. Throws a `TypeError` if it may not be fetched. */
function addressOf(url: string, insecure: boolean): string {
  if (!URL.canParse(url)) {
    throw new TypeError(`Cannot load instructions from ${url}: it is not a URL; expected an https URL`);
  }
  const { protocol, href } = new URL(url);
  if (protocol === "https:" || insecure && protocol === "http:") return href;
  throw new TypeError(`Cannot load instructions from ${url}: its protocol is ${protocol}; expected https:`);
}

/** Returns a URL without its parts that may contain secrets. */
function shown(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}

// Loads instructions from files and from URLs.

/** A file or a URL with instructions. */
interface Source {
  /** Path or URL in events. */
  readonly path: string;
  /** Returns the text, or undefined if there is no such file. */
  readonly load: (ctx: Scope) => Promise<string | undefined>;
}

/** Loaded instructions. */
interface Loaded {
  readonly path: string;
  readonly text: string;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Returns the source of a file of at most `maxBytes` bytes. */
function fileSource(path: string, files: Files, maxBytes: number): Source {
  return {
    path,
    async load() {
      const stat = await files.stat(path);
      if (stat?.type !== "file") return undefined;
      if (stat.size > maxBytes) throw new RangeError(`Cannot read ${path}: it has more than ${maxBytes} bytes`);
      const file = await files.read(path);
      return file && decoder.decode(file.bytes);
    },
  };
}

/** The bounds of a fetch. */
interface UrlBounds {
  /** URLs to which it may be redirected. */
  readonly allowed: ReadonlySet<string>;
  /** Largest response in bytes. */
  readonly maxBytes: number;
}

/** Returns the source of a URL, which is fetched within `time` milliseconds. */
function urlSource(url: string, time: number, { allowed, maxBytes }: UrlBounds): Source {
  const refuses = (to: string) => allowed.has(to) ? undefined : "which is not in `urls`";
  return {
    path: shown(url),
    load: async ({ signal: runSignal }) =>
      decoder.decode(
        await withinTime((signal) => fetchBytes(url, { refuses, maxBytes, signal }), { ms: time, signal: runSignal }),
      ),
  };
}

/** Loads the sources that exist. A failure is reported, and its source left out. */
async function loadAll(sources: readonly Source[], ctx: Scope): Promise<readonly Loaded[]> {
  const loaded = await Promise.all(sources.map(async ({ path, load }): Promise<Loaded[]> => {
    try {
      const text = (await load(ctx))?.trim();
      return text ? [{ path, text }] : [];
    } catch (cause) {
      ctx.signal.throwIfAborted();
      ctx.run.report(new Error(`Cannot load instructions from ${path}`, { cause }));
      return [];
    }
  }));
  return loaded.flat();
}

// The middleware `instructions()`, and its options.

/** Options of `instructions()`. */
export interface InstructionsOptions {
  /** Names of the files to load: from the root when the session is opened, and from each folder that the agent enters. Default: `AGENTS.md`. */
  readonly files?: readonly string[];
  /** URLs to load when the session is opened. A redirect to another URL fails. Default: none. */
  readonly urls?: readonly string[];
  /** Largest file or response in bytes; a larger one is not loaded. Default: 65,536. */
  readonly maxBytes?: number;
  /** Time to fetch a URL, in milliseconds. Default: 5,000. */
  readonly time?: number;
  /** Allows `http:` URLs, for tests and private networks. Default: false. */
  readonly insecure?: boolean;
}

/**
 * Adds instructions from the workspace and from `urls` to those of the agent when the session is opened. When the agent enters a folder with
 * `change_directory`, the result also contains the instructions of that folder and of its parents, once per run. `from` is the argument of `workspace()`.
 *
 * A missing file is ignored. A failure to load is reported to the operator, and the run continues. A person who can write these files instructs the agent.
 *
 * Throws a `TypeError` for an invalid URL or one that is not `https:`, and a `RangeError` if `maxBytes` is less than 1 or `time` is not positive.
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
  options: InstructionsOptions = {},
): Middleware<V> {
  expectNames("Cannot create instructions()", options, ["files", "urls", "maxBytes", "time", "insecure"]);
  const { files = ["AGENTS.md"], urls = [], maxBytes = 65_536, time = 5_000, insecure = false } = options;
  if (!(maxBytes >= 1)) {
    throw new RangeError(`Cannot create instructions(): \`maxBytes\` is ${maxBytes}; expected 1 or more`);
  }
  if (!(time > 0)) {
    throw new RangeError(
      `Cannot create instructions(): \`time\` is ${time}; expected a positive number of milliseconds`,
    );
  }
  const allowed = new Set(urls.map((url) => addressOf(url, insecure)));
  const filesOf = typeof from === "function" ? from : () => from;
  const urlSources = Array.from(allowed, (url) => urlSource(url, time, { allowed, maxBytes }));
  const entered = state<readonly string[]>("instructions", () => []);

  function sourcesIn(folder: string, ctx: Scope<V>): readonly Source[] {
    return files.map((file) => fileSource(folder === "." ? file : `${folder}/${file}`, filesOf(ctx), maxBytes));
  }

  /** Adds the instructions of the folders that a call enters to its result. */
  async function loadEntered(ctx: ToolContext<V>, next: Next<ToolChange, ToolResult>): Promise<ToolResult> {
    let cwd = ".";
    const emit = (event: Event) => {
      if (event.type === "cwd.changed") cwd = event.to;
      ctx.emit(event);
    };
    const result = await next({ emit });
    const folders = foldersTo(cwd).filter((folder) => !entered.get(ctx).includes(folder));
    entered.update(ctx, (before) => [...before, ...folders]);
    const all = await loadAll(folders.flatMap((folder) => sourcesIn(folder, ctx)), ctx);
    const { turn, call } = ctx;
    for (const { path } of all) {
      ctx.emit({ type: "instructions.loaded", path, reason: "directory", turn, call: call.id });
    }
    return all.length === 0 ? result : { ...result, context: [...result.context ?? [], ...all.map(textOf)] };
  }

  return {
    name: "instructions",
    async session(ctx, next) {
      const all = await loadAll([...sourcesIn(".", ctx), ...urlSources], ctx);
      for (const { path } of all) ctx.emit({ type: "instructions.loaded", path, reason: "session" });
      if (all.length === 0) return await next();
      const agentInstructions = ctx.settings.instructions;
      return await next({
        settings: { instructions: [...agentInstructions ? [agentInstructions] : [], ...all.map(textOf)].join("\n\n") },
      });
    },
    tool: onlyIf(loadEntered, ({ name }) => name === "change_directory"),
  };
}

function textOf({ path, text }: Loaded): string {
  return `Instructions from ${path}:\n\n${text}`;
}

/** Returns the folders on the way from the root to a folder, and the folder. */
function foldersTo(path: string): readonly string[] {
  if (path === ".") return [];
  const names = path.split("/");
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}
