/**
 * Blueprints: an agent composed from its parts, and the agents beneath it, which have a share of its middleware.
 *
 * @module
 */
import type { Blueprint, Parts } from "./blueprint.ts";
import { compose, nameOf } from "./onions.ts";
import type { Middleware } from "./points.ts";

/** What is handed down of a middleware. */
interface Inherited {
  readonly from: Middleware;
  readonly middleware: Middleware;
}

/** Composes an agent; what it inherits stands around what is its own. */
export function assemble(parts: Parts, inherited: readonly Inherited[] = []): Blueprint {
  const heirs = new Map<Blueprint, Blueprint>();
  const use = [...inherited.map(({ middleware }) => middleware), ...parts.use];
  const down = [...inherited, ...parts.use.flatMap(inheritedOf)];
  const brought = inherited.flatMap(({ middleware: { tools = [] } }) => tools);
  return {
    ...parts,
    tools: [...parts.tools, ...brought.filter((tool) => !parts.tools.includes(tool))],
    onions: compose(use, parts.trace),
    heir(child) {
      const handed = down.filter(({ from }) => !child.use.includes(from));
      if (handed.length === 0) return child;
      const heir = heirs.get(child) ?? assemble(child, handed);
      heirs.set(child, heir); // composed once
      return heir;
    },
  };
}

/** What agents beneath have of a middleware: what guards, unless it says otherwise. */
function inheritedOf(from: Middleware, index: number): readonly Inherited[] {
  const { inherit, approval } = from;
  const name = nameOf(from, index);
  if (inherit) return [{ from, middleware: { ...from, name } }];
  return inherit === undefined && approval ? [{ from, middleware: { name, approval: approval.bind(from) } }] : [];
}
