/**
 * What every hook is told.
 *
 * @module
 */
import type { Run, Scope } from "../../../mod.ts";
import type { CommonInput } from "./input.ts";
import { type Memory, outermost } from "./memory.ts";

/** What every hook of a run is told; the root of its files is at `cwd`. */
export function baseOf(ctx: Scope, { model, permissions }: Memory, cwd: string): CommonInput {
  const { run } = ctx;
  const top = outermost(run);
  const chosen = model.get(ctx);
  return {
    session_id: top.session,
    transcript_path: pathOf(top),
    cwd: placeOf(run, cwd),
    prompt_id: top.id,
    ...(chosen && { model: chosen }),
    permission_mode: permissions.get(ctx).mode,
    ...(run.parent && { agent_id: run.id, agent_type: run.agent }),
  };
}

/** The file that a run's transcript is in, as `transcript()` keeps it; empty where there is none. */
export function pathOf({ state }: Run): string {
  return String(state.get("transcript.path") ?? "");
}

/** Where a run is: what `workspace()` keeps of it, beneath `root`. */
function placeOf({ state }: Run, root: string): string {
  const place = state.get("workspace");
  const inside = typeof place === "object" && place !== null && "cwd" in place ? String(place.cwd) : ".";
  return within(root, inside);
}

/** A path of the workspace as a path of the system, whose root is at `root`. */
export function within(root: string, path: string): string {
  return path === "." ? root : `${root.replace(/\/$/, "")}/${path}`;
}
