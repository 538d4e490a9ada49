/**
 * Gives the agent files.
 *
 * @module
 */
import { stopping } from "../../src/core/abandon.ts";
import { failed } from "../../src/core/answers.ts";
import type { Middleware, ToolContext } from "../../src/core/points.ts";
import type { Run, Scope } from "../../src/core/scope.ts";
import { ToolError } from "../../src/core/tool.ts";
import type { Files } from "../../src/protocol/files.ts";
import { Desk } from "./desk.ts";
import { resolve, root } from "./path.ts";
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

  const move = changeDirectory(deskOf);
  const tools = [...readingTools(deskOf), ...writingTools(deskOf), move];
  const own = new Set<unknown>(tools);

  /** The path that the model means, or why it may not. */
  function meant(path: string, ctx: ToolContext<V>): string | ToolError {
    try {
      return resolve(startOf(ctx), path);
    } catch (error) {
      if (error instanceof ToolError) return error;
      throw error;
    }
  }

  return {
    name: "workspace",
    tools,
    async session(ctx, next) {
      await using _ = await watch(deskOf(ctx), ctx);
      return await next();
    },
    async tool(ctx, next) {
      if (!own.has(ctx.tool) || !hasPath(ctx.input)) return await next();
      const path = meant(ctx.input.path, ctx);
      // from here on it is a path from the root: whoever is asked for approval sees which file it is
      return path instanceof ToolError ? failed(path.message) : await next({ input: { ...ctx.input, path } });
    },
    async execute(ctx, next) {
      if (!own.has(ctx.tool) || !hasPath(ctx.input)) return await next();
      const path = resolve(root, ctx.input.path);
      const key = ctx.tool.name === move.name ? `${move.name}()` : path; // there is one place to be in
      return await deskOf(ctx).locks.hold(key, stopping(ctx.signal), next);
    },
  };
}

/** Whether an input names a file or folder, as those of all these tools do. */
function hasPath(input: unknown): input is { readonly path: string } {
  return typeof input === "object" && input !== null && "path" in input && typeof input.path === "string";
}
