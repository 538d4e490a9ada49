/**
 * Gives the agent tools for files.
 *
 * @module
 */
import { changeDirectory, FileEditor, turnStartOf } from "./file_editor.ts";
import { isIgnored, resolve, root } from "./path.ts";
import { readingTools, writingTools } from "./tools.ts";
import {
  allow,
  type Approval,
  type ApprovalContext,
  denied,
  type Middleware,
  type Next,
  type Run,
  type Scope,
  type ToolChange,
  type ToolContext,
  ToolError,
  type ToolResult,
} from "../../../mod.ts";
import { cancellationOf, Cleanups, expectNames, type FileChange, type Files, onlyIf } from "../../../src/core/kit.ts";
export { memoryFiles } from "./memory.ts";
export type { FileChange, FileContent, FileEntry, Files, FileStat } from "../../../src/core/kit.ts";

// Reports the changes that others make to the files of a run.

/**
 * Emits `file.changed` for the changes that others make; the calls of the run emit their own. Returns a function that ends the watch. Never rejects:
 * failures are reported to the operator.
 */
async function watch(editor: FileEditor, { emit, run }: Scope): Promise<() => Promise<void>> {
  /** Aborts pending emissions; created with the first change. */
  let over: AbortController | undefined;
  let ended = false;
  const pending = new Set<Promise<void>>();

  async function emitIfForeign(change: FileChange, signal: AbortSignal): Promise<void> {
    try {
      // under the lock of the file, no call of this run is in the middle of writing it
      await editor.locks.hold(change.path, cancellationOf(signal), async () => {
        if (!await editor.wroteLast(change.path) && !signal.aborted) emit({ type: "file.changed", ...change });
      });
    } catch (error) {
      if (!signal.aborted) run.report(error);
    }
  }

  function changed(change: FileChange): void {
    if (ended || isIgnored(change.path)) return;
    over ??= new AbortController();
    const emission = emitIfForeign(change, over.signal).finally(() => pending.delete(emission)); // it reports its own failure
    pending.add(emission);
  }

  async function reported<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      run.report(error);
      return undefined;
    }
  }

  const end = await reported(() => editor.files.watch?.(changed));
  return async () => {
    ended = true;
    over?.abort();
    await reported(() => end?.());
    await Promise.all(pending);
  };
}

// The middleware `workspace()`, and its options.

/** Options of `workspace()`. */
export interface WorkspaceOptions {
  /** Largest file, in bytes, that is read, written or searched. Default: 1,000,000. */
  readonly maxBytes?: number;
}

/**
 * Gives the agent six tools for files: `read_file`, `list_files`, `search_files`, `write_file`, `edit_file` and `change_directory`. `files` is the place of
 * the files (`memoryFiles()`, `directory()`, or an object store that implements `Files`), or a function that chooses it for a run.
 *
 * No path leaves the root. A relative path starts in the agent's current folder; guards see every path from the root. Calls that use the same file run one
 * after another, in the model's order; calls that use different files run in parallel. Every change emits `file.changed`. If the files can be watched, the
 * changes of others during the run emit it too.
 *
 * `search_files` takes a literal text or a regular expression in RE2 syntax. A search works for at most about two seconds, in slices between which the
 * process does other work; the model reads if only a part of the text was searched. `write_file` and `edit_file` refuse folders whose files other programs execute:
 * those of version control (`.git`), of hooks (`.husky`, `.github/hooks`), and the settings of coding agents (`.claude/settings.json`).
 *
 * Throws a `RangeError` if `maxBytes` is less than 1.
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
  options: WorkspaceOptions = {},
): Middleware<V> {
  expectNames("Cannot create workspace()", options, ["maxBytes"]);
  const { maxBytes = 1_000_000 } = options;
  if (!(maxBytes >= 1)) {
    throw new RangeError(`Cannot create workspace(): \`maxBytes\` is ${maxBytes}; expected 1 or more`);
  }
  const editors = new WeakMap<Run, FileEditor>();
  const cleanups = new Cleanups();

  function editorOf(scope: Scope<V>): FileEditor {
    let editor = editors.get(scope.run);
    if (!editor) {
      editor = new FileEditor(typeof files === "function" ? files(scope) : files, maxBytes);
      editors.set(scope.run, editor);
    }
    return editor;
  }

  const tools = [...readingTools(editorOf), ...writingTools(editorOf), changeDirectory(editorOf)];
  const ownTools = new Set<unknown>(tools);

  /** Resolves the path of a call from the root, so that a guard or a person sees which file is meant. */
  async function resolvePath(ctx: ToolContext<V>, next: Next<ToolChange, ToolResult>): Promise<ToolResult> {
    if (!hasPath(ctx)) return await next();
    const path = resolved(ctx.edited ? root : turnStartOf(ctx), ctx.input.path); // who edits has seen the path from the root
    if (typeof path === "string") return await next({ input: { ...ctx.input, path } });
    return ctx.edited ? await next() : denied(path.message); // the tool refuses an edit
  }

  /** Resolves a path that an inner hook changed. The engine then asks every guard about the resolved path. */
  async function resolveChanged(ctx: ApprovalContext<V>, next: Next<object, Approval>): Promise<Approval> {
    if (!hasPath(ctx)) return await next();
    const path = resolved(root, ctx.input.path);
    const isChanged = typeof path === "string" && path !== ctx.input.path; // the tool refuses a wrong path in the same way
    return isChanged ? allow({ input: { ...ctx.input, path } }) : await next();
  }

  return {
    name: "workspace",
    tools,
    async session(ctx, next) {
      cleanups.set(ctx, await watch(editorOf(ctx), ctx));
      try {
        return await next();
      } finally {
        await cleanups.run(ctx);
      }
    },
    abort: cleanups.abort,
    tool: onlyIf(resolvePath, ({ tool }) => ownTools.has(tool)),
    approval: onlyIf(resolveChanged, ({ tool }) => ownTools.has(tool)),
  };
}

/** Resolves a path, or returns the error for one that cannot be used. */
function resolved(folder: string, path: string): string | ToolError {
  try {
    return resolve(folder, path);
  } catch (error) {
    if (error instanceof ToolError) return error;
    throw error;
  }
}

/** The field that the inputs of all six tools have. */
interface WithPath {
  readonly path: string;
}

function hasPath<C extends { readonly input: unknown }>(ctx: C): ctx is C & { readonly input: WithPath } {
  const { input } = ctx;
  return typeof input === "object" && input !== null && "path" in input && typeof input.path === "string";
}
