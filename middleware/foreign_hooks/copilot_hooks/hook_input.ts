/**
 * The fields of the input of every hook.
 *
 * @module
 */

/** The fields that every hook receives. `T` is the type of the time. */
export interface HookInput<T = number> {
  /** The session that triggered the hook. A subagent has a session of its own. */
  sessionId: string;
  /** Milliseconds since 1970, or a `Date` in the dialect "node". */
  timestamp: T;
  /** The working directory of the agent. */
  cwd: string;
  /** The same, under the name of the Node SDK. */
  workingDirectory: string;
}
