/**
 * The mark of a tool that is an agent: how the engine knows it, and how it is run.
 *
 * @module
 */
import type { ToolResult } from "../protocol/message.ts";
import type { Entry } from "./entry.ts";
import type { ExecuteContext } from "./points.ts";
import type { AnyTool } from "./tool.ts";

/** Runs a child for a call. */
export type Child = (ctx: ExecuteContext, entry: Entry) => Promise<ToolResult>;

const mark = Symbol("child");

/** Marks a tool as one that is run by `child`. */
export function asChild<T extends AnyTool>(tool: T, child: Child): T {
  return Object.assign(tool, { [mark]: child });
}

/** How a tool that is an agent is run. */
export function childOf(tool: AnyTool & { readonly [mark]?: Child }): Child | undefined {
  return tool[mark];
}
