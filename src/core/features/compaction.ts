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
 * messages from before are kept in a session of their own, which `Session.archive` names.
 *
 * @module
 */
import { ModelError } from "../../model/model.ts";
import type { Agent } from "../agent/agent.ts";
import type { RunOptions, StartCompactOptions, VarsOption } from "../agent/options.ts";
import { type RunHandle, runHandle } from "../agent/run_handle.ts";
import type { CompactTrigger } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { isInterrupt } from "../hooks/interrupt.ts";
import type { Middleware } from "../hooks/middleware.ts";
import type { PointPolicy } from "../hooks/onion.ts";
import type { CompactChange, CompactContext, Compaction } from "../hooks/points/turn.ts";
import { policyOf } from "../hooks/policy.ts";
import { delay } from "../lib/cancellation.ts";
import { estimateTokens } from "../lib/estimate.ts";
import { decideOnError, isRecoverable, reportFatal } from "../run/failure.ts";
import { engineOf, type EngineRun, type StepScope } from "../run/run.ts";
import type { Step } from "../run/step.ts";
import { trim } from "./trim.ts";

/** The options of `compact()`. */
export interface CompactOptions extends Omit<RunOptions, "busy"> {
  /** The session. */
  readonly session: string;
  /** Instructions for the summary. Default: none. */
  readonly instructions?: string;
}

/**
 * Compacts the transcript of a session that no run has. The run does nothing else. Its status is "done", "cancelled" if the compaction was declined, or
 * "failed". The messages from before are kept in the session that `Session.archive` names.
 */
export function compact<V, O>(
  agent: Agent<V, O>,
  { instructions = "", ...options }: CompactOptions & VarsOption<V>,
): RunHandle<O> {
  const given = { ...options, compact: { instructions } } as StartCompactOptions & VarsOption<V>; // the vars are those of `options`
  return runHandle((sink) => agent.start(given, sink));
}

/** The engine's own values of one compaction. */
interface CompactCall {
  /** The middleware that gave the result. */
  answeredBy: string | undefined;
}

const policy: PointPolicy<CompactContext, CompactChange, Compaction, CompactCall> = /* @__PURE__ */ policyOf(
  "compact",
  ["instructions"],
  {
    core: (ctx) => trim(ctx),
    finalize({ name, own, returned }) {
      own.answeredBy = name;
      return returned;
    },
  },
);

/** The part of a scope that a compaction needs. */
type CompactScope = Pick<StepScope, "engine" | "run" | "signal" | "emit" | "vars">;

/** The hooks and the step that compact. A middleware that summarizes adds a `compact` hook. */
export const compactionHooks: Pick<Middleware, "turn" | "model" | "~steps"> = {
  async turn(ctx, next) {
    const engine = engineOf(ctx.run);
    const { limits: { context }, loop: { transcript } } = engine;
    if (ctx.resumed || transcript.tokens <= context) return await next();
    const { messages } = await compactTranscript({ ...ctx, engine }, { trigger: "auto" });
    return await next(messages ? { transcript: messages } : {});
  },

  async model(ctx, next) {
    try {
      return await next();
    } catch (error) {
      if (!(error instanceof ModelError && error.overflow)) throw error;
      const engine = engineOf(ctx.run);
      const added = ctx.request.messages.slice(engine.loop.transcript.messages.length); // context of this turn only
      const { messages } = await compactTranscript({ ...ctx, engine }, { trigger: "overflow" });
      if (!messages) throw error;
      engine.events.report(error);
      return await next({ request: { messages: [...messages, ...added] } });
    }
  },

  "~steps": {
    /** Compacts the transcript of a session on request. */
    compact: (async (scope, { instructions }) => {
      const { compaction, messages } = await compactTranscript(scope, { trigger: "manual", instructions });
      const answer = { text: "" };
      if (messages) return { exit: { status: "done", answer } };
      const { reason } = compaction.type === "declined" ? compaction : { reason: "" };
      return { exit: { status: "refused", answer, reason } };
    }) satisfies Step<StepScope, "compact">,
  },
};

/** A compaction, and the messages that it leads to if there was one. */
interface Compacted {
  readonly compaction: Compaction;
  readonly messages?: readonly Message[];
}

/** The cause of a compaction, and the instructions for a summary. */
interface CompactionRequest {
  readonly trigger: CompactTrigger;
  readonly instructions?: string;
}

/** Runs the `compact` onion, and archives the messages that it replaces. */
async function compactTranscript(
  scope: CompactScope,
  { trigger, instructions = "" }: CompactionRequest,
): Promise<Compacted> {
  const { engine, run, signal, emit, vars } = scope;
  const { events, limits: { context }, loop, settings: { model }, control } = engine;
  const { transcript } = loop;
  const before = transcript.tokens;
  const budget = Math.floor(Math.min(before, context) / 2);
  const call: CompactCall = { answeredBy: undefined };
  events.announce(emit, { type: "compact.started", trigger });
  const ctx = { run, signal, emit, vars, trigger, transcript: transcript.messages, instructions, budget, model };
  const { compaction, failed } = await attempt(scope, ctx, call);
  if (compaction.usage) engine.spend(compaction.usage);
  control.signal.throwIfAborted();
  const compacted = compaction.type === "compacted" &&
    transcript.repaired(compaction.messages, "compact", call.answeredBy);
  if (compacted) {
    await archive(engine);
    await loop.replaceTranscript(compacted);
  }
  events.announce(emit, {
    type: "compact.finished",
    trigger,
    status: failed ? "failed" : compaction.type,
    before,
    after: compacted ? estimateTokens(compacted) : before,
    ...(!failed && compaction.type === "declined" && { reason: compaction.reason }),
  });
  engine.exit.check();
  return compacted ? { compaction, messages: compacted } : { compaction };
}

async function archive({ loop: { transcript }, archive }: EngineRun): Promise<void> {
  const session = await archive();
  if (session !== undefined) transcript.archiveAs(session);
}

/** Runs the onion until it succeeds. The `error` hooks decide about a failure, unless a caller waits for the compaction. */
async function attempt(
  scope: CompactScope,
  ctx: CompactContext,
  call: CompactCall,
): Promise<{ readonly compaction: Compaction; readonly failed: boolean }> {
  const { engine } = scope;
  const { onions } = engine.definition;
  if (ctx.trigger === "manual") {
    return { compaction: await reportFatal(scope, "compact", onions.compact(ctx, call, policy)), failed: false };
  }
  for (let attempt = 1;; attempt++) {
    try {
      return { compaction: await onions.compact(ctx, call, policy), failed: false };
    } catch (error) {
      if (isInterrupt(error) || engine.control.aborted) throw error;
      const failure = { error, source: "compact", recoverable: isRecoverable(error), attempt } as const;
      const decision = await decideOnError(scope, failure);
      if (decision.type === "abort") throw error;
      call.answeredBy = undefined;
      if (decision.type === "skip") return { compaction: await trim(ctx), failed: true };
      await delay(decision.after, ctx.signal);
    }
  }
}
