/**
 * `PermissionRequest`: hooks answer in a person's place. Where there is somebody else to ask, whoever is first counts.
 *
 * @module
 */
import type { ApprovalContext, Call } from "../../../mod.ts";
import { cancellationOf, withGracePeriod } from "../../../src/core/kit.ts";
import { type Answers, blockOf } from "./answers.ts";
import { toldOf } from "./call.ts";
import type { Hooks } from "./hooks.ts";
import type { PermissionSuggestion } from "./input.ts";
import { type Output, type PermissionAnswer, readPermission } from "./output.ts";
import { same } from "./pre_tool_use.ts";

/** Asks somebody who may answer in a person's place; nothing is no answer. */
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

type Permission = NonNullable<Output["specific"]["permission"]>;
type Request = (ctx: ApprovalContext) => Promise<Permission | undefined>;

/** Makes who asks hooks, and `canUseTool` beside them. */
export function requesting(hooks: Hooks, canUseTool: CanUseTool | undefined): Request {
  async function askHooks(ctx: ApprovalContext, signal: AbortSignal): Promise<Permission | undefined> {
    const answers = await hooks.ask("PermissionRequest", ctx, {
      point: "approval",
      of: ctx.name,
      call: ctx.call.id,
      signal,
      told() {
        const { tool_use_id: _, ...told } = toldOf(ctx);
        return { ...told, permission_suggestions: suggestionsFor(ctx) };
      },
    });
    const blocked = blockOf(answers);
    return blocked === undefined ? merged(answers) : { behavior: "deny", message: blocked };
  }

  function merged(answers: Answers): Permission | undefined {
    const said = answers.flatMap(({ specific: { permission } }) => permission?.behavior ? [permission] : []);
    const strict = hooks.dialect.permission === "strictest";
    return (strict ? said.findLast(({ behavior }) => behavior === "deny") : undefined) ?? said.at(-1);
  }

  async function askOther(ctx: ApprovalContext, signal: AbortSignal): Promise<Permission | undefined> {
    if (!canUseTool) return undefined;
    const { name, input, run, call } = ctx;
    const suggestions = suggestionsFor(ctx);
    const agent = run.parent && { agentID: run.id };
    const options = { signal, suggestions, toolUseID: call.id, requestId: call.id, ...agent };
    const given = Promise.try(canUseTool, name, structuredClone(input) as Record<string, unknown>, options); // an object, as every tool takes
    return readPermission(await withGracePeriod(given, cancellationOf(signal), 0, () => {}));
  }

  /** The inputs that were allowed in place of others: whoever changed them is not asked about them. */
  const changed = new WeakMap<Call, unknown>();

  return async (ctx) => {
    if (changed.has(ctx.call) && same(changed.get(ctx.call), ctx.input)) return { behavior: "allow" };
    const answer = await race(ctx);
    if (answer?.behavior === "allow" && answer.updatedInput) changed.set(ctx.call, answer.updatedInput);
    return answer;
  };

  async function race(ctx: ApprovalContext): Promise<Permission | undefined> {
    const over = new AbortController();
    try {
      const signal = AbortSignal.any([ctx.signal, over.signal]);
      return await first([askHooks(ctx, signal), askOther(ctx, signal)], (error) => ctx.run.report(error));
    } finally {
      over.abort();
      ctx.signal.throwIfAborted();
    }
  }
}

/** The first answer that is one; nothing where there is none. Who fails has none, and `report` is told. */
function first<T>(asked: readonly Promise<T | undefined>[], report: (error: unknown) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    let waiting = asked.length;
    let settled = false;
    const hear = (answer: T | undefined) => {
      waiting--;
      if (answer === undefined && waiting > 0) return;
      settled = true;
      resolve(answer);
    };
    for (const each of asked) {
      each.then(hear, (error) => {
        if (!settled) report(error);
        hear(undefined);
      });
    }
  });
}

function suggestionsFor({ name }: ApprovalContext): PermissionSuggestion[] {
  return [{ type: "addRules", rules: [{ toolName: name }], behavior: "allow", destination: "session" }];
}
