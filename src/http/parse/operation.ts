/**
 * The operation that a request asks for. Native routes and wires parse requests to the same operations.
 *
 * @module
 */
import type { HistoryOptions } from "../../core/store.ts";
import type { Mail, Session } from "../../core/session.ts";
import type { RunAddress } from "../../session/record/run_host.ts";
import type { ChatInput, Prompt, RunParts } from "../../wire/wire.ts";
import type { Busy } from "../options.ts";
import type { ResponseFormat } from "../respond/response_format.ts";
import type { AnswersBody, PromptBody } from "./body.ts";

/** The prompt of a run, and the parts of the run that its client decides. */
export type PromptInput = PromptBody & RunParts & Pick<Prompt, "replaces">;

/** Begins a run. */
export interface PromptOperation {
  readonly type: "prompt";
  readonly input: PromptInput;
  /** The session. Default: a new one. */
  readonly session: string | undefined;
  /** Whether the session is created if it does not exist. */
  readonly create: boolean;
  /** The effect on the prompt if another run has the session. */
  readonly busy: Busy;
  readonly format: ResponseFormat;
}

/** Resumes a paused run with the answers of a person. */
export type AnswersOperation = AnswersBody & RunParts & {
  readonly type: "answers";
  readonly session: string;
  /** The run that had the session when the message of a wire's client was read as answers, or an empty text. The answers are for no other run. */
  readonly seen?: string;
  readonly format: ResponseFormat;
};

/** A message of a wire's client: a prompt, or answers if the session asks something. */
export interface ChatOperation extends Pick<ChatInput, "resumeToken" | "input"> {
  readonly type: "chat";
  readonly session: string | undefined;
  readonly create: boolean;
  readonly format: ResponseFormat;
}

/** One operation on the runs and sessions of a server. */
export type Operation =
  | PromptOperation
  | AnswersOperation
  | ChatOperation
  | {
    readonly type: "compact";
    readonly session: string;
    readonly instructions: string;
    readonly format: ResponseFormat;
  }
  | { readonly type: "follow"; readonly run: string; readonly after: number; readonly format: ResponseFormat }
  | { readonly type: "followSession"; readonly session: string; readonly format: ResponseFormat }
  | {
    readonly type: "show";
    readonly session: string;
    body(session: Session): object;
    readonly page?: HistoryOptions | undefined;
  }
  | RunAddress & { readonly type: "message"; readonly message: Extract<Mail, { type: "message" }> }
  | RunAddress & { readonly type: "finish" }
  | RunAddress & { readonly type: "stop"; readonly rollback: boolean }
  | { readonly type: "stopSession"; readonly session: string }
  | { readonly type: "json"; readonly body: object };

/** An operation of one type. */
export type OperationOf<T extends Operation["type"]> = Extract<Operation, { readonly type: T }>;
