/**
 * What an agent is made of, for a person to read.
 *
 * @module
 */
import type { Blueprint, Onions } from "./blueprint.ts";
import { nameOf } from "./onions.ts";

/** The chain of every point, the outermost first, and the tools. */
export function explain({ name, onions, tools, use }: Blueprint): string {
  const chains = pointsOf(onions).map((point) => {
    const chain = use.flatMap((middleware, index) => middleware[point] ? [nameOf(middleware, index)] : []);
    return `${point.padEnd(9)} ${[...chain, "core"].join(" → ")}`;
  });
  return [name, ...chains, `${"tools".padEnd(9)} ${tools.map((tool) => tool.name).join(", ") || "none"}`].join("\n");
}

function pointsOf(onions: Onions): readonly (keyof Onions)[] {
  return Object.keys(onions) as (keyof Onions)[]; // exactly its keys: it is made in one place
}
