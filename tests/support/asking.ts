/**
 * Tools and a hook that ask a person.
 *
 * @module
 */
import { type AnyTool, type Middleware, type Scope, tool } from "@jizai/jizai";
import * as z from "zod";

/** A tool that drops a table. */
export const drop: AnyTool = tool({
  name: "drop",
  description: "Drops a table",
  input: z.object({ table: z.string() }),
  ask: true,
  execute: ({ table }) => `Dropped ${table}`,
});

/** A tool that removes a file. */
export const remove: AnyTool = tool({
  name: "remove",
  description: "Removes a file",
  input: z.object({ path: z.string() }),
  ask: true,
  execute: ({ path }) => `Removed ${path}.`,
});

/** A tool that orders something. */
export const order: AnyTool = tool({
  name: "order",
  description: "Orders",
  input: z.object({ what: z.string() }),
  ask: true,
  execute: ({ what }) => `Ordered ${what}.`,
});

/**
 * Two tools, `look` and `drop`, of which `drop` asks; and their effects.
 * For a table they return `Found a.` and `Dropped a.`; in JSON, `{ found: "a" }` and `{ dropped: "a" }`.
 */
export function lookAndDrop({ json = false } = {}): { readonly did: readonly string[]; readonly tools: AnyTool[] } {
  const did: string[] = [];
  const input = z.object({ table: z.string() });
  const does = (word: string) => ({ table }: { readonly table: string }) => {
    const what = json ? word.toLowerCase() : word;
    did.push(`${what} ${table}`);
    return json ? { [what]: table } : `${what} ${table}.`;
  };
  return {
    did,
    tools: [
      tool({ name: "look", description: "Looks", input, execute: does("Found") }),
      tool({ name: "drop", description: "Drops", input, ask: true, execute: does("Dropped") }),
    ],
  };
}

/** A hook that asks "Blue or red?" about the run, and continues once there is a reply. */
export function blueOrRed(point: "prompt" | "stop"): Middleware {
  async function ask<R>({ run }: Scope, next: () => Promise<R>): Promise<R> {
    if (!run.answers.some(({ type }) => type === "reply")) throw run.pause("Blue or red?");
    return await next();
  }
  return { name: "asking", ...(point === "prompt" ? { prompt: ask } : { stop: ask }) };
}
