/**
 * Compaction: makes a transcript fit that has grown too long. It is built from a `turn` hook, a `model` hook and a step of its own.
 *
 * ```text
 * auto       the estimate exceeds `limits.context` before a turn
 * overflow   the provider refused a request as too large; the request is compacted and sent again, once
 * manual     a request asked for it, while no run has the session
 * ```
 *
 * The transcript shrinks to half of the limit, so that compactions are rare and the provider's prompt cache stays valid. If the session is saved, the
 * messages from before stay in the store, as the history of the session.
 *
 * @module
 */
import {
  type Agent,
  type RunHandle,
  runHandle,
  type RunOptions,
  type StartCompactOptions,
  type VarsOption,
} from "./agent.ts";
import { reportFatal, retried } from "./error_hooks.ts";
import { cancelled, compacted, declined } from "./hook_answers.ts";
import { reviewInput } from "./input_hooks.ts";
import { estimateTokens, tokenMeter } from "./lib/text.ts";
import type { Middleware } from "./middleware.ts";
import { askForSummary } from "./model_step.ts";
import type { CompactChange, CompactContext, Compaction, InputResult, TurnContext } from "./points.ts";
import { type PointPolicy, policyOf, requireChoice } from "./policy.ts";
import type { Step } from "./position.ts";
import { engineOf, type EngineRun, type StepScope } from "./run.ts";
import type { Run, Scope } from "./scope.ts";
import { ModelError, type ModelRequest } from "../model/model.ts";
import type { CompactTrigger } from "../protocol/event.ts";
import { type Message, textOf, user, type UserMessage } from "../protocol/message.ts";

// Trimming: removes the oldest messages of a transcript.

/** A transcript, split for a compaction. */
export interface Division {
  /** The opening of the conversation. It stays, so that the provider's prompt cache stays valid. */
  readonly opened: readonly Message[];
  /** The messages that may be removed. */
  readonly removed: readonly Message[];
  /** The messages that stay after them: the person's last message, and the last messages. */
  readonly kept: readonly Message[];
}

/** The core of `compact`: removes the oldest messages, except the opening, the person's last message, and the last messages. */
function trim({ transcript, budget }: CompactContext): Promise<Compaction> {
  const { opened, removed, kept } = splitTranscript(transcript, budget);
  return Promise.resolve(
    removed.length === 0 ? declined("There is nothing that could be left out.") : compacted([...opened, ...kept]),
  );
}

/** Splits a transcript so that the rest fits `budget` tokens, of which at most `keep` follow the opening, if possible. Calls stay with their results. */
export function splitTranscript(transcript: readonly Message[], budget: number, keep = Infinity): Division {
  const groups = groupMessages(transcript);
  const rest = groups.splice(openingOf(groups));
  const opened = groups.flat();
  const asked = rest.findLast(isPersons) ?? [];
  const kept = new Set([asked, rest.at(-1)]);
  let room = Math.min(budget - estimateTokens(opened), keep) - estimateTokens(asked);
  for (const group of rest.toReversed()) {
    if (group !== asked) room -= estimateTokens(group);
    if (room < 0 && !kept.has(group)) break;
    kept.add(group);
  }
  return {
    opened,
    removed: rest.filter((group) => !kept.has(group)).flat(),
    kept: rest.filter((group) => kept.has(group)).flat(),
  };
}

/** Groups messages that belong together: a message, the results of its calls, and the context that hooks added. */
export function groupMessages(transcript: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (const message of transcript) {
    const last = groups.at(-1);
    if (last && message.role !== "assistant" && !isPersons([message])) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

/** Returns the number of groups in the opening: up to the first answer, and at most the person's first message. */
function openingOf(groups: readonly (readonly Message[])[]): number {
  let prompts = 0;
  const end = groups.findIndex((group) => group[0]?.role === "assistant" || (isPersons(group) && ++prompts > 1));
  return end < 0 ? groups.length : end;
}

function isPersons([message]: readonly Message[]): boolean {
  return message?.role === "user" && message.from === undefined;
}

// Compaction: `compact()`, the policy of the point, and the hooks and the step that use it.

/** The options of `compact()`. */
export interface CompactOptions extends Omit<RunOptions, "busy"> {
  /** The session. */
  readonly session: string;
  /** Instructions for the summary. Default: none. */
  readonly instructions?: string;
}

/**
 * Compacts the transcript of a session that no run has. The run does nothing else. Its status is "done", "cancelled" if the compaction was declined, or
 * "failed". The messages from before stay in the store, as the history of the session.
 */
export function compact<V, O>(
  agent: Agent<V, O>,
  { instructions = "", ...options }: CompactOptions & VarsOption<V>,
): RunHandle<O> {
  const startOptions = { ...options, compact: { instructions } } as StartCompactOptions & VarsOption<V>; // the vars are those of `options`
  return runHandle((sink) => agent.start(startOptions, sink));
}

const requireType = /* @__PURE__ */ requireChoice<CompactContext, Compaction, EngineRun>("compact", "type", [
  "compacted",
  "declined",
]);

const policy: PointPolicy<CompactContext, CompactChange, Compaction, EngineRun> = /* @__PURE__ */ policyOf("compact", {
  core: trim,
  finalize(answer) {
    const { name, locals: { loop: { transcript } } } = answer;
    const returned = requireType(answer);
    return returned.type === "compacted"
      ? { ...returned, messages: transcript.repaired(returned.messages, "compact", name) }
      : returned;
  },
});

/** The hooks and the step that compact. A middleware that summarizes adds a `compact` hook. */
export const compactionHooks: Middleware = {
  turn(ctx, next) {
    if (!exceedsLimit(ctx)) return next();
    return compactTranscript(ctx, "auto")
      .then((compaction) => next(compaction.type === "compacted" ? { transcript: compaction.messages } : {}));
  },

  model: (ctx, next) =>
    next().catch(async (error) => {
      if (ctx.purpose === "summary" || !(error instanceof ModelError && error.overflow)) throw error;
      const { messages } = engineOf(ctx.run).loop.transcript;
      const added = ctx.request.messages.slice(messages.length); // context of this turn only
      const compaction = await compactTranscript(ctx, "overflow");
      if (compaction.type === "declined") throw error;
      ctx.run.report(error);
      return await next({ request: { messages: [...compaction.messages, ...added] } });
    }),

  "~steps": {
    /** Compacts the transcript of a session on request. */
    compact: (async (scope, { instructions: requested }) => {
      const { status, messages: [message], reason = "" } = await reviewInstructions(scope, requested);
      scope.engine.exit.check(); // a hook that swallowed an interrupt changes nothing
      if (status === "cancelled") return { exit: { status: "refused", reason, answer: cancelled(reason) } };
      const instructions = message ? textOf(message as UserMessage) : ""; // the point accepts nothing else
      const compaction = await compactTranscript(scope, "manual", instructions);
      if (compaction.type === "compacted") return { exit: { status: "done", answer: { status: "done", text: "" } } };
      const { reason: why } = compaction;
      return { exit: { status: "refused", reason: why, answer: cancelled(why) } };
    }) satisfies Step<"compact">,
  },
};

/** Runs the `input` hooks for the instructions of a request. */
async function reviewInstructions(scope: StepScope, text: string): Promise<InputResult> {
  if (text === "") return { status: "accepted", messages: [] };
  return await reportFatal(scope, "input", reviewInput(scope.engine, scope, "instructions", [user(text)]));
}

/** The meter of each run's transcript, which is measured before each turn. */
const meters = /* @__PURE__ */ new WeakMap<Run, typeof estimateTokens>();

/** Returns true if the transcript is too long for a turn that begins. */
function exceedsLimit({ run, resumed }: TurnContext): boolean {
  const { limits, loop: { transcript } } = engineOf(run);
  const measure = meters.get(run) ?? tokenMeter();
  meters.set(run, measure);
  return !resumed && measure(transcript.messages) > limits.context;
}

/**
 * Runs the `compact` onion, and replaces the transcript. The `error` hooks decide about a failure, unless a caller waits for the compaction. If
 * they skip it, the transcript stays as it is, and the next turn tries again. If a provider has refused it, or it exceeds a window that is larger than the limit,
 * the oldest messages are left out.
 */
async function compactTranscript(
  { run, signal, emit, vars }: Scope,
  trigger: CompactTrigger,
  instructions = "",
): Promise<Compaction> {
  const engine = engineOf(run);
  const { definition: { onions }, events, limits, loop, loop: { transcript }, settings: { model } } = engine;
  const { messages } = transcript;
  const before = estimateTokens(messages);
  const budget = Math.floor(Math.min(before, limits.context) / 2);
  const failing = { run, signal, emit, vars, engine };
  const empty: ModelRequest = { model, instructions: "", messages: [], tools: [], options: {} };
  const ctx: CompactContext = {
    run,
    signal,
    emit,
    vars,
    trigger,
    transcript: messages,
    instructions,
    budget,
    model,
    askModel: (request, within = signal) => askForSummary({ ...failing, signal: within }, { ...empty, ...request }),
  };
  const compact = () => onions.compact(ctx, engine, policy);
  let failed = false;
  events.emitThrough(emit, { type: "compact.started", trigger });
  const compaction = trigger === "manual"
    ? await reportFatal(failing, "compact", compact())
    : await retried(failing, "compact", compact, () => {
      failed = true;
      const fits = before <= engine.window || engine.window <= limits.context; // the limit itself is only the time to try
      return trigger === "auto" && fits ? declined("It failed.") : trimmed(ctx, engine);
    });
  if (compaction.usage) engine.spend(compaction.usage, model.id);
  engine.control.signal.throwIfAborted();
  if (compaction.type === "compacted") {
    await loop.replaceTranscript(compaction.messages);
  }
  events.emitThrough(emit, {
    type: "compact.finished",
    trigger,
    status: failed ? "failed" : compaction.type,
    before,
    after: estimateTokens(transcript.messages),
    ...(!failed && compaction.type === "declined" && { reason: compaction.reason }),
  });
  engine.exit.check();
  return compaction;
}

/** Leaves out the oldest messages of a transcript that no model takes and that could not be compacted. */
async function trimmed(ctx: CompactContext, { events }: EngineRun): Promise<Compaction> {
  const compaction = await trim(ctx);
  if (compaction.type === "compacted") {
    events.warn("transcript.trimmed", "The compaction failed, so the oldest messages were left out.", {
      point: "compact",
    });
  }
  return compaction;
}
