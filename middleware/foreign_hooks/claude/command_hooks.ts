/**
 * Runs the hooks in settings files of Qoder, Claude Code and GitHub Copilot. For Deno, Node and Bun.
 *
 * @module
 */
import process from "node:process";
import { type DialectName, dialectOf } from "./dialect.ts";
import type { HookInput } from "./events.ts";
import { hookMiddleware } from "./middleware.ts";
import { matchesCall, parseRule } from "./permissions.ts";
import {
  agentHandler,
  checkHttpOptions,
  commandHandler,
  environmentsOf,
  type Handler,
  type HookAgent,
  httpHandler,
  type HttpHandlerOptions,
  type McpClient,
  mcpToolHandler,
  poster,
  promptHandler,
} from "./command_hooks/handlers.ts";
import { type CommandSettings, type HandlerConfig, joinFiles, readSettings } from "./command_hooks/settings.ts";
import { readCopilot } from "../copilot/commands.ts";
import { copilot_hooks } from "../copilot/copilot_hooks.ts";
import { warnSilent } from "../kit/adapter.ts";
import type { Middleware, Model } from "../../../mod.ts";
import { expectNames } from "../../../src/core/kit.ts";

export type { HookAgent, HttpHandlerOptions, McpClient } from "./command_hooks/handlers.ts";
export type {
  AnyHandler,
  CommandHook,
  CommandMatcher,
  CommandSettings,
  HandlerConfig,
  HttpHook,
  McpToolHook,
  PromptHook,
} from "./command_hooks/settings.ts";
export type { DialectName };

/** Options of `command_hooks()`. */
export interface CommandHooksOptions {
  /** The system that the settings were written for: "copilot", or a dialect of `claude_hooks()`. Default: "qoder". */
  readonly dialect?: DialectName | "copilot" | undefined;
  /** The directory in which commands run: the root of the agent's files. Default: the working directory of this process. */
  readonly cwd?: string | undefined;
  /**
   * Variables of commands, in addition to the environment of this process and to `CLAUDE_PROJECT_DIR` and `QODER_PROJECT_DIR`, which are `cwd`. Hooks of a
   * plugin need `CLAUDE_PLUGIN_ROOT`, the directory of the plugin. Default: none.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * Settings of the operator, which the other files cannot switch off. Only theirs run if they contain `allowManagedHooksOnly`. Default: none.
   */
  readonly managed?: CommandSettings | readonly CommandSettings[] | undefined;
  /** The addresses that handlers of type `http` may post to. */
  readonly http?: HttpHandlerOptions | undefined;
  /** The model of handlers of type `prompt`. Default: none, and settings with such handlers are refused. */
  readonly model?: Model | undefined;
  /** The agent of handlers of type `agent`. Default: none, and settings with such handlers are refused. */
  readonly agent?: HookAgent | undefined;
  /** The clients of handlers of type `mcp_tool`, by the name of the server. Default: none, and settings with such handlers are refused. */
  readonly mcp?: Readonly<Record<string, McpClient>> | undefined;
  /** The directory of the files that `CLAUDE_ENV_FILE` names. Default: `/tmp`. */
  readonly temporary?: string | undefined;
  /**
   * Whether calls of one response run one after another, each with its hooks around it, as in the home systems. Calls of tools that are `readOnly` or
   * have `parallel: true` overlap all the same. False: all hooks before calls of a response run before the first call. Default: true.
   */
  readonly groups?: boolean | undefined;
}

/**
 * Runs the handlers in the settings files of Qoder and of Claude Code, and in the `hooks/hooks.json` of their plugins:
 * `command_hooks(JSON.parse(await Deno.readTextFile(".claude/settings.json")), { dialect: "claude" })`. The events and outputs are those of `claude_hooks()`.
 *
 * Several files are one list, as in the home systems: `command_hooks([user, project])`. The files in the option `managed` come first; no other file switches
 * them off, and with `allowManagedHooksOnly` only theirs run. `allowedHttpHookUrls` and `httpHookAllowedEnvVars` of every file hold for all of them; a handler
 * whose address is not allowed never runs, which a `warning` reports, and is refused if it has `onFailure: "block"` at an event that guards. A plugin, which needs its own `CLAUDE_PLUGIN_ROOT`, is another
 * `command_hooks()`.
 *
 * | type of handler | runs | answers with |
 * |---|---|---|
 * | `command` | a command, which reads the input as JSON from its standard input | its exit code and its standard output |
 * | `http` | a POST request with the input as JSON | the body of the response, read like the output of a command |
 * | `prompt` | a request to the option `model` | `{"ok": true}` or `{"ok": false, "reason": "..."}` |
 * | `agent` | a run of the option `agent` | the same |
 * | `mcp_tool` | a call of a tool of the option `mcp` | the text of the result, read like the output of a command |
 *
 * Exit code 0 has no objection, and JSON on standard output is the output of the hook. Exit code 2 blocks; the reason is the one in the JSON, or the text on
 * standard error. Any other exit code is a failure. In "claude", standard output is JSON only if all of it is one object, and exit code 2 has no effect at
 * `PermissionRequest`, `PermissionDenied` and `Notification`; in the other dialects, an object in some lines of it counts too. Other text is context for the
 * model at `SessionStart`, `UserPromptSubmit`, `UserPromptExpansion` and `PostModelSwitch`. Before a call and a prompt, a denial in any form counts, with any
 * exit code and status, also amid other text and in broken JSON; at events where text is context, the output has to begin as JSON does. A failure, also of a late command, blocks only with
 * `onFailure: "block"`; a `warning` reports it, and the error, with the command and its output, goes to `onError`.
 *
 * A command that is late, or whose run is stopped, is killed with its session and all processes beneath it, also those in sessions of their own (`setsid`). A
 * process in a session of its own whose parent has exited, and one of another user, is not reached. A command in the background decides nothing. Its context
 * is a message before the next model request; in "claude", its `systemMessage` too. When the run ends it has `limits.grace`, and is killed then. The same
 * handler runs once for an event, even if several matchers match. The variables that commands of `SessionStart`, `CwdChanged` and `FileChanged` export in the
 * file `CLAUDE_ENV_FILE` are in the environment of the later commands of the session. `CLAUDE_EFFORT` is the effort of the last request.
 *
 * The dialect "copilot" accepts the files in `.github/hooks/*.json` and passes them to `copilot_hooks()`. Handlers run in sequence. Commands (`bash`, `command`,
 * or `exec` with `args`) receive `{ toolName, toolArgs, ... }`, where `toolArgs` is a string of JSON, and answer with JSON; lines such as
 * `{"type": "progress", "message": "..."}` are shown to the person. At `preToolUse`, every exit code except 0 denies. Exit code 2 denies at `permissionRequest`
 * too, is guidance at `postToolUseFailure`, and otherwise shows standard error to the person. A handler with invalid JSON, one that takes longer than
 * `timeoutSec` or `timeout` (default 30 seconds), and one of type `http` that fails, is skipped with a `warning`. A handler of type `http` needs https at
 * `preToolUse` and `permissionRequest`, and for `allowedEnvVars`; one of type `prompt`, at `sessionStart`, adds its text before the prompt of a new session.
 *
 * A `matcher` matches whole values: names of tools, of subagents at `subagentStart`, triggers at `preCompact`, types at `notification`. Events with a capital
 * letter, such as `PreToolUse`, receive names with underscores (`tool_name`, `tool_input`) and a time in ISO 8601; at `PreToolUse` and `PermissionRequest`,
 * tools have Claude Code's names, as `Bash` for `bash`, and a matcher is a list of names. The context of `postToolUse` has at most 10 KB.
 *
 * Differences from the home systems, in addition to those of `claude_hooks()` and `copilot_hooks()`:
 *
 * - The variables of `CLAUDE_ENV_FILE` are kept in this process, and only hooks receive them: no shell here belongs to the agent.
 * - `once` has no effect in settings, and `model` none in a handler.
 * - An address of an `http` handler is checked by name before the request; redirects are refused.
 * - Copilot: of several answers at `permissionRequest`, a denial counts; in the home system the last one. A file with `disableAllHooks` switches off all files.
 *
 * Needs the permission to run commands and, on Deno, to read the environment, and a system with process groups: not Windows. A person who can write the
 * settings can run every command.
 * Throws a `TypeError` if the settings are invalid, if the directory of a command does not exist, or if they need a model, an agent, a server or an
 * address that is not given.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const settings = {
 *   hooks: {
 *     PreToolUse: [{
 *       matcher: "Bash",
 *       hooks: [{ type: "command", command: `grep -q "rm -rf" && { echo "Nothing is deleted here." >&2; exit 2; }; exit 0` }],
 *     }],
 *   },
 * } as const;
 * const assistant = agent({ model: scripted("Hello!"), use: [command_hooks(settings, { dialect: "claude" })] });
 * ```
 */
export function command_hooks(
  files: CommandSettings | readonly CommandSettings[],
  options: CommandHooksOptions = {},
): Middleware {
  const known = ["dialect", "cwd", "env", "managed", "http", "model", "agent", "mcp", "temporary", "groups"];
  expectNames("Cannot create command_hooks()", options, known);
  const { dialect: name = "qoder", cwd = process.cwd(), env = {}, temporary = "/tmp", groups = true } = options;
  checkHttpOptions(options.http ?? {});
  const settings = joinFiles([files].flat(), [options.managed ?? []].flat());
  const place = { cwd, env: { CLAUDE_PROJECT_DIR: cwd, QODER_PROJECT_DIR: cwd, ...env } };
  if (name === "copilot") {
    const post = (request: Parameters<typeof poster>[0]) => poster(request, options.http ?? {}, place.env);
    const { hooks, silent } = readCopilot(settings, { ...place, poster: post });
    return warnSilent({ ...copilot_hooks(hooks, { cwd, groups }), name: "command_hooks" }, silent);
  }
  const dialect = dialectOf(name, ["copilot"]);
  const environments = environmentsOf(temporary);
  const { httpHookAllowedEnvVars: allowedVars } = settings;
  const headerEnv = allowedVars
    ? Object.fromEntries(Object.entries(place.env).filter(([variable]) => allowedVars.includes(variable)))
    : place.env;

  function handlerOf(config: HandlerConfig): Handler {
    const { http = {}, model, agent, mcp = {} } = options;
    switch (config.type) {
      case "command":
        return commandHandler(config, place, environments);
      case "http":
        return httpHandler(config, http, headerEnv);
      case "prompt":
        return promptHandler(config, required(model, '"prompt" needs the option `model`'));
      case "agent":
        return agentHandler(config, required(agent, '"agent" needs the option `agent`'));
      case "mcp_tool":
        return mcpToolHandler(
          config,
          required(mcp[config.server], `"mcp_tool" needs the option \`mcp.${config.server}\``),
        );
    }
  }

  function hookOf(config: HandlerConfig) {
    const handler = handlerOf(config);
    const rule = config.if === undefined ? undefined : parseRule(config.if);
    return async (input: HookInput, _: string | undefined, { signal }: { readonly signal: AbortSignal }) => {
      const isMeant = !rule || ("tool_name" in input &&
        matchesCall(rule, { name: input.tool_name, input: input.tool_input, folders: [input.cwd, cwd] }, "filter"));
      return isMeant ? await handler(input, { signal, dialect }) : undefined;
    };
  }

  return hookMiddleware(readSettings(settings, dialect, hookOf), { name: "command_hooks", dialect, cwd, groups });
}

function required<T>(value: T | undefined, need: string): T {
  if (value === undefined) throw new TypeError(`a handler of type ${need}`);
  return value;
}
