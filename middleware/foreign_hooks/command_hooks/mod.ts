/**
 * Runs commands that were written as hooks for Qoder, for Claude Code or for GitHub Copilot. For Deno.
 *
 * @module
 */
import type { Middleware } from "../../../mod.ts";
import { type DialectName, dialects } from "../claude_hooks/dialect.ts";
import { middlewareOf } from "../claude_hooks/middleware.ts";
import { warned } from "../claude_hooks/session.ts";
import { copilot_hooks } from "../copilot_hooks/mod.ts";
import { copilot } from "./copilot.ts";
import { commandHook } from "./hook.ts";
import { type CommandSettings, configured, joined } from "./settings.ts";

export type { CommandHook, CommandMatcher, CommandSettings } from "./settings.ts";
export type { DialectName };

/** For which system commands were written, and where they run. */
export interface CommandHooksOptions {
  /** The system, in whose manner commands are chosen, run and heard: "copilot", or one that `claude_hooks()` knows. Default: "qoder". */
  readonly dialect?: DialectName | "copilot" | undefined;
  /** The directory that commands run in, which is the root of the agent's files. Default: that of this process. */
  readonly cwd?: string | undefined;
  /**
   * Variables for commands, beside those of this process and `CLAUDE_PROJECT_DIR` and `QODER_PROJECT_DIR`, which are `cwd`. Hooks of a plugin want
   * `CLAUDE_PLUGIN_ROOT`, the directory that the plugin is in. Default: none.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/**
 * Runs commands as hooks, as the settings of Qoder and of Claude Code say them, and the `hooks/hooks.json` of plugins:
 * `command_hooks(JSON.parse(await Deno.readTextFile(".claude/settings.json")), { dialect: "claude" })`. What they are asked about, and what they may say,
 * is what `claude_hooks()` says of hooks.
 *
 * Several files are one list, as at home, where all their commands are asked at once: `command_hooks([user, project])`. The file of a plugin, which wants
 * a `CLAUDE_PLUGIN_ROOT` of its own, is one more `command_hooks()`.
 *
 * A command reads what it is told from its standard input, as JSON, and exits with 0 where it has no objection. Exit code 2 blocks, for the reason that
 * its JSON blocks for, or that it wrote to its standard error. Where it writes JSON to its standard output, that is what it says; other text is for the
 * model at `SessionStart` and `UserPromptSubmit`, and at every other event lines before and after the JSON are left out. Any other exit code, or JSON that
 * is none, is a failure, which blocks only where `onFailure` says so; a `warning` says that there was one, and the operator is told which command it was
 * and what it wrote.
 *
 * A command that is too late, or that a run waits for when it is stopped, is killed with all that it has started. One that goes on by itself decides
 * nothing, and speaks with the next request of the model; when the run ends it has `limits.grace`, and is killed then. The same command is run once for an
 * event, however many matchers are for it.
 *
 * Hooks of the types `prompt`, `agent`, `http` and `mcp_tool` are never asked, and nor are those of events that cannot happen here: a `warning` names them
 * when a run begins. What such a hook would block is not blocked; where it says `onFailure: "block"`, at an event that can be, the settings are refused.
 * There is no `CLAUDE_ENV_FILE`, since no shell here is the agent's own; `once` means nothing in settings, there as here.
 *
 * The dialect "copilot" takes what GitHub Copilot keeps in `.github/hooks/*.json`, and hands it to `copilot_hooks()`: commands that are told
 * `{ toolName, toolArgs, ... }`, where `toolArgs` is JSON in a text, and run one after another. They answer by JSON alone; at `preToolUse` another exit code than 0
 * denies. One whose JSON is none, or that is too late, after `timeoutSec` or 30 seconds, is passed over, and a `warning` says so. A `matcher` is for whole
 * names of tools. Hooks of `subagentStart`, `subagentStop`, `preCompact`, `permissionRequest` and `notification` are never asked, and nor are those whose
 * events begin with a capital letter: they are written for "claude".
 *
 * Takes the permission to run these commands, and a system with process groups: not Windows. Whoever can write the settings can run anything.
 * Throws a `TypeError` where settings, or the hooks of an event, are not as they should be.
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
 * const assistant = agent({ model: scripted("Hello!"), use: [command_hooks(settings, { cwd: "/repo" })] });
 * ```
 */
export function command_hooks(
  given: CommandSettings | readonly CommandSettings[],
  { dialect: name = "qoder", cwd = Deno.cwd(), env = {} }: CommandHooksOptions = {},
): Middleware {
  const settings = joined([given].flat());
  const place = { cwd, env: { CLAUDE_PROJECT_DIR: cwd, QODER_PROJECT_DIR: cwd, ...env } };
  if (name === "copilot") {
    const { hooks, silent } = copilot(settings, place);
    return warned({ ...copilot_hooks(hooks, { cwd }), name: "command_hooks" }, silent);
  }
  const dialect = dialects[name];
  if (!dialect) {
    throw new TypeError(`Cannot use hooks of "${name}": there is ${Object.keys(dialects).join(", ")}, copilot`);
  }
  return middlewareOf(configured(settings, dialect, (command) => commandHook(command, place)), {
    name: "command_hooks",
    dialect,
    cwd,
  });
}
