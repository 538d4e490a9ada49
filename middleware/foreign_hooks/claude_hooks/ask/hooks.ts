/**
 * The hooks of one middleware: runs them, reports their messages and failures, and ends runs for them.
 *
 * @module
 */
import type { End, Run, Scope } from "../../../../mod.ts";
import { isLate } from "../../kit/deadline.ts";
import { joinLines } from "../../kit/fields.ts";
import { outermostRun, transcriptFile, workingDirectory } from "../../kit/run.ts";
import { warnFailed } from "../../kit/warn.ts";
import type { Definition, Definitions } from "../config/config.ts";
import type { Dialect } from "../config/dialect.ts";
import { events, isGuard, matchedIn } from "../config/events.ts";
import type { CommonInput, EventFields, HookEvent, HookInput } from "../config/input.ts";
import { type Answer, type Answers, contextOf } from "./answers.ts";
import { type Background, backgroundOf, type Work } from "./background.ts";
import { dispatch, type Outcome } from "./dispatch.ts";
import { type Memory, memoryOf } from "./memory.ts";
import { readOutput } from "./read.ts";

/** Options of asking the hooks of an event. */
export interface AskOptions {
  /** The id of the call, if the input does not contain it. */
  readonly call?: string;
  /** Default: the signal of the context. */
  readonly signal?: AbortSignal;
  /** An upper bound of every timeout, in milliseconds. */
  readonly most?: number;
}

/** The hooks of one middleware. */
export interface Hooks {
  /** The name of the middleware. */
  readonly name: string;
  readonly dialect: Dialect;
  /** The root of the agent's files. */
  readonly cwd: string;
  readonly definitions: Definitions;
  readonly memory: Memory;
  readonly background: Background;
  /** Whether a hook is for one of the events. */
  readonly has: (...events: readonly HookEvent[]) => boolean;
  /** Whether a hook of one of the events matches `value`. */
  readonly hasFor: (value: string, ...events: readonly HookEvent[]) => boolean;
  /** Runs the hooks of an event. Throws if the run was stopped meanwhile. */
  readonly ask: <E extends HookEvent>(
    event: E,
    ctx: Scope,
    fields: () => EventFields[E],
    options?: AskOptions,
  ) => Promise<Answers>;
  /** Runs the hooks of an event in the background. */
  readonly notify: <E extends HookEvent>(
    event: E,
    ctx: Scope,
    fields: () => EventFields[E],
    onAnswers?: (answers: Answers) => void,
  ) => void;
  /** Adds texts to the next model request. */
  readonly addLater: (ctx: Scope, texts: readonly string[]) => void;
  /** Ends the session if an answer contains `continue: false` and the event allows it: the run, and the runs that it works for. */
  readonly endOf: (event: HookEvent, ctx: Scope, answers: Answers) => End | undefined;
  /** Ends the run. The person sees the reason. */
  readonly end: (ctx: Scope, reason: string, reach?: EndReach) => End;
}

/** The runs that a hook ends. */
interface EndReach {
  /** Ends also the runs that the run works for. Default: false. */
  readonly tree?: boolean;
}

/** The text for the model in the results of calls that the end of the run cuts short. */
export const endReason = "a hook stopped the run";

/** Creates the hooks of one middleware. */
export function hooksOf(
  definitions: Definitions,
  { name, dialect, cwd }: Pick<Hooks, "name" | "dialect" | "cwd">,
): Hooks {
  const memory = memoryOf(name);
  const background = backgroundOf();
  const { voidsInvalid } = dialect;

  function commonInput(ctx: Scope): CommonInput {
    const { run } = ctx;
    const top = outermostRun(run);
    const model = memory.model.get(ctx);
    return {
      session_id: top.session,
      transcript_path: transcriptFile(top) ?? "",
      cwd: workingDirectory(run, cwd),
      prompt_id: top.id,
      ...(model && { model }),
      permission_mode: memory.permissions.get(ctx).mode,
      ...(run.parent && { agent_id: run.id, agent_type: run.agent }),
    };
  }

  async function ask<E extends HookEvent>(
    event: E,
    ctx: Scope,
    fields: () => EventFields[E],
    { call, signal = ctx.signal, most }: AskOptions = {},
  ): Promise<Answers> {
    const all = definitions.get(event) ?? [];
    if (all.length === 0) return [];
    const own = fields();
    const value = matchedIn(event, own);
    const matched = distinct(all.filter(({ matches }) => matches(value)));
    if (matched.length === 0) return [];
    signal.throwIfAborted();
    const input = { ...commonInput(ctx), hook_event_name: event, ...own } as HookInput; // the fields belong to the event
    const toolUseId = "tool_use_id" in input ? input.tool_use_id : call;
    const outcomes = await dispatch(matched, input, { toolUseId, signal, most, dialect });
    signal.throwIfAborted();
    return outcomes.flatMap((outcome) => {
      if (outcome.work) continueLater(outcome.work, event, ctx);
      return answersOf(outcome, event, ctx);
    });
  }

  /** Reads the answer of a hook that continues in the background when it arrives. */
  function continueLater({ done, ...work }: Work, event: HookEvent, ctx: Scope): void {
    const outcome = done.then(
      (returned): Outcome => ({ ...readOutput(returned, event, voidsInvalid), given: 0 }),
      (error): Outcome => ({ failed: { error }, invalid: [], given: 0 }),
    );
    const answered = outcome.then((outcome) => {
      const { systemMessage, ...rest } = outcome.output ?? { specific: {} };
      const isForModel = dialect.lateMessages === "model";
      const answers = answersOf(isForModel && outcome.output ? { ...outcome, output: rest } : outcome, event, ctx);
      addLater(ctx, [...isForModel && systemMessage ? [systemMessage] : [], ...contextOf(answers)]);
    });
    background.add(ctx, { done: answered, ...work });
  }

  function addLater(ctx: Scope, texts: readonly string[]): void {
    if (texts.length > 0) memory.later(ctx).update(ctx, (before) => [...before, ...texts]);
  }

  /** Returns the answer of one hook. Emits its message for the person, and a warning about its failure. */
  function answersOf(outcome: Outcome, event: HookEvent, ctx: Scope): Answer[] {
    const { output, invalid, unknown, failed, given } = outcome;
    const { systemMessage, suppressOutput } = output ?? {};
    const isHidden = (suppressOutput && dialect.suppresses) || dialect.discardsMessages.includes(event);
    if (systemMessage && !isHidden) ctx.emit({ type: "notice", text: systemMessage });
    const warn = (message: string, error?: unknown) =>
      warnFailed(ctx, { middleware: name, point: events[event].point, message, error });
    if (unknown !== undefined) warn(`A hook of ${event} returned ${unknown}.`);
    const problem = failed ? "failed" : invalid.length > 0 ? `returned an invalid output: ${invalid.join(", ")}` : "";
    if (problem !== "") {
      warn(`A hook of ${event} ${problem}.`, failed?.error);
      const reason = blockedBy(outcome, event);
      if (reason) return [{ ...output, decision: "deny", reason, specific: output?.specific ?? {}, given }];
    }
    return output ? [{ ...output, given }] : [];
  }

  function end(ctx: Scope, reason: string, { tree = false }: EndReach = {}): End {
    for (let run: Run | undefined = ctx.run; run; run = tree ? run.parent : undefined) {
      memory.stopped.set({ ...ctx, run }, reason);
    }
    ctx.emit({ type: "notice", text: reason });
    return ctx.run.end(endReason, { as: "done", tree });
  }

  return {
    name,
    dialect,
    cwd,
    definitions,
    memory,
    background,
    has: (...events) => events.some((event) => (definitions.get(event) ?? []).length > 0),
    hasFor: (value, ...events) => events.some((event) => definitions.get(event)?.some(({ matches }) => matches(value))),
    ask,
    notify(event, ctx, fields, onAnswers = () => {}) {
      background.add(ctx, { done: ask(event, ctx, fields).then(onAnswers) });
    },
    addLater,
    endOf(event, ctx, answers) {
      const stopping = answers.filter((answer) => answer.continue === false);
      if (stopping.length === 0 || !dialect.ending.includes(event)) return undefined;
      return end(ctx, joinLines(stopping.map(({ stopReason }) => stopReason)) ?? "Stopped by a hook.", { tree: true });
    },
    end,
  };
}

/** Keeps one of several equal hooks. */
function distinct(definitions: readonly Definition[]): readonly Definition[] {
  return definitions.filter(({ same }, index) =>
    !same || definitions.findIndex((each) => each.same === same) === index
  );
}

/** Returns why the failure of a hook blocks; undefined if it does not. */
function blockedBy({ definition, failed }: Outcome, event: HookEvent): string | undefined {
  if (definition?.blocksLate && isLate(failed?.error)) return "A hook did not answer in time.";
  return definition?.blocks && isGuard(event) ? "A hook failed." : undefined;
}
