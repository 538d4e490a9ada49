/**
 * What the engine knows of one call of a batch. It travels beside the contexts, where no hook can reach or lose it.
 *
 * @module
 */
import type { Question } from "../protocol/question.ts";
import type { Call, ToolResult } from "../protocol/message.ts";
import type { Answered, Session, StartedCall } from "../protocol/session.ts";
import type { Live } from "./live.ts";
import type { ToolContext } from "./points.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool } from "./tool.ts";

/** What was decided about a call when it went in. */
export type Step =
  | {
    readonly type: "execute";
    readonly tool: AnyTool;
    readonly input: unknown;
    readonly raw: unknown;
    readonly scope: Scope;
  }
  | { readonly type: "answer"; readonly result: ToolResult }
  | { readonly type: "ask"; readonly question: Question };

/** One call of a batch. */
export class Entry {
  /** Whether it was told of. */
  begun = false;
  /** Settles when it has gone in, or failed to. */
  readonly parked: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Opens when it may go out, with its result. */
  readonly gate: PromiseWithResolvers<ToolResult> = Promise.withResolvers();
  /** Its whole way in and out; never rejects. */
  onion: Promise<void> = Promise.resolve();
  step: Step | undefined;
  /** The input as the tool's schema parsed it. */
  parsed: { readonly input: unknown } | undefined;
  /** What the work came to, before it was reviewed. */
  raw: ToolResult | undefined;
  /** What came out. */
  result: ToolResult | undefined;
  /** What its hooks threw, and what it failed with so that the run ends. */
  readonly failures: unknown[] = [];
  /** Whether it goes on only after a pause. */
  waiting = false;
  /** What the model is told beside the result: that a person changed the input. */
  note: string | undefined;
  /** The session of the agent that works for it and waits for a person. */
  child: Session | undefined;

  /** Begins with the call as the model made it. */
  constructor(
    readonly live: Live,
    readonly call: Call,
    readonly index: number,
    readonly batchId: string,
    readonly turn: number,
    readonly over: boolean,
    /** How far it was when its process died. */
    readonly started: StartedCall | undefined,
  ) {}

  /** What a person was asked about it and answered: more than once where they, or a guard, changed the input. */
  get answered(): readonly Answered[] {
    return this.live.answered.filter(({ answer }) => answer.callId === this.call.id);
  }

  /** The context that its outermost hook is given. */
  context(scope: Scope, resumed: boolean): ToolContext {
    const { call, batchId, index, turn, live } = this;
    const { run, signal, emit, vars } = scope; // named, here and wherever there is one for each call: spreading them costs more
    return {
      run,
      signal,
      emit,
      vars,
      call,
      tool: live.tools.get(call.name),
      name: call.name,
      input: call.input,
      batchId,
      index,
      turn,
      resumed,
    };
  }
}
