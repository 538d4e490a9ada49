/**
 * Questions to a person, and what may be answered. Plain JSON data.
 *
 * @module
 */

/** A question to a person about one call, or about the whole run where it names no call. */
export interface Question {
  /** The call it is about; without it the question is the run's. A call within an agent that is a tool has that of the tool before it: `call_1/call_7`. */
  readonly callId?: string;
  /** The names of the agents that the call is made in, beneath the one that runs. Default: it is made by the one that runs. */
  readonly path?: readonly string[];
  /** The tool that would run. */
  readonly tool?: string;
  /** The input that would run, after every hook. */
  readonly input?: unknown;
  /** The questions to the person, of every hook and tool that asked. */
  readonly questions: readonly string[];
  /** JSON Schema of what may be answered. */
  readonly schema?: { readonly [key: string]: unknown };
  /** Answers to choose from. */
  readonly suggestions?: readonly Suggestion[];
}

/** An answer that a person may give, ready to be sent with the id of its call. */
export type Suggestion = PersonAnswer extends infer A ? A extends unknown ? Omit<A, "callId"> : never : never;

/** A person's answer to a question. One about the whole run has no call, and is answered with a reply. */
export type PersonAnswer =
  | {
    readonly callId: string;
    readonly type: "approve";
    /** The input that the tool runs with instead. Default: what they were asked about. */
    readonly input?: unknown;
    /** Asks nobody again, in this session, about calls of this tool, or about those of it with the same input. Default: asks. */
    readonly always?: "tool" | "input";
  }
  | {
    readonly callId: string;
    readonly type: "deny";
    /** Why, for the model. */
    readonly reason?: string;
  }
  | {
    readonly callId?: string;
    readonly type: "reply";
    /** Said in place of the tool, or to the run's own question. */
    readonly text: string;
  };
