/**
 * A plan that the model keeps and clients see.
 *
 * @module
 */
import { type Middleware, type Scope, type State, state, tool } from "../../mod.ts";
import { expectNames, schemaOf } from "../../src/core/kit.ts";

/** A step of a plan. */
export interface PlanStep {
  /** The task. */
  readonly task: string;
  /** The status of the task. */
  readonly status: "pending" | "active" | "done";
}

/** The middleware that `plan()` returns. */
export interface Plan extends Middleware {
  /** The plan of the session. */
  readonly steps: State<readonly PlanStep[]>;
}

/** Options of `plan()`. */
export interface PlanOptions {
  /** Maximum number of steps. Default: 50. */
  readonly max?: number;
}

const statuses = ["pending", "active", "done"];

/**
 * Gives the model a tool `update_plan`, with which it keeps a list of tasks. The plan belongs to the session. Each request contains the current plan, so that
 * it outlives a compaction. Clients receive it as a `data` event named `plan` when it changes, and when a session is opened.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { plan } from "@jizai/jizai/middleware/plan";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const shown: unknown[] = [];
 * const assistant = agent({
 *   model: scripted({ calls: [["update_plan", { steps: [{ task: "Boil water", status: "active" }] }]] }, "I have a plan."),
 *   use: [plan()],
 *   observe: (event) => void (event.type === "data" && shown.push(event.data)),
 * });
 * await assistant.run("Make tea").result;
 * assertEquals(shown, [{ id: "plan", steps: [{ task: "Boil water", status: "active" }] }]);
 * ```
 */
export function plan(options: PlanOptions = {}): Plan {
  expectNames("Cannot create plan()", options, ["max"]);
  const { max = 50 } = options;
  const steps = state<readonly PlanStep[]>("plan.steps", () => [], { lifetime: "session" });

  function show(at: Scope): void {
    const shown = steps.get(at).map(({ task, status }) => ({ task, status }));
    at.emit({ type: "data", name: "plan", data: { id: "plan", steps: shown } });
  }

  const updatePlan = tool({
    name: "update_plan",
    description:
      "Replaces your plan: the list of all tasks, each pending, active or done. Use it for work of several steps, and after each step.",
    input: stepsSchema(max),
    parallel: false,
    operation: { type: "plan" },
    execute({ steps: changed }, ctx) {
      steps.set(ctx, changed);
      show(ctx);
      return changed.length === 0 ? "The plan is empty." : "Updated.";
    },
  });

  return {
    name: "plan",
    steps,
    tools: [updatePlan],
    async session(ctx, next) {
      if (steps.get(ctx).length > 0) show(ctx); // the client of a resumed run may be a new one
      return await next();
    },
    async turn(ctx, next) {
      const current = steps.get(ctx);
      if (current.length === 0) return await next();
      const lines = current.map(({ task, status }) => `- [${status}] ${task}`);
      return await next({ context: [...ctx.context, `Your plan:\n${lines.join("\n")}`] });
    },
  };
}

/** Returns the schema of the input of the tool. */
function stepsSchema(max: number) {
  return schemaOf<{ readonly steps: readonly PlanStep[] }>({
    type: "object",
    properties: {
      steps: {
        type: "array",
        maxItems: max,
        items: {
          type: "object",
          properties: { task: { type: "string" }, status: { type: "string", enum: statuses } },
          required: ["task", "status"],
          additionalProperties: false,
        },
      },
    },
    required: ["steps"],
    additionalProperties: false,
  }, (value) => {
    const parsed = parseSteps(value, max);
    return typeof parsed === "string" ? { issues: [{ message: parsed }] } : { value: { steps: parsed } };
  });
}

/** Parses the steps of an input. Returns the reason if it is not valid. */
function parseSteps(value: unknown, max: number): readonly PlanStep[] | string {
  const { steps } = Object(value);
  if (!Array.isArray(steps)) return "expected `steps`, an array";
  if (steps.length > max) return `expected at most ${max} steps`;
  const parsed: PlanStep[] = [];
  for (const step of steps) {
    const { task, status } = Object(step);
    if (typeof task !== "string" || !statuses.includes(status)) {
      return `expected steps with a \`task\`, and a \`status\` of ${statuses.join(", ")}`;
    }
    parsed.push({ task, status });
  }
  return parsed;
}
