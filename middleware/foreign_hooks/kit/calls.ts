/**
 * Calls of tools, as the adapters of all systems see them: their inputs, results, errors, decisions and groups.
 *
 * @module
 */
import {
  allow,
  type Approval,
  type ContentPart,
  type Middleware,
  textOf,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { canonicalJson, jsonThatRuns } from "../../../src/core/kit.ts";

/** Returns the result with more texts for the model, in a message after the results. */
export function addContext(result: ToolResult, texts: readonly (string | undefined)[]): ToolResult {
  const context = texts.flatMap((text) => text ? [text] : []);
  return context.length === 0 ? result : { ...result, context: [...result.context ?? [], ...context] };
}

/** Returns a part of text. */
export function textPart(text: string): ContentPart {
  return { type: "text", text };
}

/** Returns the parts with their text replaced. */
export function replaceText(parts: readonly ContentPart[], text: string): readonly ContentPart[] {
  return [textPart(text), ...parts.filter(({ type }) => type !== "text")];
}

/** Whether two values are the same JSON. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** Applies an "allow" of a foreign hook: it answers a question of the inner layers, and changes neither an allow nor a deny. */
export function allowAsk(inner: Approval): Approval {
  return inner.type === "ask" ? allow() : inner;
}

/** Returns an input as its tool would run with it: after the schema. An input that the schema rejects stays as it is. */
export async function inputThatRuns(ctx: Pick<ToolContext, "tool" | "input">): Promise<unknown> {
  const found = await jsonThatRuns(ctx);
  return found ? found.json : ctx.input;
}

/** Returns the message of a failed call as it was thrown. Returns the text of the result if nothing was thrown, or the process has died since. */
export function errorOf(result: ToolResult): string {
  return result.error !== undefined && result.status !== "ok" ? messageOf(result.error) : textOf(result);
}

/** Splits `mcp__server__tool`, the name of a tool of an MCP server; undefined for every other name. */
export function mcpToolOf(name: string): { readonly serverName: string; readonly toolName: string } | undefined {
  const [, serverName, toolName] = name.match(/^mcp__(.+?)__(.+)$/) ?? [];
  return serverName === undefined || toolName === undefined ? undefined : { serverName, toolName };
}

/** Returns `groups` for a middleware: each call runs alone, with its hooks around it, unless its tool says that it may overlap with others. */
export function separateCalls(): Required<Pick<Middleware, "groups">> {
  return { groups: ({ parallel }) => parallel ? "parallel" : "alone" };
}

/** Returns the message of an error, as thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
