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
import { unknownMembers } from "../kit/answers.ts";
import { type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import type { End, Model, ModelRequest, Point, Run, Scope } from "../../../mod.ts";
import { describeIssues, isLate, withinTime } from "../../../src/core/kit.ts";

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
interface Linked<P, R> {
  /** The params with all changes. */
  readonly params: P;
  /** The reply that ended the chain, and the name of its hook. */
  readonly end?: R & { readonly by: string };
}

/** Emits a warning about a hook. */
export type Warn = (ctx: Scope, failure: Failure) => void;

/** A failure of a hook. */
interface Failure {
  readonly hook: string;
  readonly problem: string;
  readonly point: Point;
  readonly error?: unknown;
}

/** Options of asking hooks. */
interface ChainOptions {
  /** Milliseconds for one hook. */
  readonly timeouts: { readonly interceptor: number; readonly approval: number };
  readonly observers: Observers;
  readonly warn: Warn;
}

/** The reply of one hook, its failure, or its decision about a call in the form of another system. */
type Asked<R> = { readonly reply: R } | { readonly failed: string } | { readonly foreign: ForeignDecision };

const tooLong = "took too long";

/** Options of asking one hook. */
interface Question<R> {
  readonly stage: Stage;
  readonly reply: z.core.$ZodType<R>;
  readonly point: Point;
  /** Milliseconds. */
  readonly ms: number;
  /** The effect of a failure, for the warning. */
  readonly onFailure: "is skipped" | "denies the call";
}

/** Creates the chain. */
export function chainOf(hooks: readonly Mounted[], { timeouts, observers, warn }: ChainOptions) {
  /** Asks one hook. Warns of its failure, of a decision in the form of another system, and of unknown members. Throws if the run was stopped. */
  async function askOne<R extends object>(
    { name: hook, ask }: Mounted,
    ctx: Scope,
    { stage, reply, point, ms, onFailure }: Question<R>,
    params: object,
  ): Promise<Asked<R>> {
    const report = (problem: string, error?: unknown) => warn(ctx, { hook, point, problem, error });
    const withoutReply = (problem: string, error?: unknown): Asked<R> => {
      report(`${problem} at ${stage} and ${onFailure}`, error);
      return { failed: problem };
    };
    let answer: unknown;
    try {
      answer = await withinTime((signal) => ask(stage, params, signal), { ms, signal: ctx.signal });
    } catch (error) {
      ctx.signal.throwIfAborted();
      return withoutReply(isLate(error) ? tooLong : "failed", error);
    }
    const { success, data, error } = z.safeParse(reply, answer);
    const known = (member: string) => success && isRead(stage, member, data);
    const foreign = stage === "before_tool" || stage === "approve_tool" ? foreignDecision(answer, known) : undefined;
    if (foreign) {
      report(foreignProblem(stage, foreign));
      return { foreign };
    }
    if (!success) return withoutReply(`returned an invalid reply (${describeIssues(error.issues)})`);
    const unknown = unknownMembers(answer, members[stage], (name) => name.toLowerCase());
    if (unknown !== undefined) report(`returned ${unknown}`);
    return { reply: data };
  }

  function endOf(ctx: Scope, stage: Stage, turn: number, { action, reason }: Decision): End {
    const why = `hook aborted turn during ${stage}: ${reason || "hook requested turn abort"}`;
    if (action === "hard_abort") return ctx.run.end(why, { as: "cancelled", rollback: true, tree: true });
    observers.notify("error", ctx, turn, () => ({ Stage: `hook.${stage}`, Message: why }));
    return ctx.run.end(why, { as: "failed" });
  }

  /** Returns the hooks that have a mode. */
  const inMode = (mode: Mode) => hooks.filter(({ modes }) => modes.has(mode));

  return {
    /** Whether a hook has the mode. */
    has: (mode: Mode): boolean => inMode(mode).length > 0,
    /** Asks all hooks of a stage. A hook that fails is skipped. Throws the end of the run if a hook ends it. */
    async ask<P extends object, R extends Decision>(
      ctx: Scope,
      { stage, mode, reply, change, ends = [] }: Link<P, R>,
      stageParams: P,
      turn: number,
    ): Promise<Linked<P, R>> {
      const point = mode === "llm" ? "model" : "tool";
      const question = { stage, reply, point, ms: timeouts.interceptor, onFailure: "is skipped" } as const;
      let params = stageParams;
      for (const hook of inMode(mode)) {
        const by = hook.name;
        const onProblem = (problem: string) => warn(ctx, { hook: by, point, problem });
        const asked = await askOne(hook, ctx, question, params);
        if ("failed" in asked) continue;
        if ("foreign" in asked) {
          const { reason = "" } = asked.foreign;
          return { params, end: { ...z.parse(reply, {}), action: "deny_tool", reason, by } };
        }
        const { action } = asked.reply;
        if (["", "continue", "modify"].includes(action)) params = change(params, asked.reply, onProblem);
        else if (["abort_turn", "hard_abort"].includes(action)) throw endOf(ctx, stage, turn, asked.reply);
        else if (ends.includes(action)) return { params, end: { ...asked.reply, by } };
        else onProblem(`returned an action that ${stage} does not support: ${JSON.stringify(action)}`);
      }
      return { params };
    },
    /** Returns why a call is denied: by the first hook that denies or fails. Undefined if all approve. */
    async approve(ctx: Scope, params: object): Promise<string | undefined> {
      const ms = timeouts.approval;
      const question = { stage: "approve_tool", reply: approveToolReply, point: "approval", ms } as const;
      for (const hook of inMode("approve")) {
        const asked = await askOne(hook, ctx, { ...question, onFailure: "denies the call" }, params);
        if ("foreign" in asked) return asked.foreign.reason ?? "";
        if ("failed" in asked) {
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
interface Notes {
  prompt: string;
  /** The request of a turn that hooks have changed. Another attempt of the same request repeats the change. */
  asked?: { readonly turn: number; readonly messages: string; readonly change: Partial<ModelRequest> | undefined };
  /** The time of the work of calls, in milliseconds, by call id. */
  readonly took: Map<string, number>;
  /** The names of the tools that models have received. */
  readonly discovered: Set<string>;
}

/** The hooks of one middleware. */
export interface Hooks extends WireForm {
  readonly chain: ReturnType<typeof chainOf>;
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
    if (!notes) all.set(run, notes = { prompt: "", took: new Map(), discovered: new Set() });
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
