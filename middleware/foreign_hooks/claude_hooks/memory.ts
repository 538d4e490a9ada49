/**
 * What is kept for a run and for its session.
 *
 * @module
 */
import { type Run, type Scope, type State, state } from "../../../mod.ts";
import { asked, type Permissions } from "./permissions.ts";

/** What is kept. */
export interface Memory {
  /** Why a hook ended the run, for the person. */
  readonly stopped: State<string>;
  /** Whether hooks have kept the agent from stopping. */
  readonly kept: State<boolean>;
  /** The model that the session was opened with. */
  readonly model: State<string>;
  /** What is said before the prompt, as the person. */
  readonly first: State<string>;
  /** The inputs that calls were made with. */
  readonly inputs: State<Readonly<Record<string, unknown>>>;
  /** What hooks have changed of what is asked. */
  readonly permissions: State<Permissions>;
  /** The files that hooks watch; all of them, where none has said. */
  readonly watched: State<readonly string[] | undefined>;
  /** The worktree that the agent is in. */
  readonly worktree: State<string>;
  /** What waits to be told to the model with its next request: of the session for the outermost run, so that the next one tells it. */
  readonly later: (at: Scope) => State<readonly string[]>;
}

/** Memory of the middleware `name`. */
export function memoryOf(name: string): Memory {
  const own = state(`${name}.later`, (): readonly string[] => []);
  const lasting = state(`${name}.later`, (): readonly string[] => [], { lifetime: "session" });
  return {
    stopped: state(`${name}.stopped`, () => ""),
    kept: state(`${name}.kept`, () => false),
    model: state(`${name}.model`, () => ""),
    first: state(`${name}.first`, () => ""),
    inputs: state(`${name}.inputs`, () => ({})),
    permissions: state(`${name}.permissions`, () => asked, { lifetime: "session" }),
    watched: state(`${name}.watched`, (): readonly string[] | undefined => undefined, { lifetime: "session" }),
    worktree: state(`${name}.worktree`, () => "", { lifetime: "session" }),
    later: ({ run }) => run.parent ? own : lasting,
  };
}

/** The run that nobody else's is above. */
export function outermost(run: Run): Run {
  return run.parent ? outermost(run.parent) : run;
}
