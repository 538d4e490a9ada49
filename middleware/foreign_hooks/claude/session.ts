/**
 * The points around a run: `session`, `prompt`, `input`, `stop`, `error` and `compact`, and the events that hooks observe in the background.
 *
 * @module
 */
import type { Dialect } from "./dialect.ts";
import type { EventFields, HookEvent, StopFailureKind } from "./events.ts";
import { type AskOptions, endReason, type Hooks } from "./hooks.ts";
import { type Answers, blockOf, contextOf, lastOf, stopOf } from "./outputs.ts";
import { absolutePath, transcriptFile, warnSkipped } from "../kit/adapter.ts";
import { messageOf } from "../kit/calls.ts";
import {
  type Answer,
  cancelled,
  type CompactContext,
  type Compaction,
  continueWith,
  declined,
  type Event,
  type Middleware,
  ModelError,
  refused,
  type RunResult,
  type Scope,
  type SessionContext,
  type StopContext,
  textOf,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { type ElicitationAnswer, hookServers, isObject, type ServerHooks } from "../../../src/core/kit.ts";

// Events of a run that hooks observe in the background: CwdChanged, FileChanged, InstructionsLoaded and Notification.

/** Replaces the watched files by the `watchPaths` of the answers. Without `watchPaths`, they stay. */
function watchPaths({ dialect, memory }: Hooks, ctx: Scope, answers: Answers): void {
  const paths = lastOf(answers, dialect, ({ specific }) => specific.watchPaths);
  if (paths) memory.watched.set(ctx, paths);
}

/** Returns a function that passes an event on and runs the hooks for it; undefined without such hooks. */
function watchEvents(hooks: Hooks): ((ctx: SessionContext, event: Event) => void) | undefined {
  if (!hooks.has("CwdChanged", "FileChanged", "InstructionsLoaded", "Notification")) return undefined;
  const { cwd } = hooks;
  const named = namesIn(hooks);

  function isWatched(ctx: SessionContext, path: string): boolean {
    const paths = hooks.memory.watched.get(ctx);
    if (!paths && !hooks.dialect.watchesNamed) return true;
    const isNamed = hooks.dialect.watchesNamed && named.has(path.slice(path.lastIndexOf("/") + 1));
    return isNamed || (paths ?? []).some((each) => path === each || path.startsWith(`${each.replace(/\/$/, "")}/`));
  }

  function notify(ctx: SessionContext, event: Event): void {
    const onPaths = (answers: Answers) => watchPaths(hooks, ctx, answers);
    switch (event.type) {
      case "cwd.changed": {
        const fields = { old_cwd: absolutePath(cwd, event.from), new_cwd: absolutePath(cwd, event.to) };
        return hooks.notify("CwdChanged", ctx, () => fields, onPaths);
      }
      case "file.changed": {
        const fields = { file_path: absolutePath(cwd, event.path), event: event.change };
        return isWatched(ctx, fields.file_path) ? hooks.notify("FileChanged", ctx, () => fields, onPaths) : undefined;
      }
      case "instructions.loaded": {
        const isFile = !/^https?:/.test(event.path);
        const fields = {
          file_path: isFile ? absolutePath(cwd, event.path) : event.path,
          memory_type: isFile ? "Project" : "Managed",
          load_reason: event.reason === "session" ? "session_start" : "nested_traversal",
        } as const;
        return hooks.notify("InstructionsLoaded", ctx, () => fields);
      }
      case "approval.asked": {
        const message = `Your permission is needed to use ${event.tool}`;
        const fields = { notification_type: "permission_prompt", title: "Permission needed", message } as const;
        return hooks.notify("Notification", ctx, () => fields, (answers) => hooks.addLater(ctx, contextOf(answers)));
      }
    }
  }

  return (ctx, event) => {
    ctx.emit(event);
    notify(ctx, event);
  };
}

/** Returns the file names that matchers of FileChanged contain. */
function namesIn({ definitions }: Hooks): ReadonlySet<string> {
  return new Set((definitions.get("FileChanged") ?? []).flatMap(({ matcher }) => matcher.split("|")));
}

// The questions of MCP servers: Elicitation and ElicitationResult.

/** Creates the hooks for the questions of servers; undefined without such hooks. */
function elicitationHooks(hooks: Hooks): ServerHooks | undefined {
  if (!hooks.has("Elicitation", "ElicitationResult")) return undefined;
  return {
    async asked({ server: mcp_server_name, params }, ctx) {
      const { message, mode, url, elicitationId, requestedSchema } = params;
      const answers = await hooks.ask("Elicitation", ctx, () => ({
        mcp_server_name,
        message: String(message ?? ""),
        mode: mode === "url" ? mode : "form",
        ...(typeof url === "string" && { url }),
        ...(typeof elicitationId === "string" && { elicitation_id: elicitationId }),
        ...(isObject(requestedSchema) && { requested_schema: requestedSchema }),
      }));
      return elicitedOf(answers);
    },
    async answered({ server: mcp_server_name, params: { mode, elicitationId } }, answer, ctx) {
      const answers = await hooks.ask("ElicitationResult", ctx, () => ({
        mcp_server_name,
        ...answer,
        mode: mode === "url" ? mode : "form",
        ...(typeof elicitationId === "string" && { elicitation_id: elicitationId }),
      }));
      return elicitedOf(answers, answer) ?? answer;
    },
  };
}

/** Returns the strictest answer of hooks to a server. A hook that blocks declines. Members that a hook leaves out are those of `before`. */
function elicitedOf(answers: Answers, before?: ElicitationAnswer): ElicitationAnswer | undefined {
  if (blockOf(answers) !== undefined) return { action: "decline" };
  const made = answers.flatMap(({ specific: { elicited: { action = before?.action, content } = {} } }) =>
    action && (action !== before?.action || content) ? [{ action, content: content ?? before?.content }] : []
  );
  for (const action of ["decline", "cancel"] as const) {
    if (made.some((each) => each.action === action)) return { action };
  }
  const { content } = made.at(-1) ?? {};
  return made.length === 0 ? undefined : { action: "accept", ...(content && { content }) };
}

// The `stop` and `error` points: Stop, SubagentStop and StopFailure.

/** Creates the hook at `stop`. */
export function stopHook(hooks: Hooks): Pick<Middleware, "stop"> {
  const { dialect, memory } = hooks;

  async function askAll(ctx: StopContext): Promise<Answers> {
    const { run } = ctx;
    if (memory.cut.get(ctx)) {
      const last_assistant_message = "The answer exceeded the maximum of output tokens.";
      await hooks.ask("StopFailure", ctx, () => ({ error: "max_output_tokens", last_assistant_message }));
      return [];
    }
    const fields = {
      stop_hook_active: memory.continued.get(ctx),
      last_assistant_message: textOf(ctx.message),
      background_tasks: [],
      session_crons: [],
    };
    if (!run.parent) return await hooks.ask("Stop", ctx, () => fields);
    const agent = { agent_id: run.id, agent_type: run.agent, agent_transcript_path: transcriptFile(run) ?? "" };
    return await hooks.ask("SubagentStop", ctx, () => ({ ...fields, ...agent }));
  }

  return {
    async stop(ctx, next) {
      const answers = await askAll(ctx);
      const end = hooks.endOf(ctx.run.parent ? "SubagentStop" : "Stop", ctx, answers);
      if (end) throw end;
      const blocked = blockOf(answers);
      const texts = [...blocked === undefined ? [] : [blocked], ...contextOf(answers)];
      if (texts.length === 0) return await next();
      if (ctx.continuations >= dialect.mostBlocks) {
        const message = `Hooks have kept the agent from stopping ${ctx.continuations} times in a row: it stops.`;
        warnSkipped(ctx, hooks.name, message, "stop");
        return await next();
      }
      memory.continued.set(ctx, true);
      return continueWith(texts.join("\n"));
    },
  };
}

/** Creates the hook at `error`. */
export function errorHook(hooks: Hooks): Pick<Middleware, "error"> {
  return {
    async error(ctx, next) {
      const decision = await next();
      if (ctx.source !== "model" || decision.type !== "abort") return decision;
      await askStopFailure(hooks, ctx, kindOf(hooks.dialect, ctx.error), messageOf(ctx.error));
      return decision;
    },
  };
}

/** Asks StopFailure, once in a run. */
async function askStopFailure(
  hooks: Hooks,
  ctx: Scope,
  error: StopFailureKind,
  error_details: string,
  options: AskOptions = {},
): Promise<void> {
  hooks.memory.failed.set(ctx, true);
  await hooks.ask("StopFailure", ctx, () => ({ error, error_details }), options);
}

/** The failures that concern an account, and the words of their messages. A provider sends them with several statuses. */
const accountFailures: readonly (readonly [words: RegExp, kind: StopFailureKind])[] = [
  [/oauth\b.*\bnot allowed\b.*\borganization/i, "oauth_org_not_allowed"],
  [/\baccount\b.*\bon hold\b/i, "account_on_hold"],
  [/credit balance is too low|billing|insufficient_quota|payment required/i, "billing_error"],
  [
    /(?:load|resolve|find) (?:\w+ )?credentials|(?:credentials?|security token)\b.*\bexpired/i,
    "cloud_credential_error",
  ],
];

/** Classifies the failure of a model request: by the account that its message is about, by its code, and by its HTTP status. */
function kindOf({ additions }: Dialect, error: unknown): StopFailureKind {
  const kind = exactKindOf(error);
  return additions ? kind : olderKinds[kind] ?? kind;
}

/** The kinds that stand for those that Claude Code has added. */
const olderKinds: { readonly [K in StopFailureKind]?: StopFailureKind } = {
  oauth_org_not_allowed: "authentication_failed",
  account_on_hold: "authentication_failed",
  cloud_credential_error: "authentication_failed",
  overloaded: "server_error",
  model_not_found: "invalid_request",
};

function exactKindOf(error: unknown): StopFailureKind {
  if (!(error instanceof ModelError)) return "unknown";
  const { status = 0, overflow, code, message } = error;
  const account = accountFailures.find(([words]) => words.test(message));
  if (account) return account[1];
  if (status === 402 || (status === 429 && code === "unavailable")) return "billing_error"; // a quota that is used up
  if (code === "rate_limited") return "rate_limit";
  if (code === "overloaded") return "overloaded";
  if (code === "unauthorized") return "authentication_failed";
  if (status >= 500) return "server_error";
  if (status === 404) return "model_not_found";
  return status >= 400 || overflow ? "invalid_request" : "unknown";
}

// The `session` point: SessionStart, SessionEnd, SubagentStart, and the failure of a run.

/** The source of a session. */
type SessionSource = EventFields["SessionStart"]["source"] | "fork";

/** Asks SessionStart, and applies its answers except their context. */
async function startSession(
  hooks: Hooks,
  ctx: Scope,
  source: SessionSource,
): Promise<Answers> {
  const answers = await hooks.ask("SessionStart", ctx, () => ({
    source: source as EventFields["SessionStart"]["source"], // "fork" is one in "claude"
    ...titleOf(hooks, ctx),
    ...(source === "resume" || source === "fork" ? costOfResuming(hooks, ctx) : {}),
  }));
  if (source !== "clear" && source !== "compact") takeTitle(hooks, ctx, answers);
  const first = lastOf(answers, hooks.dialect, ({ specific }) => specific.initialUserMessage);
  if (first) hooks.memory.firstMessage.set(ctx, first);
  watchPaths(hooks, ctx, answers);
  return answers;
}

/** Returns the field with the title of the session, if a hook has given it one. */
function titleOf({ memory }: Hooks, ctx: Scope): { session_title?: string } {
  const session_title = memory.title.get(ctx);
  return session_title ? { session_title } : {};
}

/** Keeps the title that hooks give to the session, and sends it to clients. */
function takeTitle({ dialect, memory }: Hooks, ctx: Scope, answers: Answers): void {
  const title = lastOf(answers, dialect, ({ specific }) => specific.sessionTitle);
  if (!title || title === memory.title.get(ctx)) return;
  memory.title.set(ctx, title);
  ctx.emit({ type: "data", name: "session_title", data: title });
}

/** The seconds for which a provider keeps a prompt in its cache, by default. */
const cacheSeconds = 300;

/** Returns the fields about the first request of a session that has a response already. */
function costOfResuming({ memory }: Hooks, ctx: Scope): Partial<EventFields["SessionStart"]> {
  const last = memory.last.get(ctx);
  if (!last) return {};
  const seconds = Math.max(0, Math.round((ctx.run.now() - last.at) / 1_000));
  return {
    seconds_since_last_response: seconds,
    context_tokens: last.tokens,
    prompt_cache_likely_expired: seconds > cacheSeconds || last.replaced === true,
    estimated_cache_write_usd: 0,
  };
}

/** Creates the hook at `session`. */
export function sessionHook(hooks: Hooks): Pick<Middleware, "session"> {
  const { memory, background } = hooks;
  const watch = watchEvents(hooks);
  const elicitation = elicitationHooks(hooks);

  /** Returns the source of a session. The state of a fork is that of the session that it was made from. One that has lost its messages was cleared. */
  function sourceOf(ctx: SessionContext): SessionSource {
    const last = memory.last.get(ctx);
    if (ctx.source === "new") return last ? "clear" : "startup";
    return last && last.session !== ctx.run.session ? "fork" : "resume";
  }

  async function beginSession(ctx: SessionContext): Promise<readonly string[]> {
    const { resumed, run, settings } = ctx;
    memory.model.set(ctx, settings.model.id);
    if (resumed) return [];
    if (!run.parent) return contextOf(await startSession(hooks, ctx, sourceOf(ctx)));
    const agent = { agent_id: run.id, agent_type: run.agent };
    return contextOf(await hooks.ask("SubagentStart", ctx, () => agent));
  }

  /** After a run that was stopped or failed, hooks have the grace period of the run. */
  function lateOptions({ signal, run: { limits: { grace } } }: SessionContext): AskOptions {
    return signal.aborted ? { signal: new AbortController().signal, maxTime: grace } : {};
  }

  async function endSession(ctx: SessionContext): Promise<void> {
    const { run } = ctx;
    await background.rest(run, run.limits.grace);
    if (run.parent) return;
    await hooks.ask("SessionEnd", ctx, () => ({ reason: "other" }), lateOptions(ctx));
    await background.rest(run, run.limits.grace);
  }

  /** Reports a failure, and returns the result with the reason of a hook that ended the run. */
  async function finish(ctx: SessionContext, result: RunResult): Promise<RunResult> {
    if (result.status === "failed" && !memory.failed.get(ctx)) {
      const message = messageOf(result.error ?? result.reason ?? "The run failed.");
      await askStopFailure(hooks, ctx, "unknown", message, lateOptions(ctx));
    }
    const reason = memory.stopped.get(ctx);
    return reason && result.reason === endReason ? { ...result, reason } : result;
  }

  return {
    async session(ctx, next) {
      if (elicitation) hookServers(ctx, elicitation);
      const context = await beginSession(ctx);
      const isNew = ctx.source === "new";
      if (!isNew) hooks.addLater(ctx, context);
      let isPaused = false;
      try {
        const result = await next({
          ...(isNew && { context: [...ctx.context, ...context] }),
          ...(watch && { emit: (event) => watch(ctx, event) }),
        });
        isPaused = result.status === "paused";
        return await finish(ctx, result);
      } finally {
        if (isPaused) await background.rest(ctx.run, ctx.run.limits.grace);
        else await endSession(ctx);
      }
    },
  };
}

// The `compact` point: PreCompact, PostCompact, and SessionStart for texts that have to be repeated.

/** Creates the hook at `compact`. */
export function compactHook(hooks: Hooks): Pick<Middleware, "compact"> {
  const { memory } = hooks;
  return {
    async compact(ctx, next) {
      const trigger = ctx.trigger === "manual" ? "manual" : "auto";
      const custom_instructions = ctx.instructions || null;
      const before = await hooks.ask("PreCompact", ctx, () => ({ trigger, custom_instructions }));
      const blocked = hooks.dialect.declines ? blockOf(before) : undefined;
      if (blocked !== undefined) return declined(blocked);
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      const compact_summary = summaryOf(ctx, compaction);
      const last = memory.last.get(ctx);
      if (last) memory.last.set(ctx, { ...last, replaced: true });
      await hooks.ask("PostCompact", ctx, () => ({ trigger, compact_summary }));
      if (ctx.run.parent) return compaction;
      const texts = contextOf(await startSession(hooks, ctx, "compact"));
      if (texts.length === 0) return compaction;
      return { ...compaction, messages: [...compaction.messages, user(texts.join("\n"), hooks.name)] };
    },
  };
}

/** Returns the text of the messages that the compaction added. */
function summaryOf({ transcript }: CompactContext, { messages }: Extract<Compaction, { type: "compacted" }>): string {
  const known = new Set(transcript);
  const added = messages.filter((message) => !known.has(message));
  return added.map((message) => message.role === "tool" ? "" : textOf(message)).join("\n").trim();
}

// The points `prompt` and `input`: UserPromptExpansion for a prompt that is a command, and UserPromptSubmit, for prompts and for steering.

/** Creates the hook at `prompt`, and the hook at `input` for messages to a run while it works. They do not run for the prompts of subagents. */
export function promptHooks(hooks: Hooks): Pick<Middleware, "prompt" | "input"> {
  const { dialect, memory } = hooks;

  /** Returns the refusal of the prompt, if a hook refuses it. */
  function refusalOf(event: HookEvent, answers: Answers): Answer | undefined {
    const reason = stopOf(answers, event, dialect) ?? blockOf(answers);
    return reason === undefined ? undefined : cancelled(reason);
  }

  async function askExpansion(ctx: Scope, prompt: string): Promise<Answers> {
    const [, command_name, command_args = ""] = prompt.match(/^\/([\w:-]+)(?:\s+(.*))?$/s) ?? [];
    if (command_name === undefined) return [];
    const isMcp = command_name.startsWith("mcp__"); // as the home system names the prompts of servers
    const fields = {
      expansion_type: isMcp ? "mcp_prompt" : "slash_command",
      command_name,
      command_args,
      ...(isMcp && { command_source: "mcp" }),
      prompt,
    } as const;
    return await hooks.ask("UserPromptExpansion", ctx, () => fields);
  }

  /** Returns a refusal, or the texts for the model. */
  async function askAll(ctx: Scope, message: UserMessage): Promise<Answer | readonly string[]> {
    const prompt = textOf(message);
    const expanded = await askExpansion(ctx, prompt);
    const refused = refusalOf("UserPromptExpansion", expanded);
    if (refused) return refused;
    const source = message.from === undefined ? "sdk" : "system";
    const fields = () => ({ prompt, source, ...titleOf(hooks, ctx), ...imagesOf(message) }) as const;
    const submitted = await hooks.ask("UserPromptSubmit", ctx, fields);
    takeTitle(hooks, ctx, submitted);
    return refusalOf("UserPromptSubmit", submitted) ?? [...contextOf(expanded), ...contextOf(submitted)];
  }

  /** Asks about a message to a run while it works. The texts for the model are delivered with the message. */
  const steering: Pick<Middleware, "input"> = {
    async input(ctx, next) {
      const [message] = ctx.messages;
      if (ctx.source !== "steering" || message?.role !== "user") return await next();
      const answer = await askAll(ctx, message);
      if ("status" in answer) return refused(answer.reason ?? "");
      return await next({ context: [...ctx.context, ...answer] });
    },
  };

  return {
    ...(hooks.has("UserPromptSubmit", "UserPromptExpansion") && steering),
    async prompt(ctx, next) {
      if (ctx.resumed || ctx.run.parent) return await next();
      const answer = await askAll(ctx, ctx.prompt);
      if ("status" in answer) return answer;
      const context = [...ctx.context, ...memory.later(ctx).get(ctx), ...answer];
      memory.later(ctx).set(ctx, []);
      const first = memory.firstMessage.get(ctx);
      memory.firstMessage.set(ctx, ""); // otherwise an inner middleware of this kind would add it again
      return await next({ context, ...(first && { prompt: prefixed(first, ctx.prompt) }) });
    },
  };
}

function prefixed(first: string, prompt: UserMessage): UserMessage {
  return { ...prompt, parts: [{ type: "text", text: `${first}\n\n` }, ...prompt.parts] };
}

function imagesOf({ parts }: UserMessage) {
  const urls = parts.flatMap((part) => part.type === "media" && part.url !== undefined ? [part.url] : []);
  return urls.length > 0 && { image_urls: urls };
}
