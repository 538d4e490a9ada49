/**
 * `PreToolUse`: asked once about each call on its way in, and again if the input changes afterwards.
 *
 * @module
 */
import * as z from "zod";
import type { ApprovalContext, Call, ToolContext } from "../../../../mod.ts";
import { inputThatRuns, isSameJson } from "../../kit/call.ts";
import { contextOf, decisionOf, lastOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import type { Decision } from "../config/dialect.ts";
import type { CallFields } from "../config/input.ts";
import { mcpToolOf } from "../../kit/run.ts";

/** The answer of the hooks about a call. Plain JSON: it is saved with a question, so that no hook is asked again on resume. */
export interface Judgement {
  readonly name: string;
  /** The input that the hooks were asked about. */
  readonly given: unknown;
  /** The input that would run after the changes of the hooks. */
  readonly input: unknown;
  /** The input that the hooks set, before the tool's schema. Undefined if they changed nothing. */
  readonly updated?: unknown;
  readonly decision?: Decision | undefined;
  readonly reason?: string | undefined;
  readonly context: readonly string[];
}

/** The saved answers about a call, of the outermost middleware first, with the batches in which they were given. */
const keptForm = z.array(z.object({
  batch: z.string(),
  judgement: z.object({
    name: z.string(),
    given: z.unknown(),
    input: z.unknown(),
    updated: z.unknown().optional(),
    decision: z.enum(["allow", "ask", "defer", "deny"]).optional(),
    reason: z.string().optional(),
    context: z.array(z.string()).readonly(),
  }),
})).catch([]);

type CallContext = ToolContext | ApprovalContext;

/** Asks PreToolUse about calls, and remembers the answers. */
export interface Judge {
  /** Asks about a call that comes in, with the input that would run. `count` is the number of calls in the response. */
  enter(ctx: ToolContext, count: number): Promise<Judgement>;
  /** Asks again if the call is about to run with another name or input. */
  approve(ctx: ApprovalContext): Promise<Judgement>;
  /** Returns the last answer about a call. */
  of(call: Call): Judgement | undefined;
  /** Remembers that a hook denied a call later. */
  denied(call: Call): void;
  /** Forgets a call that has come out. */
  leave(ctx: ToolContext): void;
}

/** Returns the fields of a call in the input of hooks. */
export function callFields({ call, name, input }: Pick<CallContext, "call" | "name" | "input">): CallFields {
  const server = mcpToolOf(name)?.serverName;
  return {
    tool_name: name,
    tool_input: input,
    tool_use_id: call.id,
    ...(server !== undefined && { mcp_server: { name: server, source: "dynamic" } }),
  };
}

/** Creates the judge of one middleware. */
export function judgeOf(hooks: Hooks): Judge {
  const { dialect, memory: { judgements } } = hooks;
  const known = new WeakMap<Call, Judgement>();
  const owner = fingerprintOf(hooks);
  const keyOf = ({ call }: CallContext) => `${call.id} ${owner}`;

  async function ask(ctx: CallContext, count: number): Promise<Judgement> {
    const { call, name, input } = ctx;
    const answers = await hooks.ask("PreToolUse", ctx, () => callFields(ctx));
    const end = hooks.endOf("PreToolUse", ctx, answers);
    if (end) throw end;
    const decisions = count === 1 ? dialect.decisions : dialect.decisions.filter((each) => each !== "defer");
    const { decision, reason } = decisionOf(answers, decisions) ?? {};
    if (decision === "defer") throw ctx.run.pause(reason ?? `Run ${name}?`);
    const updated = decision === "deny" ? undefined : lastOf(answers, dialect, ({ specific }) => specific.updatedInput);
    const context = [...known.get(call)?.context ?? [], ...contextOf(answers)];
    const runs = updated === undefined ? input : await inputThatRuns({ tool: ctx.tool, input: updated });
    return { name, given: input, input: runs, ...(updated !== undefined && { updated }), decision, reason, context };
  }

  const keptOf = (ctx: CallContext) => keptForm.parse(judgements.get(ctx)[keyOf(ctx)] ?? []);

  return {
    async enter(ctx, count) {
      if (!hooks.has("PreToolUse")) return { name: ctx.name, given: ctx.input, input: ctx.input, context: [] };
      const kept = keptOf(ctx);
      const outer = kept.findLastIndex(({ batch }) => batch === ctx.batchId); // those have entered before this one
      const before = kept[outer + 1]?.judgement;
      const isKept = before && before.name === ctx.name && isSameJson(before.given, ctx.input);
      const made = isKept ? before : await ask(ctx, count);
      known.set(ctx.call, made);
      const all = kept.toSpliced(outer + 1, 1, { batch: ctx.batchId, judgement: made });
      judgements.update(ctx, (judgements) => ({ ...judgements, [keyOf(ctx)]: all }));
      return made;
    },
    async approve(ctx) {
      const before = known.get(ctx.call);
      if (before && before.name === ctx.name && isSameJson(before.input, ctx.input)) return before;
      const asked = await ask(ctx, 1);
      known.set(ctx.call, asked);
      return asked;
    },
    of: (call) => known.get(call),
    denied(call) {
      const { name = "", given, input, context = [] } = known.get(call) ?? {};
      known.set(call, { name, given, input, context, decision: "deny" });
    },
    leave(ctx) {
      if (!hooks.has("PreToolUse")) return;
      judgements.update(ctx, ({ [keyOf(ctx)]: _, ...rest }) => rest);
    },
  };
}

/** Identifies the PreToolUse hooks of a middleware among others of its kind, also in another process: a hash of their sources. */
function fingerprintOf({ definitions }: Hooks): string {
  const sources = (definitions.get("PreToolUse") ?? []).map((
    { matcher, hook, same },
  ) => [matcher, same ?? String(hook)]);
  let hash = 0;
  for (const char of JSON.stringify(sources)) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) | 0;
  return (hash >>> 0).toString(36);
}
