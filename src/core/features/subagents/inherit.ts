/**
 * Inheritance: the middleware of a parent agent that also applies in its subagents.
 *
 * @module
 */
import { type AgentDefinition, defineAgent } from "../../agent/definition.ts";
import { type Middleware, nameOf } from "../../hooks/middleware.ts";
import type { StepScope } from "../../run/run.ts";

/** The part of a middleware that subagents inherit, and the middleware itself. */
interface Inherited {
  readonly from: Middleware;
  readonly middleware: Middleware;
}

/** The subagents of each parent, with the middleware that they inherit, composed once. */
const composed = new WeakMap<object, Map<object, AgentDefinition<StepScope>>>();
/** The middleware that an agent inherited itself. */
const inheritedBy = new WeakMap<object, readonly Inherited[]>();

/** Returns `child` with the middleware that it inherits from `parent` around its own. */
export function inheritFrom(
  parent: AgentDefinition<StepScope>,
  child: AgentDefinition<StepScope>,
): AgentDefinition<StepScope> {
  const children = composed.get(parent) ?? new Map();
  composed.set(parent, children);
  const found = children.get(child);
  if (found) return found;
  const received = inheritedBy.get(parent) ?? []; // the first middleware of the parent
  const all = [...received, ...parent.use.slice(received.length).flatMap(inheritedPart)];
  const inherited = all.filter(({ from }) => !child.use.includes(from));
  const combined = combine(child, inherited.map(({ middleware }) => middleware));
  inheritedBy.set(combined, inherited);
  children.set(child, combined);
  return combined;
}

/** Returns the part of a middleware that subagents inherit: its `approval` hook, unless it declares otherwise. */
function inheritedPart(from: Middleware, index: number): readonly Inherited[] {
  const { inherit, approval } = from;
  const name = nameOf(from, index);
  if (inherit) return [{ from, middleware: { ...from, name } }];
  return inherit === undefined && approval ? [{ from, middleware: { name, approval: approval.bind(from) } }] : [];
}

/** Returns `child` with further middleware around its own, and with their tools. */
function combine(child: AgentDefinition<StepScope>, outer: readonly Middleware[]): AgentDefinition<StepScope> {
  if (outer.length === 0) return child;
  const tools = outer.flatMap((middleware) => middleware.tools ?? []);
  return defineAgent({
    ...child,
    use: [...outer, ...child.use],
    tools: [...child.tools, ...tools.filter((tool) => !child.tools.includes(tool))],
  });
}
