/**
 * The `approval` hooks: how the decisions of guards about a call combine, and what a guard that throws decides. A deny is final. A hook that saw an ask may
 * answer it. No allow hides the verdicts of inner layers.
 *
 * @module
 */
import { deny } from "./hook_answers.ts";
import { isInterrupt } from "./interrupt.ts";
import { canonicalJson, expectJson } from "./lib/json.ts";
import type { Approval, ApprovalContext } from "./points.ts";
import { type HookAnswer, type HookFailure, type PointPolicy, policyOf } from "./policy.ts";
import type { AskedText, SavedApproval } from "./position.ts";
import type { EngineRun } from "./run.ts";
import type { Change } from "./scope.ts";
import type { ParsedInput } from "./tool_io.ts";

const rank = { allow: 0, ask: 1, deny: 2 } as const;

/** An ask of the layers of the onion. Those of the engine know the source of each text. */
export type Ask = Extract<Approval, { type: "ask" }> & { readonly "~asked"?: readonly AskedText[] };

/** A decision in progress. */
interface Deciding {
  readonly engine: EngineRun;
  readonly parsed: ParsedInput;
  /** The decision about the same tool and input, if it was saved while the call waited. */
  readonly before?: SavedApproval | undefined;
  /** The guards that were asked, and the questions of inner layers that they answered. */
  readonly guards: Map<string, readonly AskedText[]>;
}

type GuardAnswer<E> = HookAnswer<ApprovalContext, Approval, E>;

const policy: PointPolicy<ApprovalContext, Change, Approval, Deciding> = /* @__PURE__ */ policyOf("approval", {
  core: askTool,
  enter: (name, { guards }) => void guards.set(name, []),
  finalize(answer) {
    const decision = decisionOf(answer);
    answer.locals.guards.set(answer.name, withoutTexts(askedIn(answer.below), askedIn(decision)));
    return combine(answer, decision);
  },
  rescue,
});

/** Combines a hook's decision with that of the inner layers. */
function combine<E>(
  { ctx, called, below, runInner }: GuardAnswer<E>,
  returned: Approval,
): Approval | Promise<Approval> {
  if (returned.type === "deny") return returned;
  if (called) return below ? overriding(ctx, returned, below) ?? returned : deny("A guard failed.");
  return runInner().then((inner) => overriding(ctx, returned, inner) ?? stricter(returned, inner)); // the engine asks the inner layers that the hook did not ask
}

/**
 * Returns the decision of a hook as a value that no hook can change. Each field is read once, since a getter may return another value the next time. Throws a
 * `TypeError` for a value that is no decision: hooks written without types may return anything.
 */
function decisionOf<E>({ name, ctx, returned, below }: GuardAnswer<E>): Approval {
  const fields = typeof returned === "object" && !Array.isArray(returned) ? { ...returned } : {};
  expectJson("Cannot use the decision of a guard", fields);
  const { type, input, questions, reason, key, ...more }: { readonly [field: string]: unknown } = fields;
  if (type === "allow") {
    return Object.freeze(input === undefined ? { type } : { type, input: JSON.parse(JSON.stringify(input)) });
  }
  if (type === "deny") return Object.freeze({ type, reason: isText(reason) ? reason : "" });
  const texts: readonly unknown[] = Array.isArray(questions) ? [...questions] : [undefined];
  if (type !== "ask" || !texts.every(isText) || (key !== undefined && !isText(key))) {
    throw new TypeError(`Cannot leave approval: "${name}" returned no allow(), ask() or deny()`);
  }
  const origin = { middleware: name, ...(key !== undefined && { key }) };
  const inner = [...askedIn(below)];
  const asked = (texts.length > 0 ? texts : [`Run ${ctx.name}?`]).map((text) => {
    const index = inner.findIndex((each) => each.text === text); // the hook repeats the question of an inner guard
    return inner.splice(index, index < 0 ? 0 : 1)[0] ?? { text, ...origin };
  });
  return askOf(asked, more);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** Returns an ask that no hook can change. Without texts, it allows. */
export function askOf(asked: readonly AskedText[], more: object = {}): Approval {
  if (asked.length === 0) return Object.freeze({ type: "allow" });
  const questions = Object.freeze(asked.map(({ text }) => text));
  return Object.freeze({ ...more, type: "ask", questions, "~asked": Object.freeze(asked) });
}

/** Returns the texts of a decision, with the guards that ask them. */
export function askedIn(approval: Approval | undefined): readonly AskedText[] {
  if (approval?.type !== "ask") return [];
  const { questions, "~asked": asked }: Ask = approval;
  return asked ?? questions.map((text) => ({ text }));
}

/** Returns an ask without the question of the tool itself. If no guard asks, it allows. Other decisions stay. */
export function withoutToolQuestion(approval: Approval): Approval {
  if (approval.type !== "ask") return approval;
  const { type: _, questions: __, ...more } = approval;
  return askOf(askedIn(approval).filter((each) => !isOfTool(each)), more);
}

/** Returns true if two texts are one question: of the same middleware, with the same key. Texts without a key may differ. */
function isSameQuestion(one: AskedText, other: AskedText): boolean {
  return one.middleware === other.middleware && one.key === other.key;
}

/** Returns the texts that are not among `others`. */
export function withoutTexts(asked: readonly AskedText[], others: readonly AskedText[]): readonly AskedText[] {
  return asked.filter((each) => !others.some((other) => isSameQuestion(each, other)));
}

/** Returns the verdict that overrides all others: a deny of the inner layers, or an edit, after which every guard is asked again. */
function overriding(ctx: ApprovalContext, outer: Approval, inner: Approval): Approval | undefined {
  if (inner.type === "deny" || isEdit(inner, ctx)) return inner;
  return isEdit(outer, ctx) ? outer : undefined;
}

/** True if a verdict allows another input than the one that would run, in the form before or after the tool's schema. */
export function isEdit(
  approval: Approval,
  { input, unparsed }: { readonly input: unknown; readonly unparsed: unknown },
): approval is Edit {
  if (approval.type !== "allow" || approval.input === undefined) return false;
  const edit = canonicalJson(approval.input);
  return edit !== canonicalJson(input) && edit !== canonicalJson(unparsed);
}

/** A verdict with another input. */
type Edit = Extract<Approval, { type: "allow" }> & { readonly input: unknown };

/** Returns the stricter of two verdicts. Two asks become one. */
function stricter(outer: Approval, inner: Approval): Approval {
  if (outer.type !== "ask" || inner.type !== "ask") return rank[outer.type] >= rank[inner.type] ? outer : inner;
  const suggestions = [...outer.suggestions ?? [], ...inner.suggestions ?? []];
  const more = { ...inner, ...outer, ...(suggestions.length > 0 && { suggestions }) };
  return askOf([...askedIn(outer), ...askedIn(inner)], more);
}

/** The core of `approval`: the tool's own `ask`. A function that forgot its `return` asks. */
async function askTool(ctx: ApprovalContext, { engine, parsed, before }: Deciding): Promise<Approval> {
  const { tool, name } = ctx;
  let asks = Boolean(tool?.ask); // also a value that types forbid asks
  if (typeof tool?.ask === "function" && "input" in parsed) {
    try {
      asks = await tool.ask(parsed.input as never, ctx) !== false; // parsed by the tool's own schema
    } catch (error) {
      if (!before) throw error;
      reportKeptDecision(error, engine);
      asks = [before.asked, ...before.guards.map(([, answered]) => answered)].flat().some(isOfTool);
    }
  }
  return askOf(asks ? [{ text: `Run ${name}?`, key: name }] : []);
}

function isOfTool({ middleware }: AskedText): boolean {
  return middleware === undefined;
}

/**
 * Decides in place of a guard that failed as it did before the pause: it asks the same, and answers the same questions of inner guards. A guard that had not
 * decided then denies the call.
 */
async function rescue({ ctx, name, locals, error, runInner }: HookFailure<ApprovalContext, Approval, Deciding>) {
  const { engine, before, guards } = locals;
  const [, answered] = before?.guards.find(([guard]) => guard === name) ?? [];
  if (!before || !answered) throw error;
  reportKeptDecision(error, engine);
  guards.set(name, answered);
  const inner = await runInner();
  if (inner.type === "deny" || isEdit(inner, ctx)) return inner;
  const asked = before.asked.filter(({ middleware }) => middleware === name);
  const unanswered = inner.type === "ask" ? askOf(withoutTexts(askedIn(inner), answered), inner) : inner;
  return stricter(askOf(asked), unanswered);
}

/** Reports that a guard failed whose decision from before the pause counts. Throws the error of a run that ends. */
function reportKeptDecision(error: unknown, { control, events }: EngineRun): void {
  if (isInterrupt(error) || control.aborted) throw error;
  events.warn("hook.failed", "A guard failed, so its decision from before the pause counts.", {
    point: "approval",
    error,
  });
}

/** Runs the `approval` onion. A guard that throws denies the call; an interrupt passes. */
export async function approve(ctx: ApprovalContext, deciding: Deciding): Promise<Approval> {
  const { engine } = deciding;
  try {
    return await engine.definition.onions.approval(ctx, deciding, policy);
  } catch (error) {
    if (isInterrupt(error) || engine.control.aborted) throw error;
    engine.events.warn("hook.failed", "A guard failed, so the call was denied.", { point: "approval", error });
    return deny("A guard failed.");
  }
}
