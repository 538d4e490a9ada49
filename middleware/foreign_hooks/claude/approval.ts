/**
 * The `approval` point: the decision of PreToolUse, the rules that hooks have made, and PermissionRequest. `decisionOf` (`outputs.ts`) makes one decision of
 * those of several hooks.
 *
 * @module
 */
import type { PermissionAnswer } from "./config.ts";
import type { Decision } from "./dialect.ts";
import type { CallFields, PermissionSuggestion } from "./events.ts";
import type { Hooks } from "./hooks.ts";
import { type Answers, blockOf, contextOf, decisionOf, lastOf, type Permission, readPermission } from "./outputs.ts";
import { applyUpdates, type BehaviorRule, noPermissions, rulingOf } from "./permissions.ts";
import { warnFailed, workingDirectory } from "../kit/adapter.ts";
import { allowAsk, CallDecisions, inputThatRuns, isSameJson, mcpToolOf } from "../kit/calls.ts";
import {
  allow,
  type Approval,
  type ApprovalContext,
  ask,
  type Call,
  deny,
  type Middleware,
  type ToolContext,
} from "../../../mod.ts";
import { anySignal, cancellationOf, withGracePeriod, withoutToolQuestion } from "../../../src/core/kit.ts";

// `PreToolUse`: asked once about each call on its way in, and again if the input changes afterwards.

/** The answer of the hooks about a call. Plain JSON: it is saved with a question, so that no hook is asked again on resume. */
interface Judgement {
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

type CallContext = ToolContext | ApprovalContext;

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

/** Asks PreToolUse about calls, and remembers the answers. */
export type Judge = ReturnType<typeof judgeOf>;

/** Creates the judge of one middleware. */
export function judgeOf(hooks: Hooks) {
  const { dialect } = hooks;
  const decisions = new CallDecisions<Judgement>(`${hooks.name}.judgements`, fingerprintOf(hooks));

  async function ask(ctx: CallContext, count: number): Promise<Judgement> {
    const { call, name, input } = ctx;
    const answers = await hooks.ask("PreToolUse", ctx, () => callFields(ctx));
    const end = hooks.endOf("PreToolUse", ctx, answers);
    if (end) throw end;
    const words = count === 1 ? dialect.decisions : dialect.decisions.filter((each) => each !== "defer");
    const { decision, reason } = decisionOf(answers, words) ?? {};
    if (decision === "defer") throw ctx.run.pause(reason ?? `Run ${name}?`);
    const updated = decision === "deny" ? undefined : lastOf(answers, dialect, ({ specific }) => specific.updatedInput);
    const context = [...decisions.of(call)?.context ?? [], ...contextOf(answers)];
    const runs = updated === undefined ? input : await inputThatRuns({ tool: ctx.tool, input: updated });
    return { name, given: input, input: runs, ...(updated !== undefined && { updated }), decision, reason, context };
  }

  return {
    /** Asks about a call that comes in, with the input that would run. `count` is the number of calls in the response. */
    async enter(ctx: ToolContext, count: number): Promise<Judgement> {
      const { name, input } = ctx;
      if (!hooks.has("PreToolUse")) return { name, given: input, input, context: [] };
      return await decisions.enter(
        ctx,
        () => ask(ctx, count),
        (before) => before.name === name && isSameJson(before.given, input),
      );
    },
    /** Asks again if the call is about to run with another name or input. */
    async approve(ctx: ApprovalContext): Promise<Judgement> {
      const before = decisions.of(ctx.call);
      if (before && before.name === ctx.name && isSameJson(before.input, ctx.input)) return before;
      const asked = await ask(ctx, 1);
      decisions.set(ctx.call, asked);
      return asked;
    },
    /** Returns the last answer about a call. */
    of: (call: Call): Judgement | undefined => decisions.of(call),
    /** Remembers that a hook denied a call later. */
    denied(call: Call): void {
      const { name = "", given: askedInput, input, context = [] } = decisions.of(call) ?? {};
      decisions.set(call, { name, given: askedInput, input, context, decision: "deny" });
    },
    /** Forgets a call that has come out. */
    leave: (ctx: ToolContext): void => decisions.leave(ctx),
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

// `PermissionRequest`: hooks, and `canUseTool`, answer in place of a person. The first answer counts.

/** Answers in place of a person. Returns null or undefined if it does not decide. */
export type CanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  options: {
    signal: AbortSignal;
    suggestions: PermissionSuggestion[];
    toolUseID: string;
    requestId: string;
    agentID?: string;
  },
) => Promise<PermissionAnswer | null | undefined>;

/** Creates the function that asks the hooks and `canUseTool`. */
function permissionRequest(
  hooks: Hooks,
  canUseTool: CanUseTool | undefined,
): (ctx: ApprovalContext) => Promise<Permission | undefined> {
  /** The inputs that an answer set: hooks that set an input are not asked about it again. */
  const updated = new WeakMap<Call, unknown>();

  async function askHooks(ctx: ApprovalContext, signal: AbortSignal): Promise<Permission | undefined> {
    const fields = () => {
      const { tool_use_id: _, ...rest } = callFields(ctx);
      return { ...rest, permission_suggestions: suggestionsFor(ctx) };
    };
    const answers = await hooks.ask("PermissionRequest", ctx, fields, { call: ctx.call.id, signal });
    const blocked = blockOf(answers);
    return blocked === undefined ? merged(answers) : { behavior: "deny", message: blocked };
  }

  function merged(answers: Answers): Permission | undefined {
    const permissions = answers.flatMap(({ specific: { permission } }) => permission?.behavior ? [permission] : []);
    const isStrict = hooks.dialect.permission === "strictest";
    return (isStrict ? permissions.findLast(({ behavior }) => behavior === "deny") : undefined) ?? permissions.at(-1);
  }

  async function askFunction(ctx: ApprovalContext, signal: AbortSignal): Promise<Permission | undefined> {
    if (!canUseTool) return undefined;
    const { name, run, call } = ctx;
    const input = structuredClone(ctx.input) as Record<string, unknown>; // the input of every tool is an object
    const agent = run.parent && { agentID: run.id };
    const options = { signal, suggestions: suggestionsFor(ctx), toolUseID: call.id, requestId: call.id, ...agent };
    const ask = async () => await canUseTool(name, input, options);
    return readPermission(await withGracePeriod(ask(), cancellationOf(signal), 0, () => {}), (member) => {
      const message = `canUseTool returned ${member} in the form of another system.`;
      warnFailed(ctx, { middleware: hooks.name, point: "approval", message });
    });
  }

  async function firstAnswer(ctx: ApprovalContext): Promise<Permission | undefined> {
    const over = new AbortController();
    try {
      const signal = anySignal([ctx.signal, over.signal]);
      return await first([askHooks(ctx, signal), askFunction(ctx, signal)], (error) => ctx.run.report(error));
    } finally {
      over.abort();
      ctx.signal.throwIfAborted();
    }
  }

  return async (ctx) => {
    if (updated.has(ctx.call) && isSameJson(updated.get(ctx.call), ctx.input)) return { behavior: "allow" };
    const answer = await firstAnswer(ctx);
    if (answer?.behavior === "allow" && answer.updatedInput) updated.set(ctx.call, answer.updatedInput);
    return answer;
  };
}

/** Resolves with the first value; with undefined if there is none. A failure before that goes to `report`. */
function first<T>(asked: readonly Promise<T | undefined>[], report: (error: unknown) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    let waiting = asked.length;
    let isSettled = false;
    const settle = (answer: T | undefined) => {
      waiting--;
      if (answer === undefined && waiting > 0) return;
      isSettled = true;
      resolve(answer);
    };
    for (const each of asked) {
      each.then(settle, (error) => {
        if (!isSettled) report(error);
        settle(undefined);
      });
    }
  });
}

function suggestionsFor({ name }: ApprovalContext): PermissionSuggestion[] {
  return [{ type: "addRules", rules: [{ toolName: name }], behavior: "allow", destination: "session" }];
}

// The hook at `approval`: joins the decision of PreToolUse, the rules, and the answer in place of a person.

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
  const question = ask(`A rule that a hook has made asks: run ${name}?`, { key });
  return question.type === "ask" && others.type === "ask"
    ? { ...others, ...question, questions: [...question.questions, ...others.questions] }
    : question;
}

/** Whether an inner guard changes the input: then every guard is asked about the new input. */
function editsInput(inner: Approval, { input, unparsed }: ApprovalContext): boolean {
  return inner.type === "allow" && inner.input !== undefined && !isSameJson(inner.input, input) &&
    !isSameJson(inner.input, unparsed);
}
