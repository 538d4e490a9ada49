/**
 * Hooks that are asked one after another, each about what those before it have made of it.
 *
 * @module
 */
import type * as z from "zod";
import type { End, Point, Scope } from "../../../mod.ts";
import { describeIssues } from "../../../src/core/kit.ts";
import type { Mode, Stage } from "./config.ts";
import type { Mounted } from "./mounted.ts";
import type { Observers } from "./observers.ts";
import { approveToolReply, type Decision } from "./reply.ts";
import { inTime } from "./wire.ts";

/** Where hooks are asked. */
export interface Link<P extends object, R extends Decision> {
  /** What they are asked about. */
  readonly stage: Stage;
  /** Those that are there for it. */
  readonly mode: Mode;
  /** What an answer has to look like. */
  readonly reply: z.ZodType<R>;
  /** What the next hook is asked about, after this answer; `complain` is told of what of it cannot be. */
  readonly change: (params: P, reply: R, complain: (why: string) => void) => P;
  /** What ends the chain here, beside what ends the run. Default: nothing. */
  readonly ends?: readonly string[];
}

/** What hooks that were asked came to. */
export interface Linked<P, R> {
  /** What they have made of it. */
  readonly params: P;
  /** The answer that ended the chain, where one did, and the hook that gave it. */
  readonly end?: R & { readonly by: string };
}

/** Told of hooks that fail. */
export type Warn = (ctx: Scope, about: Failed) => void;

/** A hook that failed. */
export interface Failed {
  /** Its name. */
  readonly hook: string;
  /** What became of it. */
  readonly why: string;
  /** Where it was asked. */
  readonly point: Point;
  /** What was thrown. */
  readonly error?: unknown;
}

/** How hooks are asked. */
export interface ChainOptions {
  /** The most milliseconds that one may take. */
  readonly timeouts: { readonly interceptor: number; readonly approval: number };
  /** Who hears of a run that a hook has ended. */
  readonly observers: Observers;
  /** Told of hooks that fail. */
  readonly warn: Warn;
}

/** Asks hooks. */
export interface Chain {
  /** Whether there are any for something. */
  has(mode: Mode): boolean;
  /** Asks all of them; one that fails is passed over. Throws what ends the run, where one says so. */
  ask<P extends object, R extends Decision>(
    ctx: Scope,
    link: Link<P, R>,
    params: P,
    iteration: number,
  ): Promise<Linked<P, R>>;
  /** Why a call may not be made: the first that denies says it, and one that fails denies. Nothing where all approve. */
  approve(ctx: Scope, params: object): Promise<string | undefined>;
}

/** What asking one hook came to: what it said, or how it failed. */
type Asked<R> = { readonly said: R } | { readonly failed: string; readonly error?: unknown };

const tooLong = "took too long";

/** Makes a chain of hooks. */
export function chainOf(hooks: readonly Mounted[], { timeouts, observers, warn }: ChainOptions): Chain {
  /** Asks one hook. Throws where the run was stopped. */
  async function ask<R>(
    hook: Mounted,
    { signal }: Scope,
    { stage, reply, ms }: { readonly stage: Stage; readonly reply: z.ZodType<R>; readonly ms: number },
    params: object,
  ): Promise<Asked<R>> {
    let answer: unknown;
    try {
      answer = await inTime(ms, signal, (signal) => hook.ask(stage, params, signal));
    } catch (error) {
      signal.throwIfAborted();
      const late = error instanceof DOMException && error.name === "TimeoutError";
      return { failed: late ? tooLong : "failed", error };
    }
    const read = reply.safeParse(answer);
    return read.success ? { said: read.data } : { failed: `gave no answer (${describeIssues(read.error.issues)})` };
  }

  /** What ends the run. */
  function ended(ctx: Scope, stage: Stage, iteration: number, { action, reason }: Decision): End {
    const why = `hook aborted turn during ${stage}: ${reason || "hook requested turn abort"}`;
    if (action === "hard_abort") return ctx.run.end(why, { as: "cancelled", rollback: true });
    observers.tell("error", ctx, iteration, () => ({ Stage: `hook.${stage}`, Message: why }));
    return ctx.run.end(why, { as: "failed" });
  }

  return {
    has: (mode) => hooks.some(({ modes }) => modes.has(mode)),
    async ask(ctx, { stage, mode, reply, change, ends = [] }, given, iteration) {
      const point = mode === "llm" ? "model" : "tool";
      let params = given;
      for (const hook of hooks) {
        if (!hook.modes.has(mode)) continue;
        const asked = await ask(hook, ctx, { stage, reply, ms: timeouts.interceptor }, params);
        if ("failed" in asked) {
          const why = `${asked.failed} at ${stage}, and was passed over`;
          warn(ctx, { hook: hook.name, point, why, error: asked.error });
          continue;
        }
        const { said } = asked;
        const complain = (why: string) => warn(ctx, { hook: hook.name, point, why });
        if (["", "continue", "modify"].includes(said.action)) params = change(params, said, complain);
        else if (["abort_turn", "hard_abort"].includes(said.action)) throw ended(ctx, stage, iteration, said);
        else if (ends.includes(said.action)) return { params, end: { ...said, by: hook.name } };
        else complain(`wants what cannot be done at ${stage}: ${JSON.stringify(said.action)}`);
      }
      return { params };
    },
    async approve(ctx, params) {
      for (const hook of hooks) {
        if (!hook.modes.has("approve")) continue;
        const stage = "approve_tool";
        const asked = await ask(hook, ctx, { stage, reply: approveToolReply, ms: timeouts.approval }, params);
        if ("failed" in asked) {
          const why = `${asked.failed} at ${stage}, and so denied a call`;
          warn(ctx, { hook: hook.name, point: "approval", why, error: asked.error });
          return `tool approval hook "${hook.name}" ${asked.failed === tooLong ? "timed out" : "failed"}`;
        }
        if (!asked.said.approved) return asked.said.reason;
      }
      return undefined;
    },
  };
}
