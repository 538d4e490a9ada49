/**
 * May a call run? What `PreToolUse` said of it, the rules that hooks have made, and `PermissionRequest` where a person would be asked.
 *
 * @module
 */
import { allow, type Approval, type ApprovalContext, ask, deny, type Middleware } from "../../../mod.ts";
import type { Hooks } from "./hooks.ts";
import { asked, change, ruling } from "./permissions.ts";
import { type CanUseTool, requesting } from "./permission_request.ts";
import { type Judgement, type Judging, same } from "./pre_tool_use.ts";

type Ask = Extract<Approval, { type: "ask" }>;

/** The hooks of a middleware at `approval`. `canUseTool` is asked beside those of `PermissionRequest`. */
export function approval(
  hooks: Hooks,
  { judge, denied }: Judging,
  canUseTool: CanUseTool | undefined,
): Required<Pick<Middleware, "approval">> {
  const { memory } = hooks;
  const request = requesting(hooks, canUseTool);

  /** What hooks and the rules that they have made say over what lies beneath. */
  function ruled(ctx: ApprovalContext, { decision, reason }: Judgement, beneath: Approval): Approval {
    const rule = ruling(memory.permissions.get(ctx), ctx.name, ctx.input);
    if (rule === "deny") return deny("A rule that a hook has made denies it.");
    const question = reason ?? `Run ${ctx.name}?`;
    if (decision === "ask") {
      return beneath.type === "ask" ? { ...beneath, questions: [question, ...beneath.questions] } : ask(question);
    }
    if (rule === "ask") return beneath.type === "ask" ? beneath : ask(question);
    return beneath.type === "ask" && (decision === "allow" || rule === "allow") ? allow() : beneath;
  }

  /** What is said in the person's place, or the question where nobody says anything. */
  async function answered(ctx: ApprovalContext, question: Ask): Promise<Approval> {
    const { mode } = memory.permissions.get(ctx);
    if (mode === "bypassPermissions" || mode === "yolo") return allow();
    if (ctx.run.answers.some(({ callId }) => callId === ctx.call.id)) return question; // the person has said it themselves
    const answer = await request(ctx);
    if (answer?.behavior === "allow") {
      change(memory.permissions, ctx, answer.updatedPermissions ?? [], hooks.name);
      return allow({ input: answer.updatedInput });
    }
    if (answer) {
      const { message = "Permission denied by hook.", interrupt } = answer;
      if (interrupt) hooks.end(ctx, message);
      return deny(message);
    }
    return mode === "dontAsk" ? deny("Nobody is asked here.") : question;
  }

  /** Whether any hook, or a rule that one has made, may be for a call. */
  function concerned(ctx: ApprovalContext): boolean {
    return canUseTool !== undefined || hooks.hear(ctx.name, "PreToolUse", "PermissionRequest") ||
      memory.permissions.get(ctx) !== asked;
  }

  return {
    async approval(ctx, next) {
      if (!concerned(ctx)) return await next();
      const judgement = await judge(ctx, "approval");
      if (judgement.decision === "deny") return deny(judgement.reason ?? "Blocked by a hook.");
      if (!same(judgement.input, ctx.input)) return allow({ input: judgement.input });
      const beneath = await next();
      if (beneath.type === "deny" || edits(beneath, ctx)) return beneath;
      const said = ruled(ctx, judgement, beneath);
      const verdict = said.type === "ask" ? await answered(ctx, said) : said;
      if (verdict.type === "deny") denied(ctx.call);
      return verdict;
    },
  };
}

/** Whether a guard beneath has another input in mind: then everybody is asked about that. */
function edits(beneath: Approval, { input }: ApprovalContext): boolean {
  return beneath.type === "allow" && beneath.input !== undefined && !same(beneath.input, input);
}
