/**
 * The `approval` point. A deny is final. A hook that saw an ask may answer it. No allow hides the verdicts of inner layers.
 *
 * @module
 */
import { isInterrupt } from "../hooks/interrupt.ts";
import type { HookAnswer, PointPolicy } from "../hooks/onion.ts";
import type { Approval, ApprovalContext } from "../hooks/points/call.ts";
import { policyOf } from "../hooks/policy.ts";
import { deny } from "../hooks/results.ts";
import type { Change } from "../hooks/scope.ts";
import { canonicalJson } from "../lib/canonical_json.ts";
import { expectJson } from "../lib/json_value.ts";
import type { EngineRun } from "../run/run.ts";
import type { ParsedInput } from "./tool_io.ts";

const rank = { allow: 0, ask: 1, deny: 2 } as const;

/** Creates the policy of `approval` around a core. */
export function approvalPolicyOf<E>(
  core: PointPolicy<ApprovalContext, Change, Approval, E>["core"],
): PointPolicy<ApprovalContext, Change, Approval, E> {
  return policyOf("approval", [], { core, finalize });
}

const policy: PointPolicy<ApprovalContext, Change, Approval, ParsedInput> = /* @__PURE__ */ approvalPolicyOf(askTool);

function finalize<E>(given: HookAnswer<ApprovalContext, Approval, E>): Approval | Promise<Approval> {
  const { name, called, below, rest } = given;
  const returned = decisionOf(given.returned);
  if (!returned) throw new TypeError(`Cannot leave approval: "${name}" returned no allow(), ask() or deny()`);
  if (returned.type === "deny") return returned;
  const answer = { ...given, returned };
  if (called) return below ? merge(answer, below) : deny("A guard failed.");
  return rest().then((inner) => merge(answer, inner)); // the engine asks the inner layers that the hook did not ask
}

/**
 * Returns a decision that no hook can change, or undefined for a value that is none: hooks written without types may return anything. Each field is read once,
 * since a getter may return another value the next time. Throws a `TypeError` if a field is not JSON.
 */
function decisionOf(value: unknown): Approval | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const decision: { readonly [field: string]: unknown } = { ...value };
  expectJson("Cannot use the decision of a guard", decision);
  const { type, input, questions, reason } = decision;
  if (type === "allow") {
    return Object.freeze({
      ...decision,
      type,
      ...(input !== undefined && { input: JSON.parse(JSON.stringify(input)) }),
    });
  }
  if (type === "deny") return Object.freeze({ ...decision, type, reason: typeof reason === "string" ? reason : "" });
  if (type !== "ask" || !Array.isArray(questions)) return undefined;
  const texts: readonly unknown[] = Object.freeze([...questions]);
  return texts.every((text) => typeof text === "string")
    ? Object.freeze({ ...decision, type, questions: texts })
    : undefined;
}

/** Merges a hook's verdict with that of the inner layers. */
function merge<E>({ ctx, returned, called }: HookAnswer<ApprovalContext, Approval, E>, inner: Approval): Approval {
  if (inner.type === "deny" || isEdit(inner, ctx)) return inner; // after an edit, every guard is asked again
  if (isEdit(returned, ctx)) return returned;
  return called ? returned : stricter(returned, inner);
}

function isEdit(approval: Approval, { input }: ApprovalContext): boolean {
  return approval.type === "allow" && approval.input !== undefined &&
    canonicalJson(approval.input) !== canonicalJson(input);
}

function stricter(outer: Approval, inner: Approval): Approval {
  if (outer.type === "ask" && inner.type === "ask") {
    const suggestions = [...outer.suggestions ?? [], ...inner.suggestions ?? []];
    const questions = Object.freeze([...outer.questions, ...inner.questions]);
    return Object.freeze({ ...inner, ...outer, questions, ...(suggestions.length > 0 && { suggestions }) });
  }
  return rank[outer.type] >= rank[inner.type] ? outer : inner;
}

/** The core of `approval`: the tool's own `ask`. A function that forgot its `return` asks. */
async function askTool(ctx: ApprovalContext, parsed: ParsedInput): Promise<Approval> {
  const { tool, name } = ctx;
  const asks = typeof tool?.ask === "function"
    ? !("input" in parsed) || await tool.ask(parsed.input as never, ctx) !== false // parsed by the tool's own schema
    : Boolean(tool?.ask); // also a value that types forbid asks
  return Object.freeze(asks ? { type: "ask", questions: Object.freeze([`Run ${name}?`]) } : { type: "allow" });
}

/** Runs the `approval` onion. A guard that throws denies the call; an interrupt passes. */
export async function approve(ctx: ApprovalContext, engine: EngineRun, parsed: ParsedInput): Promise<Approval> {
  try {
    return await engine.definition.onions.approval(ctx, parsed, policy);
  } catch (error) {
    if (isInterrupt(error) || engine.control.aborted) throw error;
    engine.events.warn("hook.failed", "A guard failed, so the call was denied.", { point: "approval", error });
    return deny("A guard failed.");
  }
}
