/**
 * `CLAUDE_ENV_FILE`: a shell script in which some commands write variables for the later commands of a session.
 *
 * @module
 */
import type { HookEvent } from "../../claude_hooks/config/input.ts";
import { remember } from "../../kit/remember.ts";
import { type Place, start } from "./process.ts";

/** The events whose commands receive the variable. */
const writers: readonly HookEvent[] = ["SessionStart", "CwdChanged", "FileChanged"];

/** The environment of one command. */
export interface CommandEnvironment {
  /** The variables of the session, and `CLAUDE_ENV_FILE`. */
  readonly env: Readonly<Record<string, string>>;
  /** The file that the command may write. */
  readonly file?: string;
  /** Runs the file, and keeps the variables that it exports. */
  read(place: Place): Promise<void>;
}

/** The variables of sessions, in this process. */
export interface Environments {
  /** Returns the environment of a command that is about to run. */
  enter(session: string, event: HookEvent): CommandEnvironment;
}

const marker = "====";
const script = `test -e "$0" || exit 0; env -0; printf '${marker}\\0'; set -a; . "$0" >&2; env -0; rm -f "$0"`;

/** Creates the variables of sessions. Files are in `directory`. */
export function environmentsOf(directory: string): Environments {
  const sessions = new Map<string, Record<string, string>>();
  return {
    enter(session, event) {
      const known = remember(sessions, session, () => ({}));
      if (!writers.includes(event)) return { env: known, read: () => Promise.resolve() };
      const file = `${directory}/claude-env-${crypto.randomUUID()}`;
      return {
        env: { ...known, CLAUDE_ENV_FILE: file },
        file,
        async read(place) {
          const never = new AbortController().signal;
          const { stdout } = await start({ command: "sh", args: ["-c", script, file] }, "", place, never).exited;
          Object.assign(known, exportedIn(stdout));
        },
      };
    },
  };
}

/** Returns the variables that differ after the script has run. */
function exportedIn(output: string): Record<string, string> {
  const [before = "", after = ""] = output.split(`${marker}\0`);
  const old = new Set(before.split("\0"));
  const changed = after.split("\0").filter((line) => line.includes("=") && !old.has(line));
  const entries = changed.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries(entries.filter(([name]) => name !== "_" && name !== "CLAUDE_ENV_FILE"));
}
