/**
 * Questions to a person, and their answers. Plain JSON data.
 *
 * @module
 */

/** A question to a person about one call; about the whole run if it names no call. */
export interface Question {
  /** The id of the call. A call of a subagent has the id of its parent's call before its own: `call_1/call_7`. The id of one call contains no `/`. */
  readonly callId?: string;
  /** The names of the tools whose subagents lead to the call, outermost first. Default: the agent of the run makes the call. */
  readonly path?: readonly string[];
  /** The tool that would run. */
  readonly tool?: string;
  /** The input that would run, after every hook and the tool's schema. */
  readonly input?: unknown;
  /** The questions to the person, of every hook and tool that asked. */
  readonly questions: readonly string[];
  /** The JSON Schema of the answer. */
  readonly schema?: { readonly [key: string]: unknown };
  /** Answers to choose from. */
  readonly suggestions?: readonly Suggestion[];
}

/** An answer that a person may give, ready to be sent with the id of its call. */
export type Suggestion = PersonAnswer extends infer A ? A extends unknown ? Omit<A, "callId"> : never : never;

/** A person's answer to a question, with the id of its call. A question about the whole run has no call and takes only a reply. */
export type PersonAnswer =
  | {
    readonly callId?: string | undefined;
    readonly type: "approve";
    /** The input that the tool runs with. Default: the input in the question. */
    readonly input?: unknown;
    /**
     * Answers the same questions for further calls of this tool, or for those with the same input, for the rest of the session. Questions are the same if the same
     * middleware, or the tool itself, asks them with the same key. Default: each call asks.
     */
    readonly always?: "tool" | "input";
  }
  | {
    readonly callId?: string | undefined;
    readonly type: "deny";
    /** The reason, which the model reads. */
    readonly reason?: string;
  }
  | {
    readonly callId?: string | undefined;
    readonly type: "reply";
    /** The text that replaces the tool's result, or answers the question of the run. */
    readonly text: string;
  };
