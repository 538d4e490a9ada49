/**
 * Runs hooks that were written for Qoder or for Claude.
 *
 * @module
 */
import type { CanUseTool } from "./approval.ts";
import { configured, type HookConfig } from "./config.ts";
import { type DialectName, dialectOf } from "./dialect.ts";
import { hookMiddleware } from "./middleware.ts";
import type { IsClassifierDenial } from "./tool.ts";
import type { Middleware } from "../../../mod.ts";
import { expectNames } from "../../../src/core/kit.ts";

export type {
  HookAnswer,
  HookCallback,
  HookCallbackMatcher,
  HookConfig,
  HookOutput,
  HookSpecificOutput,
  PermissionAnswer,
} from "./config.ts";
export type { Decision, DialectName } from "./dialect.ts";
export type {
  CallFields,
  CommonInput,
  EffortLevel,
  EventFields,
  HookEvent,
  HookInput,
  InputOf,
  PermissionSuggestion,
  StopFailureKind,
  StopFields,
  UnsupportedEvent,
} from "./events.ts";
export type { CanUseTool } from "./approval.ts";
export type { IsClassifierDenial } from "./tool.ts";

/** Options of `claude_hooks()`. */
export interface ClaudeHooksOptions {
  /** The system that the hooks were written for. Default: "qoder". */
  readonly dialect?: DialectName | undefined;
  /** The root of the agent's files, as hooks receive it. Default: `/`. */
  readonly cwd?: string | undefined;
  /** Answers in place of a person, at the same time as the hooks of `PermissionRequest`; the first answer counts. Default: none. */
  readonly canUseTool?: CanUseTool | undefined;
  /** Returns whether a classifier made a denial: in "claude", `PermissionDenied` fires for such a denial only. Default: never. */
  readonly isClassifierDenial?: IsClassifierDenial | undefined;
  /**
   * Whether calls of one response run one after another, each with its hooks around it, as in the home systems. Calls of tools that are `readOnly` or
   * have `parallel: true` overlap all the same. False: all hooks of `PreToolUse` of a response run before the first call. Default: true.
   */
  readonly groups?: boolean | undefined;
}

/**
 * Runs the hooks of the Qoder Agent SDK, of the Claude Agent SDK and of Claude Code, unchanged. Subagents inherit them.
 *
 * | hooks of | run | and can |
 * |---|---|---|
 * | `SessionStart` | when a session is opened, and after a compaction | add context, add a text before the first prompt, watch files, give the session a title |
 * | `UserPromptExpansion` | for a prompt such as `/name arguments`, which an inner middleware expands | refuse the prompt, add context |
 * | `UserPromptSubmit` | for every prompt | refuse it, add context, give the session a title |
 * | `PreToolUse` | before a call | allow, deny, ask, defer, change the input, add context |
 * | `PermissionRequest` | before a person is asked | allow or deny in place of the person, and change the permission rules |
 * | `PermissionDenied` | after a guard denied a call | let the model try again |
 * | `PostToolUse`, `PostToolUseFailure` | after a call | replace the result, add context |
 * | `PostToolBatch` | after all calls of a response | add context, end the run |
 * | `Stop`, `SubagentStop` | before an agent or a subagent finishes | keep it going |
 * | `PreCompact`, `PostCompact` | around a compaction | decline it, in "claude" |
 * | `MessageDisplay` | for new lines of an answer | show other text |
 * | `Elicitation` | when a server of `mcp()` asks a person | answer in place of the person |
 * | `ElicitationResult` | when a person has answered a server | change or refuse the answer |
 * | `WorktreeCreate`, `WorktreeRemove` | for calls of `EnterWorktree` and `ExitWorktree` | create the worktree |
 * | `SubagentStart`, `PostModelSwitch` | when a subagent begins, or another model has answered | add context |
 * | `SessionEnd`, `StopFailure`, `Notification`, `CwdChanged`, `FileChanged`, `InstructionsLoaded` | afterwards | observe |
 *
 * All matching hooks of an event run at the same time, each with its own copy of the input, its own `AbortSignal` and its own timeout in seconds. If a hook
 * throws, is late or returns an invalid output, it has no opinion, unless it has `onFailure: "block"`; a `warning` reports it, and the error goes to `onError`.
 *
 * A denial in the form of another system, such as `{ permission_decision: "deny" }`, `{ approved: false }` or `{ result: { action: "deny_tool" } }`, denies the
 * call or refuses the prompt at `PreToolUse`, `PermissionRequest`, `UserPromptSubmit`, `UserPromptExpansion` and `WorktreeCreate`, and a question in such a
 * form asks. A `warning` reports it, and every other unknown member of an output.
 *
 * A `warning` reports matchers that match no tool: an invalid regular expression, or a permission rule such as `Bash(rm *)`.
 *
 * If hooks concern calls, the calls of one response run one after another, each with `PreToolUse`, its work and `PostToolUse` before the next one begins; only
 * calls of tools that are `readOnly` or have `parallel: true` overlap. The option `groups` turns this off.
 *
 * A deny is final. An "allow" answers questions of inner layers and overrides no denial; that of `PermissionRequest` answers all of them. `continue: false` and `interrupt: true` end the run, and the
 * runs that it works for. Texts for the person are `notice` events. Texts for the model are never shown to the person.
 *
 * Hooks receive the names and inputs of the tools of this agent. For hooks of `Edit|Write` that read `tool_input.file_path`, give tools these names and
 * inputs, as `Bash` below: a tool `Edit` can pass its calls to the `edit_file` among the `tools` of `workspace()`. The tools of `mcp()` have the names
 * `mcp__server__tool`, as in the home systems. An unknown tool and an invalid input run no hook.
 *
 * The dialects differ where the systems differ:
 *
 * | | `qoder` | `qodercli` | `claude` |
 * |---|---|---|---|
 * | a matcher for tools | a regular expression | the same | names, if it is a list of them; else a regular expression |
 * | `defer` | no decision | the same | pauses the run and asks the hook again on resume, if the response has one call; else no decision |
 * | an "allow" of a hook or of a rule of the session | answers the questions of the tool and of inner guards | the same | answers the question of the tool |
 * | of several inputs or outputs | the last in the configuration counts | the same | the last to arrive counts |
 * | a `tool_response` that is JSON | text | the same | parsed, for hooks that read `tool_response.filePath` |
 * | an empty output | is ignored | counts | counts |
 * | an invalid field | is ignored | the same | voids the output, except a deny |
 * | of several answers to a request | a deny counts | the last one counts | a deny counts |
 * | `sequential` | one hook after another, each with the changes of those before it | the same | is ignored |
 * | `suppressOutput` | hides the result and `systemMessage` from the person | the same | has no effect |
 * | `systemMessage` of `Notification`, `PreCompact`, `SessionEnd` and the two events of servers | is shown | the same | is discarded |
 * | `PermissionDenied` | fires for every denial of a guard | the same | fires for a classifier, see `isClassifierDenial` |
 * | `FileChanged` | fires for every file, or for the files in `watchPaths` | the same | fires for names in matchers and files in `watchPaths` |
 * | a callback that is late at `PreToolUse`, `PermissionRequest`, `UserPromptSubmit` | has no effect | the same | blocks; a command of `command_hooks()` does not |
 * | the effort, the cost of resuming, the sources `clear` and `fork`, `overloaded` and the other kinds of `StopFailure` of 2026 | are absent; another kind stands for a new one | the same | are in inputs |
 * | an answer that ends at the limit of its length | fires `Stop` | the same | fires `StopFailure` with `max_output_tokens` |
 * | keeping an agent from stopping | up to `limits.continuations` | the same | eight times in a row |
 * | timeout in seconds | 600 | 600 | 60; 30 for a prompt, 10 for a line, 1.5 at the end |
 *
 * The place in `use` matters. Guards that no hook may silence stand before it, and so does `transcript()`. If an inner middleware changes an input,
 * `PreToolUse` runs again for the new input. To observe the files of `workspace()`, it stands before `workspace()`.
 *
 * Differences from the home systems:
 *
 * - A question without an answer pauses the run. On resume, `PreToolUse` is not asked again.
 * - `updatedPermissions` hold for the session, whatever their destination. Directories have no effect, because a workspace has one root.
 * - Their rules match what a call does, however it is spelled: `Bash(rm *)` also matches `"rm" -rf`, `ls; /bin/rm x` and `echo $(rm x)`, `Read(secret.txt)`
 *   also `a/../secret.txt`, and `WebFetch(domain:evil.com)` also `https://EVIL.com./`. A call that cannot be read matches rules that deny or ask, and none that
 *   allows. A rule is about the field that the tool declares: `command`, `file_path`, `notebook_path`, `path`, `url`, `pattern`, `query`, `subagent_type` or
 *   `skill`. It cannot know what a program does with its words, or where a link leads.
 * - `UserPromptSubmit` fires for a message to a run while it works when the message arrives. Its context is delivered with the message. If another process
 *   executes the run, a `systemMessage` of the hook is not shown.
 * - Inputs are validated against the tool's schema before `PreToolUse` and again after `updatedInput`.
 * - A title is kept in the state of the session, and sent to clients as `data` with the name "session_title". A session is `fork` if `fork()` of a store made it,
 *   and `clear` if it made it without messages. `estimated_cache_write_usd` is 0: no prices are known. A prompt `/mcp__server__prompt` is an `mcp_prompt`.
 * - `reloadSkills`, `terminalSequence`, `suppressOriginalPrompt` and `classifierContext` have no effect.
 * - These events never occur, and a `warning` reports hooks of them: `Setup` and `ConfigChange` (there are no settings files), `DirectoryAdded` (a workspace
 *   has one root), `PreSkillShellCommand` (`skills()` runs no command), `PreModelSwitch` (no person chooses another model), `TaskCreated`, `TaskCompleted` and `TeammateIdle` (there are no task lists and teams).
 * - An answer of `Elicitation` that does not fit its form is reported, and the person is asked; one of `ElicitationResult` is declined. A server that asks again
 *   asks the hooks again, an answer of a hook is no `ElicitationResult`, and servers before 2026 are not offered to ask.
 *
 * Throws a `TypeError` if the hooks of an event are not a list of matchers with functions.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const protect: HookCallback = async (input) => {
 *   if (input.hook_event_name !== "PreToolUse") return {};
 *   const { command } = input.tool_input as { command: string };
 *   if (!command.includes("rm -rf")) return {};
 *   return {
 *     hookSpecificOutput: {
 *       hookEventName: "PreToolUse",
 *       permissionDecision: "deny",
 *       permissionDecisionReason: "Nothing is deleted here.",
 *     },
 *   };
 * };
 *
 * const bash = tool({
 *   name: "Bash",
 *   description: "Runs a command",
 *   input: z.object({ command: z.string() }),
 *   execute: ({ command }) => `ran ${command}`,
 * });
 * const assistant = agent({
 *   model: scripted({ calls: [["Bash", { command: "rm -rf /" }], ["Bash", { command: "ls" }]] }, "Done."),
 *   tools: [bash],
 *   use: [claude_hooks({ PreToolUse: [{ matcher: "Bash", hooks: [protect] }] })],
 * });
 *
 * const { messages } = await assistant.run("Clean up").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status }) => status), ["denied", "ok"]);
 * ```
 */
export function claude_hooks(
  config: HookConfig,
  options: ClaudeHooksOptions = {},
): Middleware {
  const known = ["dialect", "cwd", "canUseTool", "isClassifierDenial", "groups"];
  expectNames("Cannot create claude_hooks()", options, known);
  const { dialect: name = "qoder", cwd = "/", canUseTool, isClassifierDenial, groups = true } = options;
  const dialect = dialectOf(name);
  return hookMiddleware(configured(config, dialect), {
    ...{ name: "claude_hooks", dialect, cwd },
    canUseTool,
    isClassifierDenial,
    groups,
  });
}
