/**
 * The hooks of one middleware: who asks them, what the person and the operator hear of it, and how they end a run.
 *
 * @module
 */
import type { End, Point, Scope } from "../../../mod.ts";
import { type Answer, type Answers, contextOf, lines, none } from "./answers.ts";
import { type Background, backgroundOf, type Work } from "./background.ts";
import { baseOf } from "./base.ts";
import type { Definition, Definitions } from "./config.ts";
import type { Dialect } from "./dialect.ts";
import { dispatch, guarded, type Outcome } from "./dispatch.ts";
import type { HookEvent, HookInput, Told } from "./input.ts";
import { type Memory, memoryOf } from "./memory.ts";
import { read } from "./output.ts";

/** What hooks are asked about. */
export interface About<E extends HookEvent> {
  /** Where it happens. */
  readonly point: Point;
  /** What matchers look at. Default: nothing, and every hook is asked. */
  readonly of?: string | undefined;
  /** The call's id. Default: there is no call. */
  readonly call?: string;
  /** What hooks are told; called where there are any. */
  readonly told: () => Told<E>;
  /** Aborts when nobody waits any more. Default: with the context. */
  readonly signal?: AbortSignal;
  /** The most milliseconds that one hook may take. */
  readonly most?: number;
}

/** The hooks of one middleware. */
export interface Hooks {
  /** The middleware's name. */
  readonly name: string;
  /** The system they were written for. */
  readonly dialect: Dialect;
  /** Where the root of the agent's files is. */
  readonly cwd: string;
  /** What is kept. */
  readonly memory: Memory;
  /** What goes on beside the run. */
  readonly background: Background;
  /** Whether there are any for one of the events. */
  readonly has: (...events: readonly HookEvent[]) => boolean;
  /** Whether any of them are for what an event is about. */
  readonly hear: (of: string, ...events: readonly HookEvent[]) => boolean;
  /** Asks those of an event. Throws where the run was stopped meanwhile. */
  readonly ask: <E extends HookEvent>(event: E, ctx: Scope, about: About<E>) => Promise<Answers>;
  /** The same, for what nobody waits for: `hear` is given the answers. */
  readonly notify: <E extends HookEvent>(
    event: E,
    ctx: Scope,
    about: About<E>,
    hear?: (answers: Answers) => void,
  ) => void;
  /** Tells the model with its next request. */
  readonly tellLater: (ctx: Scope, said: readonly string[]) => void;
  /** What ends the run, where hooks say so at an event that lets them. */
  readonly endOf: (event: HookEvent, ctx: Scope, answers: Answers) => End | undefined;
  /** Ends the run for a reason that is the person's to know. */
  readonly end: (ctx: Scope, reason: string) => End;
}

/** Whose hooks they are. */
export type HooksOptions = Pick<Hooks, "name" | "dialect" | "cwd">;

/** What the model reads in results of calls that such an end has cut. */
export const ended = "a hook stopped the run";

/** Hooks from their definitions. */
export function hooksOf(definitions: Definitions, { name, dialect, cwd }: HooksOptions): Hooks {
  const memory = memoryOf(name);
  const background = backgroundOf();

  /** Those of an event that are for what it is about; of several that are the same, one. */
  function matched(event: HookEvent, of: string | undefined): readonly Definition[] {
    const all = definitions.get(event) ?? [];
    const some = all.filter(({ matches }) => matches(of));
    return some.filter(({ same }, index) => !same || some.findIndex((each) => each.same === same) === index);
  }

  async function ask<E extends HookEvent>(event: E, ctx: Scope, about: About<E>): Promise<Answers> {
    const asked = matched(event, about.of);
    if (asked.length === 0) return none;
    const { call: toolUseId, signal = ctx.signal, most } = about;
    signal.throwIfAborted();
    const base = baseOf(ctx, memory, cwd);
    const input = { ...base, hook_event_name: event, ...about.told() } as HookInput; // what is told belongs to the event
    const outcomes = await dispatch(asked, input, { toolUseId, signal, most });
    signal.throwIfAborted();
    return outcomes.flatMap((outcome) => {
      if (outcome.going) goOn(outcome.going, event, ctx, about.point);
      return heard(outcome, event, ctx, about.point);
    });
  }

  /** Waits beside the run for what a hook comes to: then it can speak to the person, and to the model with its next request. */
  function goOn({ done, stop }: Work, event: HookEvent, ctx: Scope, point: Point): void {
    const hear = async () => {
      const outcome: Outcome = await done.then(
        (returned) => ({ ...read(returned, event), blocks: false, given: 0 }),
        (error) => ({ failed: { error }, wrong: [], blocks: false, given: 0 }),
      );
      tellLater(ctx, contextOf(heard(outcome, event, ctx, point)));
    };
    background.add(ctx, { done: hear(), ...(stop && { stop }) });
  }

  function tellLater(ctx: Scope, said: readonly string[]): void {
    if (said.length > 0) memory.later(ctx).update(ctx, (before) => [...before, ...said]);
  }

  /** The answer of one hook, after what it says to the person was told, and to the operator what is wrong with it. */
  function heard(
    { output, wrong, failed, blocks, given }: Outcome,
    event: HookEvent,
    ctx: Scope,
    point: Point,
  ): Answer[] {
    const { systemMessage, suppressOutput } = output ?? {};
    if (systemMessage && !(suppressOutput && dialect.suppressesMessages)) {
      ctx.emit({ type: "notice", text: systemMessage });
    }
    const why = failed ? "failed" : wrong.length > 0 ? `gave what is left out: ${wrong.join(", ")}` : undefined;
    if (why !== undefined) {
      const error = failed && ctx.run.report(failed.error);
      const message = `A hook of ${event} ${why}.`;
      ctx.emit({ type: "warning", code: "hook.failed", message, middleware: name, point, ...(error && { error }) });
    }
    if (blocks && why !== undefined && guarded.includes(event)) {
      return [{ ...output, decision: "deny", reason: "A hook failed.", specific: output?.specific ?? {}, given }];
    }
    return output ? [{ ...output, given }] : [];
  }

  function end(ctx: Scope, reason: string): End {
    memory.stopped.set(ctx, reason);
    ctx.emit({ type: "notice", text: reason });
    return ctx.run.end(ended);
  }

  return {
    name,
    dialect,
    cwd,
    memory,
    background,
    has: (...events) => events.some((event) => (definitions.get(event) ?? []).length > 0),
    hear: (of, ...events) => events.some((event) => definitions.get(event)?.some(({ matches }) => matches(of))),
    ask,
    notify(event, ctx, about, hear = () => {}) {
      background.add(ctx, { done: ask(event, ctx, about).then(hear) });
    },
    tellLater,
    endOf(event, ctx, answers) {
      const stopping = answers.filter((answer) => answer.continue === false);
      if (stopping.length === 0 || !dialect.ending.includes(event)) return undefined;
      return end(ctx, lines(stopping.map(({ stopReason }) => stopReason)) ?? "Stopped by a hook.");
    },
    end,
  };
}
