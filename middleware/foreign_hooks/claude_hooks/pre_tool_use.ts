/**
 * `PreToolUse`: asked once about each call, on its way in, and once more where what will run is not what it was asked about.
 *
 * @module
 */
import type { ApprovalContext, Call, ToolContext } from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { contextOf, decisionOf, lastOf } from "./answers.ts";
import { toldOf } from "./call.ts";
import type { Decision } from "./dialect.ts";
import type { Hooks } from "./hooks.ts";

/** What hooks said of a call that is about to be made. */
export interface Judgement {
  /** What is done about it; nothing where no hook says. */
  readonly decision?: Decision | undefined;
  /** Why. */
  readonly reason?: string | undefined;
  /** What it is made with. */
  readonly input: unknown;
  /** What is said for the model. */
  readonly context: readonly string[];
}

/** Asks about calls. */
export type Judge = (ctx: ToolContext | ApprovalContext, point: "tool" | "approval") => Promise<Judgement>;

/** Who asks about calls, and remembers what was said. */
export interface Judging {
  /** Asks about a call, unless that was done. */
  readonly judge: Judge;
  /** What was said of it. */
  readonly judged: (call: Call) => Judgement | undefined;
  /** Remembers that a hook denied it later. */
  readonly denied: (call: Call) => void;
}

/** Makes who asks about calls. */
export function judging(hooks: Hooks): Judging {
  const { dialect } = hooks;
  const known = new WeakMap<Call, Judgement & { readonly name: string }>();

  async function judge(ctx: ToolContext | ApprovalContext, point: "tool" | "approval"): Promise<Judgement> {
    const { call, name, input } = ctx;
    const before = known.get(call);
    if (before && point === "approval" && before.name === name && same(before.input, input)) return before;
    const answers = await hooks.ask("PreToolUse", ctx, {
      point,
      of: name,
      call: call.id,
      told: () => toldOf(ctx),
    });
    const end = hooks.endOf("PreToolUse", ctx, answers);
    if (end) throw end;
    const { decision, reason } = decisionOf(answers, dialect) ?? {};
    if (decision === "defer") throw ctx.run.pause(reason ?? `Run ${name}?`);
    const updated = decision === "deny" ? undefined : lastOf(answers, dialect, ({ specific }) => specific.updatedInput);
    const judgement = {
      name,
      decision,
      reason,
      input: updated ?? input,
      context: [...before?.context ?? [], ...contextOf(answers)],
    };
    known.set(call, judgement);
    return judgement;
  }

  return {
    judge,
    judged: (call) => known.get(call),
    denied(call) {
      const { name = "", input, context = [] } = known.get(call) ?? {};
      known.set(call, { name, input, context, decision: "deny" });
    },
  };
}

/** Whether two inputs are the same JSON. */
export function same(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}
