/**
 * Runs hooks that were written for Qoder or for Claude.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { configured, type HookConfig } from "./config.ts";
import { type DialectName, dialects } from "./dialect.ts";
import { middlewareOf } from "./middleware.ts";
import type { CanUseTool } from "./permission_request.ts";

export type { HookAnswer, HookCallback, HookConfig, HookMatcher } from "./config.ts";
export type { Decision, DialectName } from "./dialect.ts";
export type * from "./input.ts";
export type { HookOutput, HookSpecificOutput, PermissionAnswer } from "./output.ts";
export type { CanUseTool } from "./permission_request.ts";

/** For which system hooks were written, and where they are. */
export interface ClaudeHooksOptions {
  /** The system, in whose manner hooks are chosen, asked and heard. Default: "qoder". */
  readonly dialect?: DialectName | undefined;
  /** Where the root of the agent's files is, as hooks are told. Default: `/`. */
  readonly cwd?: string | undefined;
  /** Asked where a person would be, at the same time as the hooks of `PermissionRequest`: whoever answers first counts. Default: nobody. */
  readonly canUseTool?: CanUseTool | undefined;
}

/**
 * Runs the hooks of the Qoder Agent SDK, of the Claude Agent SDK and of Claude Code, unchanged. Agents beneath have them too.
 *
 * | hooks of | are asked | and may |
 * |---|---|---|
 * | `SessionStart` | before a run of a session, and after a compaction | add context, say something as the person, watch files |
 * | `UserPromptExpansion` | about a prompt like `/name arguments`, which a middleware beneath expands | refuse the prompt, add context |
 * | `UserPromptSubmit` | about every prompt | refuse it, add context |
 * | `PreToolUse` | about a call on its way in | allow, deny, ask, defer, change the input, add context |
 * | `PermissionRequest` | where a person would be asked | allow or deny in their place, and change what is asked from then on |
 * | `PermissionDenied` | after a guard denied a call | let the model try again |
 * | `PostToolUse`, `PostToolUseFailure` | about a result on its way out | replace it, add to it |
 * | `PostToolBatch` | after all calls of a response | add context, end the run |
 * | `Stop`, `SubagentStop` | before an agent finishes, or one beneath does | keep it going |
 * | `PreCompact`, `PostCompact` | around a compaction | decline it, in `claude` |
 * | `MessageDisplay` | about each line of an answer | show another one |
 * | `WorktreeCreate`, `WorktreeRemove` | about calls of `EnterWorktree` and `ExitWorktree` | make the worktree |
 * | `SubagentStart`, `PostModelSwitch` | when an agent beneath begins, or another model has answered | add context |
 * | `SessionEnd`, `StopFailure`, `Notification`, `CwdChanged`, `FileChanged`, `InstructionsLoaded` | when it has happened | watch |
 *
 * All hooks that are for what happens are asked at the same time, each with a copy of its own, an `AbortSignal` of its own and a time of its own, in seconds.
 * One that throws, is too late or gives what it may not has no opinion, unless it says `onFailure: "block"`; a `warning` says so, and the operator is told
 * why. A deny is final whoever gives it, and no `allow` outweighs a guard's. `continue: false` ends the run. What is for the person is told as a `notice`,
 * and what is for the model never is.
 *
 * Hooks see tools by the names and with the inputs that they have here. For hooks of `Edit|Write` that read `tool_input.file_path`, name tools so, as
 * `Bash` is below: a tool `Edit` may hand its calls on to the `edit_file` among the `tools` of `workspace()`. Those of `mcp()` are named
 * `mcp__server__tool`, as they are at home.
 *
 * The dialects differ where the systems do:
 *
 * | | `qoder` | `qodercli` | `claude` |
 * |---|---|---|---|
 * | a matcher for tools | a regular expression | the same | names, where it is a list of them; else a regular expression |
 * | `defer` | is no decision | the same | pauses the run; the hook is asked again when it goes on |
 * | of several inputs or outputs | the last in the configuration counts | the same | the last that was given counts |
 * | a `tool_response` that is JSON | its text | the same | what it says: an object, for hooks that read `tool_response.filePath` |
 * | an output that is empty | counts as none | counts | counts |
 * | of several answers to a request | a deny counts | the last one counts | a deny counts |
 * | `sequential` | one after another, each told what was changed | the same | is ignored |
 * | keeping an agent going | as long as `limits.continuations` lets it | the same | eight times in a row |
 * | seconds that a hook has | 600 | 600 | 60; 30 for a prompt, 10 for a line, 1.5 at the end |
 *
 * Where it stands in `use` matters: rules that no hook may silence stand before it, and so does `transcript()`. Hooks see inputs as they are there: what a
 * middleware after it makes of an input, `PreToolUse` is asked about once more. To hear what others do to the files of `workspace()`, it stands before that.
 *
 * What differs from home: a question that nobody answers pauses the run, and `PreToolUse` is asked again when it goes on. `updatedPermissions` hold for the
 * session, whichever settings they are for; directories mean nothing here. Once a hook has said `watchPaths`, those are the files that are watched. What is
 * said for the model beside the run, such as at a `Notification`, is in its next request. `sessionTitle`, `reloadSkills`, `terminalSequence`,
 * `suppressOriginalPrompt` and `classifierContext` have no meaning here. These events never happen, and a `warning` says so where they have hooks: `Setup` and `ConfigChange` (there are no
 * settings files), `DirectoryAdded` (a workspace has one root), `PreModelSwitch` (no person chooses another model), `TaskCreated`, `TaskCompleted` and
 * `TeammateIdle` (there are no task lists and no teams), `Elicitation` and `ElicitationResult` (no MCP server asks the person).
 *
 * Throws a `TypeError` where the hooks of an event are no list of matchers with functions.
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
  { dialect: name = "qoder", cwd = "/", canUseTool }: ClaudeHooksOptions = {},
): Middleware {
  const dialect = dialects[name];
  if (!dialect) throw new TypeError(`Cannot use hooks of "${name}": there is ${Object.keys(dialects).join(", ")}`);
  return middlewareOf(configured(config, dialect), { name: "claude_hooks", dialect, cwd, canUseTool });
}
