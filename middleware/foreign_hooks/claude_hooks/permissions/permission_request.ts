/**
 * `PermissionRequest`: hooks, and `canUseTool`, answer in place of a person. The first answer counts.
 *
 * @module
 */
import type { ApprovalContext, Call } from "../../../../mod.ts";
import { anySignal, cancellationOf, withGracePeriod } from "../../../../src/core/kit.ts";
import { isSameJson } from "../../kit/call.ts";
import { warnFailed } from "../../kit/warn.ts";
import { type Answers, blockOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import { type Permission, readPermission } from "../ask/read.ts";
import type { PermissionSuggestion } from "../config/input.ts";
import type { PermissionAnswer } from "../config/output.ts";
import { callFields } from "./pre_tool_use.ts";

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
export function permissionRequest(
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
    const given = answers.flatMap(({ specific: { permission } }) => permission?.behavior ? [permission] : []);
    const isStrict = hooks.dialect.permission === "strictest";
    return (isStrict ? given.findLast(({ behavior }) => behavior === "deny") : undefined) ?? given.at(-1);
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
