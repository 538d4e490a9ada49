/**
 * Runs hooks that were written for GitHub Copilot's SDK.
 *
 * @module
 */
import { callHooks, decisionsOf, type McpTool, reviewCalls } from "./call.ts";
import type { SessionHooks } from "./hooks.ts";
import { handlersOf, type HookName, hookNames } from "./outputs.ts";
import { sessionHooks } from "./session.ts";
import { atNeededPoints, expectNoOption, type Needs } from "../kit/adapter.ts";
import { mcpToolOf, separateCalls } from "../kit/calls.ts";
import type { Middleware, Model, ModelContext, ModelResponse } from "../../../mod.ts";
import { expectChoice, expectNames } from "../../../src/core/kit.ts";

export type {
  AgentStopHookInput,
  AgentStopHookOutput,
  ErrorOccurredHookInput,
  ErrorOccurredHookOutput,
  HookHandler,
  HookInput,
  HookInvocation,
  HookOptions,
  NotificationHookInput,
  NotificationHookOutput,
  PermissionRequestHookInput,
  PermissionRequestHookOutput,
  PostToolUseFailureHookInput,
  PostToolUseFailureHookOutput,
  PostToolUseHookInput,
  PostToolUseHookOutput,
  PreCompactHookInput,
  PreMcpToolCallHookInput,
  PreMcpToolCallHookOutput,
  PreToolUseHookInput,
  PreToolUseHookOutput,
  SessionEndHookInput,
  SessionEndHookOutput,
  SessionHooks,
  SessionStartHookInput,
  SessionStartHookOutput,
  SubagentStartHookInput,
  SubagentStartHookOutput,
  SubagentStopHookInput,
  SubagentStopHookOutput,
  UserPromptSubmittedHookInput,
  UserPromptSubmittedHookOutput,
  UserPromptTransformedHookInput,
  UserPromptTransformedHookOutput,
} from "./hooks.ts";
export { type McpTool, metaOf } from "./call.ts";
export type { ToolBinaryResult, ToolResultObject, ToolResultType } from "./outputs.ts";

/** Options of `copilot_hooks()`. */
export interface CopilotOptions {
  /** The root of the agent's files, as hooks receive it. Default: `/`. */
  readonly cwd?: string;
  /** The models that `modifiedConfig` may choose, by name. Default: none. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Returns the MCP server of a tool. Default: by the name `mcp__server__tool`. */
  readonly mcp?: (toolName: string) => McpTool | undefined;
  /**
   * Whether `suppressOutput` of `onPostToolUse` means what the document says: the result is hidden from the person. Default: false, it is withheld from the
   * conversation, as in the system.
   */
  readonly document?: boolean;
  /**
   * Whether calls of one response run one after another, each with its hooks around it, as in the home system. Calls of tools that are `readOnly` or
   * have `parallel: true` overlap all the same. False: `onPreToolUse` runs for all calls of a response before the first one. Default: true.
   */
  readonly groups?: boolean;
}

/** The hooks that need each point; `unknown` stands for hooks that do not exist, which a warning reports. */
const needs: Needs<HookName | "unknown"> = {
  session: [
    ...["onSessionStart", "onSessionEnd", "onUserPromptSubmitted", "unknown"] as const,
    ...["onSubagentStart", "onSubagentStop", "onNotification"] as const,
  ],
  input: ["onUserPromptSubmitted", "onUserPromptTransformed"],
  prompt: ["onSessionStart", "onUserPromptSubmitted", "onUserPromptTransformed"],
  turn: ["onNotification"],
  model: ["onPreToolUse"],
  tool: ["onPreToolUse", "onPostToolUse", "onPostToolUseFailure"],
  approval: ["onPreToolUse", "onPermissionRequest"],
  execute: ["onPreMcpToolCall"],
  stop: ["onAgentStop", "onSubagentStop"],
  compact: ["onPreCompact"],
  error: ["onErrorOccurred"],
};

/**
 * Runs hooks that were written for GitHub Copilot's SDK, unchanged: the six in its documents, and those that came later. Each hook has one handler: of
 * several registrations, the last one. A handler that fails, or returns nothing, changes nothing. An invalid field is ignored, and the other fields count. A
 * denial in the form of another system, such as `{ decision: "block" }` or `{ approved: false }`, denies the call or refuses the prompt that a hook runs
 * before. A `warning` reports failures, invalid and unknown fields, and unknown hooks.
 *
 * - `onSessionStart` runs when a session begins, and when it continues with another prompt. Its context is a message before the prompt; in a known session,
 *   after it.
 * - `onUserPromptSubmitted` and `onUserPromptTransformed` run for a prompt, and for a message to a run while it works. No output of their own refuses it.
 * - `onPreToolUse` runs before each call, in the model's order; the call and `onPostToolUse` end before the next one begins. `modifiedArgs` replace the
 *   input, also in the transcript. A denial is final, "ask" asks a person, and "allow" answers questions of the tool and of inner guards, and overrides no
 *   denial. It runs once per call.
 * - `onPreMcpToolCall` runs right before a call of a tool of an MCP server; the tool reads the metadata with `metaOf()`.
 * - `onPostToolUse` runs after a successful call, `onPostToolUseFailure` after a failed one; neither after a call that was denied, late or cut short.
 * - `additionalContext` is a message for the model after the results.
 * - `onErrorOccurred` can retry a model request or a call, `retryCount` times in a row. A skipped call is answered as failed. `userNotification` is a `notice`.
 *   `suppressOutput` hides the failed result of a call from the person.
 * - `onAgentStop` keeps the agent going with `reason` as the next message, eight times in a row, and up to the limit `continuations`. `onSubagentStop` does
 *   the same for a subagent, and `modifiedResponse` replaces the answer that its caller receives. The context of `onSubagentStart` is before its prompt.
 * - `onPermissionRequest` runs before other guards decide about a call: "allow" answers their questions and overrides no denial, and not if the input has
 *   `requestSandboxBypass: true`; `interrupt` of a denial ends the run. `onPreCompact` runs before a compaction, and `onNotification` in the background when a
 *   person is asked: its context is a message before the next request. In the home system, settings files alone have these three.
 * - `onSessionEnd` runs when a run has ended. Its output is in an event `data` named `copilot_hooks.session_end`. If the hook has a handler, the text of the
 *   final answer is sent to clients only after the hook, so that `suppressOutput` can hide it.
 *
 * Subagents inherit the hooks of tools and failures: `sessionId` in the input is the session of the subagent, and in `invocation` that of its caller.
 *
 * By default hooks receive the time in milliseconds, as in the document and on the wire; in the dialect "node" a `Date`, as in the Node SDK. The working
 * directory is in `cwd` and in `workingDirectory`, in both dialects. Hooks receive the names and inputs of the tools of this agent: for hooks of `bash` and
 * `view`, give tools these names.
 *
 * Differences from the home system:
 *
 * - Every session begins with a prompt: its `source` is "startup", as in the document, and in the dialect "node" "new", as in the SDK's tests.
 *   `initialPrompt` is that prompt before other middleware change it.
 * - `modifiedConfig` supports `systemMessage`, `availableTools`, `excludedTools` and `model`; a `warning` reports other fields.
 * - `onUserPromptSubmitted` fires for a message to a run while it works when the message arrives. `suppressOutput` has no effect then.
 * - A failure is never shown to clients beyond an error id, so `suppressOutput` of `onErrorOccurred` has nothing else to hide.
 *
 * Throws a `TypeError` for a handler that is not a function.
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
/** Runs hooks that receive the time as a `Date`. */
export function copilot_hooks(
  hooks: SessionHooks<Date> | readonly SessionHooks<Date>[],
  options: CopilotOptions & { readonly dialect: "node" },
): Middleware;
export function copilot_hooks(
  hooks: SessionHooks<never> | readonly SessionHooks<never>[],
  options: CopilotOptions & { readonly dialect?: "document" | "node" } = {},
): Middleware {
  const subject = "Cannot create copilot_hooks()";
  const known = ["dialect", "cwd", "models", "mcp", "document", "groups"];
  expectNames(subject, options, known);
  const { dialect = "document", cwd = "/", models = {}, mcp = mcpToolOf, document = false, groups = true } = options;
  expectChoice(subject, "dialect", dialect, ["document", "node"]);
  const time = dialect === "node" ? () => new Date() : Date.now;
  const handlers = handlersOf([hooks].flat(), { time, cwd });
  for (const each of [hooks].flat()) expectNoOption(subject, each, hookNames, known);
  const decisions = decisionsOf();
  const all = {
    name: "copilot_hooks",
    inherit: true,
    ...sessionHooks(handlers, models, dialect === "node" ? "new" : "startup"),
    ...callHooks(handlers, decisions, { mcp, document, groups }),
    async model(ctx: ModelContext, next: () => Promise<ModelResponse>) {
      const response = await next();
      return ctx.purpose === "summary" ? response : await reviewCalls(handlers, decisions, ctx, response);
    },
  };
  const isNeeded = (name: HookName | "unknown") =>
    name === "unknown" ? handlers.unknown.length > 0 : handlers.has(name);
  const isRequested = groups && handlers.has("onPreToolUse", "onPostToolUse", "onPostToolUseFailure");
  const used = atNeededPoints(all, groups ? { ...needs, model: [] } : needs, isNeeded);
  return isRequested ? { ...used, ...separateCalls() } : used;
}
