/**
 * The chain of hooks: they run one after another, each with the changes of those before it.
 *
 * @module
 */
import * as z from "zod";
import type { Mode, Stage } from "./config.ts";
import type { Mounted, Observers } from "./mounted.ts";
import { approveToolReply, type Decision } from "./wire/conversation.ts";
import type { About, WireForm } from "./wire/input.ts";
import { callWithin, isLate } from "../kit/adapter.ts";
import { unknownMembers } from "../kit/answers.ts";
import { type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import type { End, Model, ModelRequest, Point, Run, Scope } from "../../../mod.ts";
import { describeIssues } from "../../../src/core/kit.ts";

/** One stage at which hooks are asked. */
export interface Link<P extends object, R extends Decision> {
  readonly stage: Stage;
  /** The mode of the hooks that are asked. */
  readonly mode: Mode;
  /** The schema of a reply. */
  readonly reply: z.core.$ZodType<R>;
  /** Applies a reply to the params. `onProblem` receives the parts that cannot be applied. */
  readonly change: (params: P, reply: R, onProblem: (problem: string) => void) => P;
  /** The actions that end the chain, besides those that end the run. Default: none. */
  readonly ends?: readonly string[];
}

/** The outcome of a chain. */
export interface Linked<P, R> {
  /** The params with all changes. */
  readonly params: P;
  /** The reply that ended the chain, and the name of its hook. */
  readonly end?: R & { readonly by: string };
}

/** Emits a warning about a hook. */
export type Warn = (ctx: Scope, failure: Failure) => void;

/** A failure of a hook. */
export interface Failure {
  readonly hook: string;
  readonly problem: string;
  readonly point: Point;
  readonly error?: unknown;
}

/** Options of asking hooks. */
export interface ChainOptions {
  /** Milliseconds for one hook. */
  readonly timeouts: { readonly interceptor: number; readonly approval: number };
  readonly observers: Observers;
  readonly warn: Warn;
}

/** Asks hooks. */
interface Chain {
  /** Whether a hook has the mode. */
  has(mode: Mode): boolean;
  /** Asks all hooks of a stage. A hook that fails is skipped. Throws the end of the run if a hook ends it. */
  ask<P extends object, R extends Decision>(
    ctx: Scope,
    link: Link<P, R>,
    params: P,
    turn: number,
  ): Promise<Linked<P, R>>;
  /** Returns why a call is denied: by the first hook that denies or fails. Undefined if all approve. */
  approve(ctx: Scope, params: object): Promise<string | undefined>;
}

/** The reply of one hook, or its failure; and a decision about a call that it has in the form of another system, and its unknown members. */
type Asked<R> = ({ readonly reply: R } | { readonly failed: string; readonly error?: unknown }) & {
  readonly foreign?: ForeignDecision | undefined;
  readonly unknown?: string | undefined;
};

const tooLong = "took too long";

/** Creates the chain. */
export function chainOf(hooks: readonly Mounted[], { timeouts, observers, warn }: ChainOptions): Chain {
  /** Asks one hook. Throws if the run was stopped. */
  async function ask<R extends object>(
    hook: Mounted,
    { signal }: Scope,
    { stage, reply, ms }: { readonly stage: Stage; readonly reply: z.core.$ZodType<R>; readonly ms: number },
    params: object,
  ): Promise<Asked<R>> {
    let answer: unknown;
    try {
      answer = await callWithin(ms, signal, (signal) => hook.ask(stage, params, signal));
    } catch (error) {
      signal.throwIfAborted();
      return { failed: isLate(error) ? tooLong : "failed", error };
    }
    const { success, data, error } = z.safeParse(reply, answer);
    const known = (member: string) => success && isRead(stage, member, data);
    const foreign = stage === "before_tool" || stage === "approve_tool" ? foreignDecision(answer, known) : undefined;
    const unknown = foreign ? undefined : unknownMembers(answer, members[stage], (name) => name.toLowerCase());
    if (success) return { reply: data, foreign, unknown };
    return { failed: `returned an invalid reply (${describeIssues(error.issues)})`, foreign };
  }

  function endOf(ctx: Scope, stage: Stage, turn: number, { action, reason }: Decision): End {
    const why = `hook aborted turn during ${stage}: ${reason || "hook requested turn abort"}`;
    if (action === "hard_abort") return ctx.run.end(why, { as: "cancelled", rollback: true, tree: true });
    observers.notify("error", ctx, turn, () => ({ Stage: `hook.${stage}`, Message: why }));
    return ctx.run.end(why, { as: "failed" });
  }

  return {
    has: (mode) => hooks.some(({ modes }) => modes.has(mode)),
    async ask(ctx, { stage, mode, reply, change, ends = [] }, given, turn) {
      const point = mode === "llm" ? "model" : "tool";
      let params = given;
      for (const hook of hooks.filter(({ modes }) => modes.has(mode))) {
        const onProblem = (problem: string, error?: unknown) => warn(ctx, { hook: hook.name, point, problem, error });
        const asked = await ask(hook, ctx, { stage, reply, ms: timeouts.interceptor }, params);
        if (asked.unknown !== undefined) onProblem(`returned ${asked.unknown}`);
        if (asked.foreign) {
          onProblem(foreignProblem(stage, asked.foreign));
          const { reason = "" } = asked.foreign;
          return { params, end: { ...z.parse(reply, {}), action: "deny_tool", reason, by: hook.name } };
        }
        if ("failed" in asked) {
          onProblem(`${asked.failed} at ${stage} and is skipped`, asked.error);
          continue;
        }
        const { action } = asked.reply;
        if (["", "continue", "modify"].includes(action)) params = change(params, asked.reply, onProblem);
        else if (["abort_turn", "hard_abort"].includes(action)) throw endOf(ctx, stage, turn, asked.reply);
        else if (ends.includes(action)) return { params, end: { ...asked.reply, by: hook.name } };
        else onProblem(`returned an action that ${stage} does not support: ${JSON.stringify(action)}`);
      }
      return { params };
    },
    async approve(ctx, params) {
      const stage = "approve_tool";
      for (const hook of hooks.filter(({ modes }) => modes.has("approve"))) {
        const asked = await ask(hook, ctx, { stage, reply: approveToolReply, ms: timeouts.approval }, params);
        const report = (problem: string) => warn(ctx, { hook: hook.name, point: "approval", problem });
        if (asked.unknown !== undefined) report(`returned ${asked.unknown}`);
        if (asked.foreign) {
          report(foreignProblem(stage, asked.foreign));
          return asked.foreign.reason ?? "";
        }
        if ("failed" in asked) {
          const problem = `${asked.failed} at ${stage} and denies the call`;
          warn(ctx, { hook: hook.name, point: "approval", problem, error: asked.error });
          return `tool approval hook "${hook.name}" ${asked.failed === tooLong ? "timed out" : "failed"}`;
        }
        if (!asked.reply.approved) return asked.reply.reason;
      }
      return undefined;
    },
  };
}

/** The members of replies. */
const members: Readonly<Record<Stage, readonly string[]>> = {
  before_llm: ["action", "reason", "request"],
  after_llm: ["action", "reason", "response"],
  before_tool: ["action", "reason", "call", "result"],
  after_tool: ["action", "reason", "result"],
  approve_tool: ["approved", "reason"],
};
const actions = ["", "continue", "modify", "respond", "deny_tool", "abort_turn", "hard_abort"];

/** Whether the meaning of a member of a valid reply is known. */
function isRead(stage: Stage, member: string, reply: object): boolean {
  const name = member.toLowerCase();
  if (stage === "approve_tool") return name === "approved";
  return name === "action" && "action" in reply && actions.some((action) => action === reply.action);
}

/** Describes a decision in the form of another system. There is no person whom a hook can ask: a question denies. */
function foreignProblem(stage: Stage, { type, member }: ForeignDecision): string {
  return `${
    type === "deny" ? "denies" : "asks"
  } at ${stage} in the form of another system (${member}) and denies the call`;
}

// The hooks of one middleware, and the data that its points share.

/** Data about a run while it lives. */
export interface Notes {
  prompt: string;
  /** The request of a turn that hooks have changed. Another attempt of the same request repeats the change. */
  asked?: { readonly turn: number; readonly messages: string; readonly change: Partial<ModelRequest> | undefined };
  /** The time of the work of calls, in milliseconds, by call id. */
  readonly took: Map<string, number>;
}

/** The hooks of one middleware. */
export interface Hooks extends WireForm {
  readonly chain: Chain;
  readonly observers: Observers;
  readonly warn: Warn;
  /** Returns the model of a name. */
  readonly models: (name: string) => Model | undefined;
  /** Whether approvers are asked about calls that a hook has answered. */
  readonly approveResponses: boolean;
  readonly notes: (run: Run) => Notes;
  /** Returns the fields of every request about something at `path`. */
  readonly about: (ctx: Scope, turn: number, path: string) => About;
}

/** Creates the notes of runs. */
export function notesOfRuns(): Hooks["notes"] {
  const all = new WeakMap<Run, Notes>();
  return (run) => {
    let notes = all.get(run);
    if (!notes) all.set(run, notes = { prompt: "", took: new Map() });
    return notes;
  };
}

/** Converts milliseconds to nanoseconds. */
export function nanoseconds(ms: number): number {
  return Math.round(ms * 1_000_000);
}

/** Returns the length of a text as Go counts it, in bytes. */
export function lengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
