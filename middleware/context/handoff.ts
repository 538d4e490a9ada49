/**
 * Transfers a conversation to another agent.
 *
 * @module
 */
import { type AnyTool, denied, type Middleware, type Model, type Scope, state, tool } from "../../mod.ts";
import { expectNames, outputInstructions, schemaOf } from "../../src/core/kit.ts";

/** An agent that a conversation can be transferred to. */
export interface Specialist<V = unknown> {
  /** The name that the model uses. */
  readonly name: string;
  /** The tasks of the agent, for the model that decides about the transfer. */
  readonly description: string;
  /** The system instructions, or a function that returns them. */
  readonly instructions: string | ((scope: Scope<V>) => string | Promise<string>);
  /** The tools that only this agent has. Default: none. */
  readonly tools?: readonly AnyTool<V>[];
  /** The model. Default: the model of the run. */
  readonly model?: Model;
}

/** Options of `handoff()`. */
export interface HandoffOptions {
  /** The name of the agent that has the middleware, for transfers back to it. Default: "main". */
  readonly back?: string;
  /** Names of the agent's own tools that every specialist has too. Default: none. */
  readonly shared?: readonly string[];
}

/** The name of the tool. */
const transferTool = "transfer";

/**
 * Gives the model a tool `transfer`, with which it hands the conversation to a specialist. From the next turn on, requests have the instructions, the tools
 * and the model of the specialist, and the same messages. The specialist can transfer it further, or back. The choice belongs to the session, so the next
 * prompt goes to the specialist too. Clients receive a `data` event named `agent`. The middleware and the `output` of the agent apply to all specialists.
 * Place it before `fallback`, so that the other models are asked if the model of a specialist fails.
 *
 * A call of a tool that the active agent does not have is denied, and no person is asked about it. Calls after `transfer` in the same response are calls of
 * the specialist. Throws a `TypeError` if two agents have the same name.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { handoff } from "@jizai/jizai/middleware/handoff";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const refunds = { name: "refunds", description: "Refunds orders", instructions: "You refund orders." };
 * const model = scripted({ calls: [["transfer", { agent: "refunds" }]] }, "Which order?");
 *
 * await agent({ model, instructions: "You greet.", use: [handoff([refunds])] }).run("Money back!").result;
 * assertEquals(model.requests.map(({ instructions }) => instructions), ["You greet.", "You refund orders."]);
 * ```
 */
export function handoff<V = unknown>(
  specialists: readonly Specialist<V>[],
  options: HandoffOptions = {},
): Middleware<V> {
  expectNames("Cannot create handoff()", options, ["back", "shared"]);
  const { back = "main", shared = [] } = options;
  const byName = new Map(specialists.map((specialist) => [specialist.name, specialist]));
  const names = [back, ...specialists.map(({ name }) => name)];
  if (new Set(names).size < names.length) {
    throw new TypeError(`Cannot create handoff(): expected different names, got ${names.join(", ")}`);
  }
  const active = state("handoff.active", () => back, { lifetime: "session" });
  const { tools, owners } = collectTools(specialists);

  /** Whether the active agent has a tool. */
  function has(name: string, agent: string): boolean {
    if (name === transferTool) return true;
    return owners.get(name)?.has(agent) ?? (agent === back || shared.includes(name));
  }

  /** Returns the active agent. One that the program no longer has is replaced by the agent itself. */
  function activeAt(scope: Scope<V>): string {
    const name = active.get(scope);
    return byName.has(name) ? name : back;
  }

  const lines = specialists.map(({ name, description }) => `- ${name}: ${description}`);
  const transfer = tool({
    name: transferTool,
    description: [
      "Transfers the conversation to another agent, which continues it:",
      ...lines,
      `- ${back}: everything else`,
    ].join("\n"),
    input: agentSchema(names),
    parallel: false,
    execute({ agent }, ctx) {
      active.set(ctx, agent);
      ctx.emit({ type: "data", name: "agent", data: { id: "agent", agent } });
      return `The conversation was transferred. You are now the agent "${agent}". Continue with the user's request.`;
    },
  });

  return {
    name: "handoff",
    before: ["fallback"],
    tools: [transfer, ...tools],
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      const { request } = ctx;
      const { output } = request.options;
      const name = activeAt(ctx);
      const specialist = byName.get(name);
      const tools = request.tools.filter((tool) => has(tool.name, name));
      if (!specialist) return await next({ request: { tools } });
      const { instructions: specialistInstructions, model = request.model } = specialist;
      const text = typeof specialistInstructions === "string"
        ? specialistInstructions
        : await specialistInstructions(ctx);
      const instructions = output ? `${text}\n\n${outputInstructions(output)}`.trim() : text;
      return await next({ request: { instructions, tools, model } });
    },
    async tool(ctx, next) {
      const name = activeAt(ctx);
      return has(ctx.name, name) ? await next() : denied(`The agent "${name}" has no tool "${ctx.name}".`);
    },
  };
}

/** Returns the tools of all specialists, and the names of the specialists that have each tool. */
function collectTools<V>(specialists: readonly Specialist<V>[]) {
  const tools = new Map<string, AnyTool<V>>();
  const owners = new Map<string, Set<string>>();
  for (const { name, tools: specialistTools = [] } of specialists) {
    for (const tool of specialistTools) {
      if ((tools.get(tool.name) ?? tool) !== tool) {
        throw new TypeError(`Cannot create handoff(): two specialists have different tools "${tool.name}"`);
      }
      tools.set(tool.name, tool);
      owners.set(tool.name, (owners.get(tool.name) ?? new Set()).add(name));
    }
  }
  return { tools: [...tools.values()], owners };
}

/** Returns the schema of the input of the tool: one of the names of the agents. */
function agentSchema(names: readonly string[]) {
  return schemaOf<{ readonly agent: string }>({
    type: "object",
    properties: { agent: { type: "string", enum: names } },
    required: ["agent"],
    additionalProperties: false,
  }, (value) => {
    const { agent } = Object(value);
    return names.includes(agent)
      ? { value: { agent } }
      : { issues: [{ message: `expected one of ${names.join(", ")}` }] };
  });
}
