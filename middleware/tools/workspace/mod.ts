/**
 * Gives the agent files.
 *
 * @module
 */
import {
  denied,
  type Files,
  type Middleware,
  type Next,
  type Run,
  type Scope,
  type ToolChange,
  type ToolContext,
  ToolError,
  type ToolResult,
} from "../../../mod.ts";
import { onlyIf } from "../../../src/core/kit.ts";
import { Desk } from "./desk.ts";
import { resolve } from "./path.ts";
import { changeDirectory, startOf } from "./place.ts";
import { readingTools } from "./reading.ts";
import { watch } from "./watch.ts";
import { writingTools } from "./writing.ts";

export { memoryFiles } from "./memory.ts";

/** How much the agent may take at once. */
export interface WorkspaceOptions {
  /** The most bytes of a file that is read, written or searched. Default: 1,000,000. */
  readonly maxBytes?: number;
}

/**
 * Gives the agent files, and six tools for them: `read_file`, `list_files`, `search_files`, `write_file`, `edit_file` and `change_directory`. `files` is
 * where they are: `memoryFiles()`, `denoDirectory()`, any object store behind the same few functions, or who chooses one for a run.
 *
 * No path leaves the root, however it is written; paths start where the agent is, and guards see them from the root. Calls of
 * one file work one after another in the order of the response, those of different files at the same time. Who changes a file tells so by `file.changed`;
 * where the files can be watched, changes that others make in the meantime are told too.
 *
 * Throws a `RangeError` where `maxBytes` is not 1 or more.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const files = memoryFiles({ "haiku.md": "An old silent pond\n" });
 * const model = scripted(
 *   { calls: [["edit_file", { path: "haiku.md", old: "silent", new: "noisy" }]] },
 *   "Now it is noisy.",
 * );
 *
 * await agent({ model, use: [workspace(files)] }).run("Make it noisy").result;
 * const { bytes } = await files.read("haiku.md") ?? {};
 * assertEquals(new TextDecoder().decode(bytes), "An old noisy pond\n");
 * ```
 */
export function workspace<V = unknown>(
  files: Files | ((scope: Scope<V>) => Files),
  { maxBytes = 1_000_000 }: WorkspaceOptions = {},
): Middleware<V> {
  if (!(maxBytes >= 1)) throw new RangeError(`Cannot take files of ${maxBytes} bytes: expected 1 or more`);
  const desks = new WeakMap<Run, Desk>();

  function deskOf(scope: Scope<V>): Desk {
    let desk = desks.get(scope.run);
    if (!desk) desks.set(scope.run, desk = new Desk(typeof files === "function" ? files(scope) : files, maxBytes));
    return desk;
  }

  const tools = [...readingTools(deskOf), ...writingTools(deskOf), changeDirectory(deskOf)];
  const own = new Set<unknown>(tools);

  /** Has a call go on with its path from the root, so that whoever is asked for approval sees which file it is. */
  async function fromRoot(ctx: ToolContext<V>, next: Next<ToolChange, ToolResult>): Promise<ToolResult> {
    if (!hasPath(ctx)) return await next();
    let path: string;
    try {
      path = resolve(startOf(ctx), ctx.input.path);
    } catch (error) {
      if (error instanceof ToolError) return denied(error.message);
      throw error;
    }
    return await next({ input: { ...ctx.input, path } });
  }

  return {
    name: "workspace",
    tools,
    async session(ctx, next) {
      const end = await watch(deskOf(ctx), ctx);
      try {
        return await next();
      } finally {
        await end();
      }
    },
    tool: onlyIf(fromRoot, ({ tool }) => own.has(tool)),
  };
}

/** What each of the tools is given. */
interface WithPath {
  readonly path: string;
}

function hasPath<V>(ctx: ToolContext<V>): ctx is ToolContext<V, WithPath> {
  const { input } = ctx;
  return typeof input === "object" && input !== null && "path" in input && typeof input.path === "string";
}
