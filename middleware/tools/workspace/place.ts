/**
 * The place: where the agent is, and how it goes elsewhere.
 *
 * @module
 */
import { type AnyTool, type Scope, state, tool, ToolError, type ToolExecutionContext } from "../../../mod.ts";
import { cancellationOf } from "../../../src/core/kit.ts";
import type { Desk } from "./desk.ts";
import { input, text } from "./input.ts";
import { resolve, root } from "./path.ts";

/** Where the agent is, and where it was when it made the calls of a turn. */
interface Place {
  readonly cwd: string;
  readonly turn: number;
  readonly from: string;
}

/** What those who go elsewhere wait for: there is one place to be in. No path is like it. */
const lock = ":";

const place = state<Place>("workspace", () => ({ cwd: root, turn: 0, from: root }));

/** Where the calls of a turn start: all of them where the agent was before it, also when the turn goes on after a pause. */
export function startOf(ctx: Scope & { readonly turn: number }): string {
  const { cwd, turn, from } = place.get(ctx);
  if (turn === ctx.turn) return from;
  place.set(ctx, { cwd, turn: ctx.turn, from: cwd });
  return cwd;
}

/** Makes the tool `change_directory`; `deskOf` gives each run its desk. */
export function changeDirectory<V>(deskOf: (scope: Scope<V>) => Desk): AnyTool<V> {
  return tool({
    name: "change_directory",
    description: "Goes to another folder. Your next calls start there; those made together with this one do not.",
    input: input({ path: text("The folder; .. is the one above") }),
    async execute({ path }, ctx: ToolExecutionContext<V>) {
      const to = resolve(root, path);
      const { files, locks } = deskOf(ctx);
      return await locks.hold(lock, cancellationOf(ctx.signal), async () => {
        if ((await files.stat(to))?.type !== "folder") throw new ToolError("There is no such folder.");
        const { cwd: from, ...rest } = place.get(ctx);
        place.set(ctx, { ...rest, cwd: to });
        if (to !== from) ctx.emit({ type: "cwd.changed", turn: ctx.turn, call: ctx.callId, from, to });
        return to === root ? "You are at the top." : `You are in ${to}.`;
      });
    },
  });
}
