/**
 * Inheritance: the middleware of a parent agent that also applies in its subagents.
 *
 * @module
 */
import { type AgentDefinition, defineAgent } from "../../agent/definition.ts";
import { type Middleware, nameOf } from "../../hooks/middleware.ts";
import type { StepScope } from "../../run/run.ts";

/** Returns `child` with the middleware that it inherits from `parent` around its own, and with their tools. */
export function inheritFrom(
  parent: AgentDefinition<StepScope>,
  child: AgentDefinition<StepScope>,
): AgentDefinition<StepScope> {
  const inherited = parent.use.flatMap(inheritedPart).filter((part) => !child.use.includes(part["~origin"]));
  const tools = inherited.flatMap((middleware) => middleware.tools ?? []);
  return defineAgent({
    ...child,
    use: [...inherited, ...child.use],
    tools: [...new Set([...child.tools, ...tools])],
  });
}

/** Returns the part of a middleware that subagents inherit: its `approval` hook, unless it declares otherwise. */
function inheritedPart(given: Middleware, index: number): readonly (Middleware & { readonly "~origin": Middleware })[] {
  const { inherit, approval, "~origin": origin = given } = given;
  const part = { name: nameOf(given, index), "~origin": origin };
  if (inherit) return [{ ...given, ...part }];
  return inherit === undefined && approval ? [{ ...part, approval: approval.bind(given) }] : [];
}
