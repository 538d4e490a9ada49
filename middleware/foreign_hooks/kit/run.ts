/**
 * Facts about a run that hooks of every system receive.
 *
 * @module
 */
import type { Run } from "../../../mod.ts";

/** Returns the run that has no parent. */
export function outermostRun(run: Run): Run {
  return run.parent ? outermostRun(run.parent) : run;
}

/** Returns the file that `transcript()` writes for the run; undefined without one. */
export function transcriptFile({ state }: Run): string | undefined {
  const path = state.get("transcript.path");
  return typeof path === "string" && path !== "" ? path : undefined;
}

/** Returns the working directory of the run, as `workspace()` keeps it, as a path beneath `root`. */
export function workingDirectory({ state }: Run, root: string): string {
  const place = state.get("workspace");
  const inside = typeof place === "object" && place !== null && "cwd" in place ? String(place.cwd) : ".";
  return absolutePath(root, inside);
}

/** Turns a path of the workspace into an absolute path beneath `root`. */
export function absolutePath(root: string, path: string): string {
  if (path.startsWith("/")) return path;
  const inside = path.replace(/^\.(\/|$)/, "");
  return inside === "" ? root : `${root.replace(/\/$/, "")}/${inside}`;
}

/** Splits `mcp__server__tool`, the name of a tool of an MCP server; undefined for every other name. */
export function mcpToolOf(name: string): { readonly serverName: string; readonly toolName: string } | undefined {
  const [, serverName, toolName] = name.match(/^mcp__(.+?)__(.+)$/) ?? [];
  return serverName === undefined || toolName === undefined ? undefined : { serverName, toolName };
}
