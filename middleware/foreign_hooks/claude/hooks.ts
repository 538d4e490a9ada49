/**
 * The hooks of one middleware: runs them, reports their messages and failures, and ends runs for them.
 *
 * @module
 */
import type { Definition, Definitions } from "./config.ts";
import type { Dialect } from "./dialect.ts";
import {
  type CommonInput,
  type EffortLevel,
  type EventFields,
  events,
  type HookEvent,
  type HookInput,
  matchedIn,
} from "./events.ts";
import {
  type Answer,
  type Answers,
  backgroundOf,
  backgroundWork,
  contextOf,
  readAnswer,
  type ReadOutput,
  readOutput,
  stopOf,
  type Work,
} from "./outputs.ts";
import { noPermissions } from "./permissions.ts";
import { outermostRun, transcriptFile, warnFailed, workingDirectory } from "../kit/adapter.ts";
import { isGuard } from "../kit/settings.ts";
import { type End, type Run, type Scope, state } from "../../../mod.ts";
import { anySignal, isLate, isObject, lateAfter, startTimer, withinTime } from "../../../src/core/kit.ts";

// The state that the hooks of one middleware keep for a run or its session.

/** A call as PostToolBatch reports it. */
export type BatchCall = EventFields["PostToolBatch"]["tool_calls"][number];

/** The calls of one response. */
interface CallBatch {
  /** The ids of its calls, in the model's order. */
  readonly ids: readonly string[];
  /** The calls that have come out, by id. */
  readonly calls: Readonly<Record<string, BatchCall>>;
  /** Whether PostToolBatch was asked about it. */
  readonly asked: boolean;
}

/** A response, as SessionStart reports it when the session is opened again. */
interface LastResponse {
  readonly session: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The tokens of the request and the response. */
  readonly tokens: number;
  /** Whether a compaction has replaced the conversation since. */
  readonly replaced?: boolean;
}

/** Creates the state of the middleware `name`. */
function memoryOf(name: string) {
  const ofRun = <T>(key: string, value: T) => state<T>(`${name}.${key}`, () => value);
  const ofSession = <T>(key: string, value: T) => state<T>(`${name}.${key}`, () => value, { lifetime: "session" });
  const laterState = ofRun<readonly string[]>("later", []);
  const ofConversation = ofSession<readonly string[]>("later", []);
  return {
    /** The reason of the hook that ended the run, for the person. */
    stopped: ofRun("stopped", ""),
    /** Whether hooks have kept the agent from stopping. */
    continued: ofRun("continued", false),
    /** Whether StopFailure was asked. */
    failed: ofRun("failed", false),
    /** The title that a hook gave to the session. */
    title: ofSession("title", ""),
    /** The last response of the session. Its session differs from that of the run after a fork. */
    last: ofSession<LastResponse | undefined>("last", undefined),
    /** The effort of the last request. */
    effort: ofRun<EffortLevel | "">("effort", ""),
    /** Whether the last response ended at the limit of its length. */
    cut: ofRun("cut", false),
    /** The model that the session was opened with. */
    model: ofRun("model", ""),
    /** The text before the first prompt. */
    firstMessage: ofRun("first_message", ""),
    batch: ofRun<CallBatch>("batch", { ids: [], calls: {}, asked: false }),
    permissions: ofSession("permissions", noPermissions),
    /** The files in `watchPaths`; undefined until a hook returns some. */
    watched: ofSession<readonly string[] | undefined>("watched", undefined),
    /** The worktree that the agent is in. */
    worktree: ofSession("worktree", ""),
    /** Texts for the next model request. Those of the outermost run belong to the session, so that its next run sends them. */
    later: ({ run }: Scope) => run.parent ? laterState : ofConversation,
  };
}

// Running the hooks of an event: in parallel or in sequence, each with its own copy of the input, signal and deadline.

/** The outcome of one hook. */
interface Outcome extends ReadOutput {
  readonly definition?: Definition;
  /** The work of a hook that continues in the background and will answer later. */
  readonly work?: Work | undefined;
  readonly failed?: { readonly error: unknown };
  /** The order of arrival, from 0. */
  readonly order: number;
}

/** Options of a dispatch. */
interface DispatchOptions {
  readonly toolUseId: string | undefined;
  readonly signal: AbortSignal;
  /** An upper bound of every timeout, in milliseconds. Default: none. */
  readonly maxTime?: number | undefined;
  readonly dialect: Dialect;
}

/** Runs hooks and returns one outcome per hook, in their order. Never rejects. */
async function dispatch(
  definitions: readonly Definition[],
  input: HookInput,
  options: DispatchOptions,
): Promise<readonly Outcome[]> {
  let order = 0;
  const ask = async (definition: Definition, input: HookInput): Promise<Outcome> => {
    try {
      const { returned, work } = await call(definition, structuredClone(input), options);
      const read = readAnswer(returned, input, options.dialect);
      return { ...read, definition, order: order++, work };
    } catch (error) {
      return { failed: { error }, invalid: [], definition, order: order++ };
    }
  };
  if (!definitions.some(({ sequential }) => sequential)) {
    return await Promise.all(definitions.map((definition) => ask(definition, input)));
  }
  const outcomes: Outcome[] = [];
  let current = input;
  for (const definition of definitions) {
    const outcome = await ask(definition, current);
    current = changed(current, outcome);
    outcomes.push(mergeInput(outcome, current));
  }
  return outcomes;
}

/** Milliseconds that a hook has to settle after its signal aborted. */
const grace = 50;

async function call(
  { hook, timeout }: Definition,
  input: HookInput,
  options: DispatchOptions,
): Promise<{ readonly returned: unknown; readonly work: Work | undefined }> {
  const { toolUseId, signal, maxTime = Infinity } = options;
  const background = new AbortController();
  const returned = await withinTime((signal) => {
    const dispatchSignal = anySignal([signal, background.signal]);
    return hook(input as never, toolUseId, { signal: dispatchSignal }); // a hook receives only the inputs of its own event
  }, { ms: Math.min(timeout, maxTime), signal, grace });
  const work = backgroundWork(returned);
  if (work || !isObject(returned) || returned.async !== true) return { returned, work };
  const { asyncTimeout } = returned;
  return { returned, work: typeof asyncTimeout === "number" ? expiry(background, asyncTimeout) : undefined };
}

/** Aborts the signal of a callback that continues in the background after `ms` milliseconds, unless the run ends before. */
function expiry(background: AbortController, ms: number): Work {
  const { promise: done, resolve } = Promise.withResolvers<undefined>();
  const timer = startTimer(() => {
    background.abort(lateAfter(ms));
    resolve(undefined);
  }, ms);
  const stop = () => {
    clearTimeout(timer);
    resolve(undefined);
  };
  return { done, stop, isDetached: true };
}

/** Returns the input of the next hook in a sequence. */
function changed(input: HookInput, { output }: Outcome): HookInput {
  const { updatedInput, additionalContext } = output?.specific ?? {};
  if (input.hook_event_name === "PreToolUse" && updatedInput) {
    const before = input.tool_input;
    return { ...input, tool_input: isObject(before) ? { ...before, ...updatedInput } : updatedInput };
  }
  if (input.hook_event_name === "UserPromptSubmit" && additionalContext) {
    return { ...input, prompt: `${input.prompt}\n\n${additionalContext}` };
  }
  return input;
}

/** Replaces the updated input of an outcome by the input that all hooks so far have made. */
function mergeInput(outcome: Outcome, current: HookInput): Outcome {
  const { output } = outcome;
  if (current.hook_event_name !== "PreToolUse" || !output?.specific.updatedInput) return outcome;
  const updatedInput = current.tool_input as Record<string, unknown>; // `changed` merged an object into it
  return { ...outcome, output: { ...output, specific: { ...output.specific, updatedInput } } };
}

// The hooks of one middleware, which its points ask.

/** Options of asking the hooks of an event. */
export interface AskOptions {
  /** The id of the call, if the input does not contain it. */
  readonly call?: string;
  /** Default: the signal of the context. */
  readonly signal?: AbortSignal;
  /** An upper bound of every timeout, in milliseconds. */
  readonly maxTime?: number;
}

/** The runs that a hook ends. */
interface EndReach {
  /** Ends also the runs that the run works for. Default: false. */
  readonly tree?: boolean;
}

/** The text for the model in the results of calls that the end of the run cuts short. */
export const endReason = "a hook stopped the run";

/** Options of the hooks of one middleware. */
export interface HooksOptions {
  /** The name of the middleware. */
  readonly name: string;
  readonly dialect: Dialect;
  /** The root of the agent's files. */
  readonly cwd: string;
}

/** The hooks of one middleware. */
export type Hooks = ReturnType<typeof hooksOf>;

/** Creates the hooks of one middleware. */
export function hooksOf(definitions: Definitions, { name, dialect, cwd }: HooksOptions) {
  const memory = memoryOf(name);
  const background = backgroundOf();
  const { voidsInvalid } = dialect;

  function commonInput(ctx: Scope): CommonInput {
    const { run } = ctx;
    const top = outermostRun(run);
    const model = memory.model.get(ctx);
    const level = memory.effort.get(ctx);
    return {
      session_id: top.session,
      transcript_path: transcriptFile(top) ?? "",
      cwd: workingDirectory(run, cwd),
      prompt_id: top.id,
      ...(model && { model }),
      permission_mode: memory.permissions.get(ctx).mode,
      ...(level && { effort: { level } }),
      ...(run.parent && { agent_id: run.id, agent_type: run.agent }),
    };
  }

  /** Runs the hooks of an event. Throws if the run was stopped meanwhile. */
  async function ask<E extends HookEvent>(
    event: E,
    ctx: Scope,
    fields: () => EventFields[E],
    { call, signal = ctx.signal, maxTime }: AskOptions = {},
  ): Promise<Answers> {
    const all = definitions.get(event) ?? [];
    if (all.length === 0) return [];
    const eventFields = fields();
    const value = matchedIn(event, eventFields);
    const matched = distinct(all.filter(({ matches }) => matches(value)));
    if (matched.length === 0) return [];
    signal.throwIfAborted();
    const input = { ...commonInput(ctx), hook_event_name: event, ...eventFields } as HookInput; // the fields belong to the event
    const toolUseId = "tool_use_id" in input ? input.tool_use_id : call;
    const outcomes = await dispatch(matched, input, { toolUseId, signal, maxTime, dialect });
    signal.throwIfAborted();
    return outcomes.flatMap((outcome) => {
      if (outcome.work) continueLater(outcome.work, event, ctx);
      return answersOf(outcome, event, ctx);
    });
  }

  /** Reads the answer of a hook that continues in the background when it arrives. */
  function continueLater({ done, ...work }: Work, event: HookEvent, ctx: Scope): void {
    const outcome = done.then(
      (returned): Outcome => ({ ...readOutput(returned, event, voidsInvalid), order: 0 }),
      (error): Outcome => ({ failed: { error }, invalid: [], order: 0 }),
    );
    const answered = outcome.then((outcome) => {
      const { systemMessage, ...rest } = outcome.output ?? { specific: {} };
      const isForModel = dialect.lateMessages === "model";
      const answers = answersOf(isForModel && outcome.output ? { ...outcome, output: rest } : outcome, event, ctx);
      addLater(ctx, [...isForModel && systemMessage ? [systemMessage] : [], ...contextOf(answers)]);
    });
    background.add(ctx, { done: answered, ...work });
  }

  /** Adds texts to the next model request. */
  function addLater(ctx: Scope, texts: readonly string[]): void {
    if (texts.length > 0) memory.later(ctx).update(ctx, (before) => [...before, ...texts]);
  }

  /** Returns the answer of one hook. Emits its message for the person, and a warning about its failure. */
  function answersOf(outcome: Outcome, event: HookEvent, ctx: Scope): Answer[] {
    const { output, invalid, unknown, failed, order } = outcome;
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
      if (reason) return [{ ...output, decision: "deny", reason, specific: output?.specific ?? {}, order }];
    }
    return output ? [{ ...output, order }] : [];
  }

  /** Ends the run. The person sees the reason. */
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
    /** Whether a hook is for one of the events. */
    has: (...events: readonly HookEvent[]) => events.some((event) => (definitions.get(event) ?? []).length > 0),
    /** Whether a hook of one of the events matches `value`. */
    hasFor: (value: string, ...events: readonly HookEvent[]) =>
      events.some((event) => definitions.get(event)?.some(({ matches }) => matches(value))),
    ask,
    /** Runs the hooks of an event in the background. */
    notify<E extends HookEvent>(
      event: E,
      ctx: Scope,
      fields: () => EventFields[E],
      onAnswers: (answers: Answers) => void = () => {},
    ): void {
      background.add(ctx, { done: ask(event, ctx, fields).then(onAnswers) });
    },
    addLater,
    /** Ends the session if an answer contains `continue: false` and the event allows it: the run, and the runs that it works for. */
    endOf(event: HookEvent, ctx: Scope, answers: Answers): End | undefined {
      const reason = stopOf(answers, event, dialect);
      return reason === undefined ? undefined : end(ctx, reason, { tree: true });
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
