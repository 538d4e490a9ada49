/**
 * The points `session`, `compact` and `subagent`: the start and the end of a run, its turns, its context and its subagents.
 *
 * @module
 */
import { engineOrigin } from "./frame.ts";
import { isOffered } from "./instructions.ts";
import type { Data } from "./patterns.ts";
import { turnBegan } from "./prompts.ts";
import { type At, type ModRun, type ModRuns, name } from "./run.ts";
import { handledMessages, loopOf, modelOf, toolsOf, transcriptOf, usageOf } from "./session_view.ts";
import { objectOf } from "../kit/answers.ts";
import {
  type CompactChange,
  type CompactContext,
  compacted,
  type Compaction,
  declined,
  type Middleware,
  type Next,
  refused,
  type Run,
  type RunResult,
  type SessionContext,
  type SubagentChange,
  type SubagentContext,
  textOf,
  user,
} from "../../../mod.ts";
import { Cleanups, isLate, withinTime } from "../../../src/core/kit.ts";

// The session.

/** Milliseconds for all hooks of `session.end`. */
const endTime = 1_500;

/** Creates the hooks at `session`, `abort`, `compact` and `subagent`. */
export function sessionHooks(
  runs: ModRuns,
  agents: WeakMap<Run, ReadonlySet<string>>,
): Pick<Middleware, "session" | "abort" | "compact" | "subagent"> {
  const cleanups = new Cleanups();

  async function open(run: ModRun, ctx: SessionContext): Promise<readonly string[]> {
    const { run: { parent }, resumed, source, settings } = ctx;
    if (parent || resumed) return [];
    run.model = settings.model;
    const cwd = run.options.cwd ?? "/";
    const at: At = { ctx, point: "session" };
    if (run.has("session.start")) {
      const e = { cwd, surface: null, isInteractive: false };
      await run.raise("session.start", e, () => Promise.resolve({ cwd }), at);
    }
    const texts = await run.options.classic?.start(run, ctx, source === "new" ? "startup" : "resume") ?? [];
    return source === "new" ? [...await contextTexts(run, at), ...texts] : texts;
  }

  async function close(run: ModRun, ctx: SessionContext, result: RunResult): Promise<void> {
    const isOutermost = ctx.run.parent === undefined;
    const signal = ctx.signal.aborted ? new AbortController().signal : ctx.signal; // hooks have the grace period of the run
    if (!isOutermost || turnBegan.get(ctx)) await completeTurn(run, { ctx, point: "session", signal }, result);
    if (isOutermost) await endSession(run, ctx);
  }

  return {
    async session(ctx, next) {
      const { settings, run: { parent } } = ctx;
      const run = await runs.of(ctx);
      if (!parent) cleanups.set(ctx, () => Promise.resolve(run.end()));
      agents.set(ctx.run, new Set(settings.tools.filter((tool) => tool["~execute"]).map((tool) => tool.name)));
      try {
        const context = await open(run, ctx);
        const added = parent ? [] : toolsOf(ctx);
        const names = new Set(added.map((tool) => tool.name));
        const tools = [...settings.tools.filter((tool) => !names.has(tool.name)), ...added];
        const result = await next({
          ...(context.length > 0 && { context: [...ctx.context, ...context] }),
          ...(added.length > 0 && { settings: { tools } }),
        });
        if (result.status !== "paused") await close(run, ctx, result);
        return result;
      } finally {
        if (!parent) await cleanups.run(ctx);
      }
    },
    abort: cleanups.abort,
    async compact(ctx, next) {
      const run = await runs.of(ctx);
      const compact = () => run.has("session.compact") ? compactWith(run, ctx, next) : next();
      const { classic } = run.options;
      const compaction = await (classic ? classic.compact(run, ctx, compact) : compact());
      if (compaction.type === "declined" || ctx.run.parent) return compaction;
      const texts = await contextTexts(run, { ctx, point: "compact" });
      if (texts.length === 0) return compaction;
      return { ...compaction, messages: [...compaction.messages, user(texts.join("\n\n"), name)] };
    },
    async subagent(ctx, next) {
      const run = await runs.of(ctx);
      const at: At = { ctx, point: "subagent" };
      if (run.has("agent.offer") && !await isOffered(run, at, ctx.child, "")) {
        return refused(`The agent ${ctx.child} is not offered.`);
      }
      const prompt = textOf(ctx.prompt);
      const description = prompt.slice(0, 80);
      const id = ctx.childRun;
      const note = (status: string) => run.agents.set(id, { id, description, type: ctx.child, status });
      note("running");
      try {
        const result = run.has("agent.spawn") ? await spawn(run, at, ctx, next) : await next();
        note(result.status === "done" ? "completed" : "failed");
        return result;
      } catch (error) {
        note("failed");
        throw error;
      }
    },
  };
}

/** Returns the context of a conversation, as mods compose it. */
async function contextTexts(run: ModRun, at: At): Promise<readonly string[]> {
  if (!run.has("prompt.context")) return [];
  const core = (e: Data) => Promise.resolve(e);
  const { blocks } = await run.raise("prompt.context", { blocks: [] }, core, at);
  return (Array.isArray(blocks) ? blocks : []).map(objectOf).map(({ name, text }) => `# ${name}\n${text}`);
}

/** Raises `turn.complete`. A text other than the answer is shown beneath it. */
async function completeTurn(run: ModRun, at: At, result: RunResult): Promise<void> {
  const { ctx, ctx: { run: ended } } = at;
  if (!run.has("turn.complete")) return;
  const { status, finish, text: answer, usage } = result;
  const isAborted = status === "aborted" || status === "cancelled";
  const reason = isAborted ? "aborted" : status === "failed" ? "error" : finish === "refusal" ? "refusal" : "answer";
  const e = {
    answer,
    durationMs: Math.max(0, ended.now() - ended.startedAt),
    isAborted,
    turnId: ended.id,
    ...loopOf(ended),
    ...(usage.input + usage.output > 0 && { usage: usageOf(usage, run.model?.id) }),
    reason,
    ...(reason === "refusal" && { refusal: { category: null, explanation: null } }),
  };
  const core = ({ answer, usage }: Data) => Promise.resolve({ text: answer, ...(usage !== undefined && { usage }) });
  const { text } = await run.raise("turn.complete", e, core, at);
  if (!ended.parent && text !== answer && text !== "") ctx.emit({ type: "notice", text: String(text) });
}

/** Raises `session.end`. Hooks that are late are left. */
async function endSession(run: ModRun, ctx: SessionContext): Promise<void> {
  const sessionId = ctx.run.session;
  const e = { reason: "other", sessionId, resume: { id: sessionId } };
  const end = async (signal: AbortSignal) => {
    const at: At = { ctx, point: "session", signal };
    if (run.has("session.end")) await run.raise("session.end", e, () => Promise.resolve({ sessionId }), at);
    await run.options.classic?.end(run, at);
  };
  try {
    await withinTime(end, { ms: endTime, signal: new AbortController().signal }); // also after an abort of the run
  } catch (cause) {
    if (!isLate(cause)) throw cause;
    ctx.run.report(new Error(`Cannot wait for session.end: its hooks took more than ${endTime} ms`, { cause }));
  }
}

// Compactions.

async function compactWith(
  run: ModRun,
  ctx: CompactContext,
  next: Next<CompactChange, Compaction>,
): Promise<Compaction> {
  const { transcript, instructions, trigger } = ctx;
  let inner: Compaction | undefined;
  const e = {
    trigger: trigger === "manual" ? "manual" : "auto",
    ...loopOf(ctx.run),
    ...(instructions !== "" && { instructions }),
    messages: handledMessages(transcript),
  };
  const sameAs = (list: unknown) => JSON.stringify(list) === JSON.stringify(e.messages);
  let seen: readonly Data[] | undefined;
  let messages = transcript;
  const core = async (e: Data): Promise<Data> => {
    const changed = sameAs(e.messages) ? transcript : transcriptOf(e.messages, transcript);
    inner = await next({
      ...(changed !== transcript && { transcript: changed }),
      ...(typeof e.instructions === "string" && e.instructions !== instructions && { instructions: e.instructions }),
    });
    if (inner.type === "declined") return { skip: inner.reason };
    messages = [...transcript, ...inner.messages];
    seen = handledMessages(inner.messages, transcript.length);
    return { messages: seen };
  };
  const answer = await run.raise("session.compact", e, core, { ctx, point: "compact" });
  if (answer.skip !== undefined) return inner?.type === "declined" ? inner : declined(String(answer.skip));
  if (inner?.type === "compacted" && JSON.stringify(answer.messages) === JSON.stringify(seen)) return inner;
  return compacted(transcriptOf(answer.messages, messages), inner?.usage ? { usage: inner.usage } : {});
}

// Subagents.

async function spawn(
  run: ModRun,
  at: At,
  { prompt, child, call, childRun, run: parent, settings }: SubagentContext,
  next: Next<SubagentChange, RunResult>,
): Promise<RunResult> {
  const text = textOf(prompt);
  const parentModel = run.model?.id ?? "";
  const e = {
    ...{ tool_use_id: call, prompt: text, description: text.slice(0, 80), subagentType: child, parentModel },
    ...{ provider: engineOrigin, background: false, fork: false },
    ...(settings.model && { model: settings.model.id }),
    ...(parent.parent && { parentAgentId: parent.id }),
  };
  let passed: Data = e;
  const core = (e: Data): Promise<Data> => {
    passed = e;
    return Promise.resolve({ model: e.model ?? parentModel, agentId: childRun });
  };
  const expect = ({ model }: Data) => {
    if (!modelOf(run, model)) throw new TypeError(`there is no model "${model}"; expected one that \`models\` returns`);
  };
  const answer = await run.raise("agent.spawn", e, core, { ...at, expect });
  if (answer.deny !== undefined) return refused(String(answer.deny));
  const asked = answer.model === parentModel && passed.model === undefined ? undefined : answer.model;
  const model = asked === undefined || asked === settings.model?.id ? undefined : modelOf(run, asked);
  return await next({
    ...(passed.prompt !== text && { prompt: { ...prompt, parts: [{ type: "text", text: String(passed.prompt) }] } }),
    ...(model && { settings: { model } }),
  });
}
