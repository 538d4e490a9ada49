/**
 * Runs hooks that were written for GitHub Copilot's SDK.
 *
 * @module
 */
import {
  abortRun,
  allow,
  ask,
  type Change,
  continueWith,
  denied,
  deny,
  type Middleware,
  type Model,
  type Point,
  type Scope,
  skip,
  state,
  tryAgain,
  user,
} from "../../../mod.ts";
import { points } from "../../../src/core/kit.ts";
import { settingsOf } from "./config.ts";
import { handlersOf, transcriptOf } from "./handlers.ts";
import type { SessionHooks } from "./hooks.ts";
import { accompanied, type McpTool, namedAsMcp } from "./mcp.ts";
import type { HookName } from "./outputs.ts";
import { after, also } from "./post_tool_use.ts";
import { decide, decidedOf, forget, refusal, reviewed } from "./pre_tool_use.ts";
import { withheld } from "./result.ts";
import { closed, failureOf, submitted, waitOf } from "./run.ts";

export type * from "./hooks.ts";
export { type McpTool, metaOf } from "./mcp.ts";
export type { ToolBinaryResult, ToolResultObject, ToolResultType } from "./result.ts";

/** Where hooks run, and what they may choose from. */
export interface CopilotOptions {
  /** Where the root of the agent's files is, as hooks are told. Default: `/`. */
  readonly cwd?: string;
  /** The models that `modifiedConfig` may choose, by name. Default: none. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Says of which MCP server a tool is. Default: those named `mcp__server__tool`. */
  readonly mcp?: (toolName: string) => McpTool | undefined;
}

/** At which points which hooks are needed. */
const needs: Readonly<Partial<Record<Point, readonly HookName[]>>> = {
  session: ["onSessionStart", "onSessionEnd", "onUserPromptSubmitted"],
  prompt: ["onSessionStart", "onUserPromptSubmitted", "onUserPromptTransformed"],
  model: ["onPreToolUse"],
  tool: ["onPreToolUse", "onPostToolUse", "onPostToolUseFailure"],
  approval: ["onPreToolUse"],
  execute: ["onPreMcpToolCall"],
  stop: ["onAgentStop"],
  error: ["onErrorOccurred"],
};

/** What a hook said when a known session was opened: it waits for the prompt. */
const opening = state("copilot_hooks.opening", () => "");
/** Whether the person is not shown the answer. */
const hidden = state("copilot_hooks.hidden", () => false);
/** Whether a hook has kept the agent from stopping. */
const kept = state("copilot_hooks.kept", () => false);

/**
 * Runs hooks that were written for GitHub Copilot's SDK, unchanged: the six that its documents name, and the four that came later. There is one handler for
 * each hook: of several registrations, the last that has it. A handler that fails leaves everything as it is, and so does one that gives nothing; a field
 * that is not in form is left out, and takes no other with it. Whoever watches is warned of both, and of hooks that there are not.
 *
 * - `onSessionStart` comes when a session begins, and when it goes on with another prompt. Its context is a message before the prompt, or after it then.
 * - `onPreToolUse` comes when the model has answered, for each of its calls in their order. `modifiedArgs` are what runs, and what the transcript keeps;
 *   what is denied is final, "ask" asks a person, and "allow" answers what the tool or a guard after it asks, but no denial. Nobody is asked twice about a call.
 * - `onPreMcpToolCall` comes right before a call that goes to an MCP server; its tool reads what was chosen by `metaOf()`.
 * - `onPostToolUse` comes where a call succeeded, `onPostToolUseFailure` where it failed, and neither where it was denied, was too late or was cut short.
 * - `additionalContext` is for the model, in a message of its own after the results. A result that is suppressed is withheld from the model and the person.
 * - `onErrorOccurred` may have a request or a call tried again `retryCount` times in a row; a call that is skipped is answered as failed.
 *   `userNotification` is a notice for the person.
 * - `onAgentStop` keeps the agent going with `reason` as the next message, within the limit `continuations`.
 * - `onSessionEnd` comes when a run has ended. What it gives is told in an event `data` named `copilot_hooks.session_end`.
 *
 * Agents that are tools have the hooks of tools and of failures too: their `sessionId` is then the agent's, and that of `invocation` the caller's.
 *
 * By default hooks are told the time in milliseconds, as the document has it and as they are sent; the dialect "node" gives a `Date`, as the Node SDK does.
 * Where the agent is, they read as `cwd` and as `workingDirectory`, whichever it is. They see tools by the names and with the inputs that they have here:
 * for hooks of `bash` and `view`, name tools so.
 *
 * Throws a `TypeError` where a handler is no function.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const blocked = ["bash", "shell", "delete_file"];
 * const hooks = copilot_hooks({
 *   onPreToolUse: async (input) => {
 *     if (blocked.includes(input.toolName)) {
 *       return { permissionDecision: "deny", permissionDecisionReason: `${input.toolName} is not permitted here` };
 *     }
 *     return { permissionDecision: "allow" };
 *   },
 * });
 * const tools = ["bash", "view"].map((name) =>
 *   tool({ name, description: "Works on a file", input: z.object({ path: z.string() }), execute: ({ path }) => path })
 * );
 * const model = scripted({ calls: [["bash", { path: "a" }], ["view", { path: "b" }]] }, "Done.");
 *
 * const { messages } = await agent({ model, tools, use: [hooks] }).run("Go").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status, parts }) => [status, parts]), [
 *   ["denied", [{ type: "text", text: "Denied by preToolUse hook: bash is not permitted here" }]],
 *   ["ok", [{ type: "text", text: "b" }]],
 * ]);
 * ```
 */
export function copilot_hooks(
  hooks: SessionHooks | readonly SessionHooks[],
  options?: CopilotOptions & { readonly dialect?: "document" },
): Middleware;
/** Runs hooks that are told the time as a `Date`. */
export function copilot_hooks(
  hooks: SessionHooks<Date> | readonly SessionHooks<Date>[],
  options: CopilotOptions & { readonly dialect: "node" },
): Middleware;
export function copilot_hooks(
  hooks: SessionHooks<never> | readonly SessionHooks<never>[],
  { dialect = "document", cwd = "/", models = {}, mcp = namedAsMcp }: CopilotOptions & {
    readonly dialect?: "document" | "node";
  } = {},
): Middleware {
  const time = dialect === "node" ? () => new Date() : Date.now;
  const handlers = handlersOf([hooks].flat(), { time, cwd });
  const all: Middleware = {
    async session(ctx, next) {
      if (ctx.run.parent) return await next();
      const { resumed, source, settings, context } = ctx;
      if (!resumed) handlers.unknown.forEach((name) => skipped(ctx, name));
      const { additionalContext, modifiedConfig = {} } = resumed
        ? {}
        : await handlers.ask("onSessionStart", ctx, "session", { source });
      if (additionalContext && source === "resume") opening.set(ctx, additionalContext);
      const result = await next({
        settings: settingsOf(modifiedConfig, settings, models, (field) => leftOut(ctx, field)),
        ...(additionalContext && source === "new" && { context: [...context, additionalContext] }),
      });
      if (result.status === "paused") return result;
      const shown = await closed(handlers, ctx, result);
      return shown && !hidden.get(ctx) ? result : { ...result, text: "" };
    },
    async prompt(ctx, next) {
      if (ctx.run.parent) return await next();
      if (ctx.resumed) return await next(heard(ctx));
      const said = opening.get(ctx);
      const given = said ? { ...ctx, context: [...ctx.context, said] } : ctx;
      const { prompt, context, hide } = await submitted(handlers, given);
      hidden.set(ctx, hide);
      return await next({ prompt, context, ...heard(ctx) });
    },
    async model(ctx, next) {
      return await reviewed(handlers, ctx, await next());
    },
    async tool(ctx, next) {
      const { call: { id }, name, input } = ctx;
      const known = decidedOf(ctx, id);
      const { decided, args } = known
        ? { decided: known, args: undefined }
        : await decide(handlers, ctx, "tool", { id, name, input });
      const { decision, context } = decided;
      if (decision === "deny") return also(denied(refusal(decided)), context);
      const result = also(await next(args === undefined ? undefined : { input: args }), context);
      forget(ctx, id);
      const came = await after(handlers, ctx, result.input ?? args ?? input, result);
      return decided.withheld ? withheld(came) : came;
    },
    async approval(ctx, next) {
      const { call: { id }, name, input } = ctx;
      const decided = decidedOf(ctx, id) ?? (await decide(handlers, ctx, "approval", { id, name, input })).decided;
      const { decision, reason } = decided;
      if (decision === "deny") return deny(refusal(decided));
      if (decision === "ask") return ask(reason || `Run ${name}?`);
      const beneath = await next();
      return decision === "allow" && beneath.type === "ask" ? allow() : beneath;
    },
    async execute(ctx, next) {
      const tool = mcp(ctx.tool.name);
      return tool ? await accompanied(handlers, ctx, tool, next) : await next();
    },
    async stop(ctx, next) {
      if (ctx.run.parent) return await next();
      const transcriptPath = transcriptOf(ctx);
      const { decision, reason } = await handlers.ask("onAgentStop", ctx, "stop", {
        stopReason: "end_turn",
        stopHookActive: kept.get(ctx),
        ...(transcriptPath !== undefined && { transcriptPath }),
      });
      kept.set(ctx, decision === "block");
      return decision === "block" ? continueWith(user(reason || "Go on.", "copilot_hooks")) : await next();
    },
    async error(ctx, next) {
      const said = await handlers.ask("onErrorOccurred", ctx, "error", failureOf(ctx));
      const { errorHandling, retryCount = 1, userNotification } = said;
      if (userNotification) ctx.emit({ type: "notice", text: userNotification });
      const mayRetry = (ctx.source === "model" || ctx.source === "execute") && ctx.attempt <= retryCount;
      if (errorHandling === "retry" && mayRetry) return tryAgain({ after: waitOf(ctx.error) });
      if (errorHandling === "skip") return skip();
      return errorHandling === "abort" ? abortRun() : await next();
    },
  };
  const wanted = points.filter((point) =>
    handlers.has(...needs[point] ?? []) || (point === "session" && handlers.unknown.length > 0)
  );
  return { name: "copilot_hooks", inherit: true, ...Object.fromEntries(wanted.map((point) => [point, all[point]])) };
}

/** What the person hears: where the answer is hidden, everything but the answer as it streams. */
function heard(ctx: Scope): Change {
  if (!hidden.get(ctx)) return {};
  return {
    emit(event) {
      if (event.type !== "text.delta" && event.type !== "reasoning.delta") ctx.emit(event);
    },
  };
}

/** Says that nobody asks what is registered as a hook, and is none. */
function skipped({ emit }: Scope, name: string): void {
  const message = `${name} is never asked: there is no such hook.`;
  emit({ type: "warning", code: "hook.skipped", message, middleware: "copilot_hooks", point: "session" });
}

/** Says what of `modifiedConfig` nothing came of. */
function leftOut({ emit }: Scope, field: string): void {
  const message = `onSessionStart gave something that is left out: modifiedConfig.${field}`;
  emit({ type: "warning", code: "hook.failed", message, middleware: "copilot_hooks", point: "session" });
}
