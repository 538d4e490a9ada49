/**
 * Tracks the folder in which the agent works, and defines the tool `change_directory`.
 *
 * @module
 */
import * as z from "zod";
import { type AnyTool, type Scope, state, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { cancellationOf } from "../../../src/core/kit.ts";
import type { FileEditor } from "./file_editor.ts";
import { resolve, root, shown } from "./path.ts";

/** The current folder, and the folder in which the calls of a turn start. */
interface WorkingDirectory {
  readonly cwd: string;
  readonly turn: number;
  readonly turnStart: string;
}

/** Key of the lock that calls of `change_directory` share. No path equals it. */
const lock = ":";

const directory = state<WorkingDirectory>("workspace", () => ({ cwd: root, turn: 0, turnStart: root }));

/** Returns the folder in which the calls of this turn start. It stays the same for all of them, also when the turn resumes after a pause. */
export function turnStartOf(ctx: Scope & { readonly turn: number }): string {
  const { cwd, turn, turnStart } = directory.get(ctx);
  if (turn === ctx.turn) return turnStart;
  directory.set(ctx, { cwd, turn: ctx.turn, turnStart: cwd });
  return cwd;
}

/** Creates the tool `change_directory`; `editorOf` returns the editor of a run. */
export function changeDirectory<V>(editorOf: (scope: Scope<V>) => FileEditor): AnyTool<V> {
  return tool({
    name: "change_directory",
    description:
      "Changes the current folder for your next response. Calls in this response still start in the old one.",
    input: z.object({ path: z.string().describe("The folder; .. is its parent") }),
    async execute({ path }, ctx: ToolExecutionContext<V>) {
      const to = resolve(root, path);
      const { files, locks } = editorOf(ctx);
      return await locks.hold(lock, cancellationOf(ctx.signal), async () => {
        if ((await files.stat(to))?.type !== "folder") {
          throw new ToolError(`Cannot change to ${shown(to)}: there is no such folder.`);
        }
        const { cwd: from, ...rest } = directory.get(ctx);
        directory.set(ctx, { ...rest, cwd: to });
        if (to !== from) ctx.emit({ type: "cwd.changed", turn: ctx.turn, call: ctx.callId, from, to });
        return to === root ? "The current folder is the root." : `The current folder is ${to}.`;
      });
    },
  });
}
