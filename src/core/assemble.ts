/**
 * Blueprints: an agent composed from its parts, and the agents beneath it, which have a share of its middleware.
 *
 * @module
 */
import type { Blueprint, Parts } from "./blueprint.ts";
import { compose, nameOf } from "./onions.ts";
import type { Middleware } from "./points.ts";

/** Composes an agent. */
export function assemble(parts: Parts): Blueprint {
  const heirs = new Map<Blueprint, Blueprint>();
  const inherited = parts.use.flatMap(inheritedOf);
  return {
    ...parts,
    onions: compose(parts.use, parts.trace),
    heir(child) {
      const use = inherited.filter(({ from }) => !child.use.includes(from)).map(({ middleware }) => middleware);
      if (use.length === 0) return child;
      const heir = heirs.get(child) ?? assemble({
        ...child,
        use: [...use, ...child.use],
        tools: [
          ...child.tools,
          ...use.flatMap(({ tools = [] }) => tools).filter((tool) => !child.tools.includes(tool)),
        ],
      });
      heirs.set(child, heir); // composed once
      return heir;
    },
  };
}

/** What agents beneath have of a middleware: what guards, unless it says otherwise. */
function inheritedOf(from: Middleware, index: number) {
  const { inherit, approval } = from;
  const name = nameOf(from, index);
  if (inherit) return [{ from, middleware: { ...from, name } }];
  return inherit === undefined && approval ? [{ from, middleware: { name, approval: approval.bind(from) } }] : [];
}
