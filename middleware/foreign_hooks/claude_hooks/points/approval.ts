/**
 * The `approval` point: the decision of PreToolUse, the rules that hooks have made, and PermissionRequest.
 *
 * @module
 */
import { allow, type Approval, type ApprovalContext, ask, deny, type Middleware } from "../../../../mod.ts";
import { withoutToolQuestion } from "../../../../src/core/kit.ts";
import { allowAsk, isSameJson } from "../../kit/call.ts";
import { workingDirectory } from "../../kit/run.ts";
import type { Hooks } from "../ask/hooks.ts";
import { type CanUseTool, permissionRequest } from "../permissions/permission_request.ts";
import { applyUpdates, type BehaviorRule, noPermissions, rulingOf } from "../permissions/permissions.ts";
import type { Judge, Judgement } from "../permissions/pre_tool_use.ts";

/** Creates the hook at `approval`. */
export function approvalHook(
  hooks: Hooks,
  judge: Judge,
  canUseTool: CanUseTool | undefined,
): Required<Pick<Middleware, "approval">> {
  const { memory } = hooks;
  const request = permissionRequest(hooks, canUseTool);

  /** Applies the decision of the hooks and their rules to the verdict of the inner layers. */
  function ruled(ctx: ApprovalContext, { decision, reason }: Judgement, inner: Approval): Approval {
    const { name, input, tool } = ctx;
    const call = { name, input, tool, folders: [workingDirectory(ctx.run, hooks.cwd), hooks.cwd] };
    const rule = rulingOf(memory.permissions.get(ctx), call);
    if (rule?.behavior === "deny") return deny("A rule that a hook has made denies it.");
    const question = reason ?? `Run ${name}?`;
    if (decision === "ask") {
      return inner.type === "ask" ? { ...inner, questions: [question, ...inner.questions] } : ask(question);
    }
    if (rule?.behavior === "ask") return askedBy(rule, name, inner);
    if (decision !== "allow" && rule?.behavior !== "allow") return inner;
    return hooks.dialect.allows === "all" ? allowAsk(inner) : withoutToolQuestion(inner);
  }

  /** Returns the answer in place of the person, or the question. */
  async function answered(ctx: ApprovalContext, question: Approval): Promise<Approval> {
    const { mode } = memory.permissions.get(ctx);
    if (mode === "bypassPermissions" || mode === "yolo") return allow();
    if (ctx.run.answers.some(({ callId }) => callId === ctx.call.id)) return question; // the person has answered
    const answer = await request(ctx);
    if (answer?.behavior === "allow") {
      applyUpdates(memory.permissions, ctx, answer.updatedPermissions ?? [], hooks.name);
      return allow({ input: answer.updatedInput });
    }
    if (answer) {
      const { message = "Permission denied by hook.", interrupt } = answer;
      if (interrupt) hooks.end(ctx, message, { tree: true });
      return deny(message);
    }
    return mode === "dontAsk" ? deny("This session asks no questions.") : question;
  }

  function isConcerned(ctx: ApprovalContext): boolean {
    return canUseTool !== undefined || hooks.hasFor(ctx.name, "PreToolUse", "PermissionRequest") ||
      memory.permissions.get(ctx) !== noPermissions;
  }

  return {
    async approval(ctx, next) {
      if (!isConcerned(ctx)) return await next();
      const judgement = await judge.approve(ctx);
      if (judgement.decision === "deny") return deny(judgement.reason ?? "Blocked by a hook.");
      if (!isSameJson(judgement.input, ctx.input)) return allow({ input: judgement.updated });
      const inner = await next();
      if (inner.type === "deny" || editsInput(inner, ctx)) return inner;
      const verdict = ruled(ctx, judgement, inner);
      const final = verdict.type === "ask" ? await answered(ctx, verdict) : verdict;
      if (final.type === "deny") judge.denied(ctx.call);
      return final;
    },
  };
}

/** Adds the question of a rule to those of inner guards. It includes the question of the tool. */
function askedBy({ toolName, ruleContent = "" }: BehaviorRule, name: string, inner: Approval): Approval {
  const others = withoutToolQuestion(inner);
  const key = `${toolName}(${ruleContent})`;
  const own = ask(`A rule that a hook has made asks: run ${name}?`, { key });
  return own.type === "ask" && others.type === "ask"
    ? { ...others, ...own, questions: [...own.questions, ...others.questions] }
    : own;
}

/** Whether an inner guard changes the input: then every guard is asked about the new input. */
function editsInput(inner: Approval, { input, unparsed }: ApprovalContext): boolean {
  return inner.type === "allow" && inner.input !== undefined && !isSameJson(inner.input, input) &&
    !isSameJson(inner.input, unparsed);
}
