/**
 * The state that the hooks of one middleware keep for a run or its session.
 *
 * @module
 */
import { type Scope, type State, state } from "../../../../mod.ts";
import type { EventFields } from "../config/input.ts";
import { noPermissions, type Permissions } from "../permissions/permissions.ts";

/** A call as PostToolBatch reports it. */
export type BatchCall = EventFields["PostToolBatch"]["tool_calls"][number];

/** The calls of one response. */
export interface CallBatch {
  /** The ids of its calls, in the model's order. */
  readonly ids: readonly string[];
  /** The calls that have come out, by id. */
  readonly calls: Readonly<Record<string, BatchCall>>;
  /** Whether PostToolBatch was asked about it. */
  readonly asked: boolean;
}

/** The state of one middleware. */
export interface Memory {
  /** The reason of the hook that ended the run, for the person. */
  readonly stopped: State<string>;
  /** Whether hooks have kept the agent from stopping. */
  readonly continued: State<boolean>;
  /** Whether StopFailure was asked. */
  readonly failed: State<boolean>;
  /** The model that the session was opened with. */
  readonly model: State<string>;
  /** The text before the first prompt. */
  readonly firstMessage: State<string>;
  readonly batch: State<CallBatch>;
  /** The answers of PreToolUse about calls without a result. */
  readonly judgements: State<Readonly<Record<string, unknown>>>;
  readonly permissions: State<Permissions>;
  /** The files in `watchPaths`; undefined until a hook returns some. */
  readonly watched: State<readonly string[] | undefined>;
  /** The worktree that the agent is in. */
  readonly worktree: State<string>;
  /** Texts for the next model request. Those of the outermost run belong to the session, so that its next run sends them. */
  readonly later: (at: Scope) => State<readonly string[]>;
}

/** Creates the state of the middleware `name`. */
export function memoryOf(name: string): Memory {
  const ofRun = <T>(key: string, value: T) => state<T>(`${name}.${key}`, () => value);
  const ofSession = <T>(key: string, value: T) => state<T>(`${name}.${key}`, () => value, { lifetime: "session" });
  const own = ofRun<readonly string[]>("later", []);
  const ofConversation = ofSession<readonly string[]>("later", []);
  return {
    stopped: ofRun("stopped", ""),
    continued: ofRun("continued", false),
    failed: ofRun("failed", false),
    model: ofRun("model", ""),
    firstMessage: ofRun("first_message", ""),
    batch: ofRun<CallBatch>("batch", { ids: [], calls: {}, asked: false }),
    judgements: ofRun("judgements", {}),
    permissions: ofSession("permissions", noPermissions),
    watched: ofSession<readonly string[] | undefined>("watched", undefined),
    worktree: ofSession("worktree", ""),
    later: ({ run }) => run.parent ? own : ofConversation,
  };
}
