/**
 * The parts of an agent, from its options.
 *
 * @module
 */
import { outputFormat } from "../features/output.ts";
import { checkMiddleware } from "../hooks/checks/middleware.ts";
import { type Middleware, nameOf } from "../hooks/middleware.ts";
import { checkOrder, sortByDeclaration } from "../hooks/checks/order.ts";
import { strictByDefault, wrapperOf } from "../hooks/strict.ts";
import { expectChoice } from "../lib/expect_option.ts";
import { expectNames } from "../../protocol/shape.ts";
import { defaultLimits, limited } from "../run/limits.ts";
import type { StepScope } from "../run/run.ts";
import type { Steps } from "../run/step.ts";
import { promptSteps } from "../steps/prompt_region.ts";
import type { AgentDefinition, AgentParts } from "./definition.ts";
import type { AgentOptions } from "./options.ts";
import type { Schema } from "./schema.ts";
import type { AnyTool } from "./tool.ts";

/** Completes and checks the options of an agent. Throws a `TypeError` for an option that is wrong. */
export function partsOf<V, S extends Schema>(options: AgentOptions<V, S>): AgentParts<StepScope> {
  checkOptions(options);
  const { name = "agent", description = name, model, instructions = "", output, tools = [], limits } = options;
  const { observe = [], trace, order, strict = strictByDefault() } = options;
  const given = (options.use ?? []) as readonly Middleware[]; // run() requires the vars that they need
  checkMiddleware(given);
  const use = order === "declared" ? sortByDeclaration(given) : checkOrder(given);
  const more = use.map((middleware) => middleware["~steps"] as Steps<StepScope> | undefined); // a feature of this engine made them
  const steps: Steps<StepScope> = Object.assign({}, promptSteps, ...more);
  const parts: AgentParts<StepScope> = {
    name,
    description,
    // run() requires the vars that these need
    model: model as AgentDefinition<StepScope>["model"],
    instructions: instructions as AgentDefinition<StepScope>["instructions"],
    tools: collectTools(use, tools as readonly AnyTool[]),
    limits: limited(defaultLimits, limits),
    now: options.now,
    format: output && outputFormat(output),
    observers: [observe].flat(),
    use,
    wrapHooks: wrapperOf(strict, trace),
    steps,
    checkLimits({ context }) {
      if (context < Infinity && !steps.compact) {
        const expected = 'expected compaction() of "@jizai/jizai/middleware/compaction" in use';
        throw new TypeError(`Cannot limit "context" to ${context} tokens: ${expected}`);
      }
    },
  };
  parts.checkLimits(parts.limits);
  return parts;
}

const optionNames: readonly (keyof AgentOptions<never, never>)[] = [
  "name",
  "description",
  "vars",
  "model",
  "instructions",
  "output",
  "tools",
  "use",
  "order",
  "limits",
  "observe",
  "strict",
  "now",
  "trace",
];

/** Throws a `TypeError` for an option that is unknown, or of another type. */
function checkOptions<V, S extends Schema>(options: AgentOptions<V, S>): void {
  const { name = "agent", model, order = "given", trace } = options;
  const operation = `Cannot create the agent "${name}"`;
  if (typeof model !== "function" && typeof model?.stream !== "function") {
    const why = model === undefined ? "it has no model" : "its `model` is not a model";
    throw new TypeError(`${operation}: ${why}; expected \`model\`, such as openai({ model, apiKey })`);
  }
  expectNames(operation, options, optionNames);
  expectChoice(operation, "order", order, ["given", "declared"]);
  if (trace !== undefined && typeof trace !== "function") {
    throw new TypeError(`Cannot trace: expected trace of "@jizai/jizai/trace", got ${trace}`);
  }
}

/** Returns all tools, the agent's own first. */
function collectTools(use: readonly Middleware[], own: readonly AnyTool[]): readonly AnyTool[] {
  const from = new Map<string, string>();
  const sources = [
    { name: "tools", tools: own },
    ...use.map((middleware, index) => ({ name: nameOf(middleware, index), tools: middleware.tools ?? [] })),
  ];
  return sources.flatMap(({ name, tools }) => {
    if (!Array.isArray(tools)) throw new TypeError(`Cannot create the agent: expected a list of tools in \`${name}\``);
    for (const tool of tools) {
      if (!Object(tool).definition) {
        throw new TypeError(
          `Cannot create the agent: "${name}" has a tool that was not made by tool(); expected tool()`,
        );
      }
      const other = from.get(tool.name);
      if (other) {
        throw new TypeError(`Cannot create the agent: "${other}" and "${name}" both have a tool "${tool.name}"`);
      }
      from.set(tool.name, name);
    }
    return tools;
  });
}
