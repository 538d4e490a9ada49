/**
 * Recordings: everything that a run received from outside, in order, as JSON, and the errors in it.
 *
 * @module
 */
import { End, isInterrupt, Pause } from "../../core/interrupt.ts";
import type { RunResult } from "../../core/points.ts";
import type { DirectCall } from "../../core/position.ts";
import type { Session } from "../../core/session.ts";
import { ToolError } from "../../core/tool.ts";
import { ModelError, type ModelErrorCode, type ModelEvent, type ToolDefinition } from "../../model/model.ts";
import type { Event } from "../../protocol/event.ts";
import type { Message, ToolResult, Usage, UserMessage } from "../../protocol/message.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { encryption } from "../../session/resume_token/encryption.ts";

// Errors in a recording.

/** A thrown value: an interrupt, an error of the model or of a tool, or any other error by its name and message. */
export type RecordedError =
  | {
    readonly type: "end";
    readonly reason: string;
    readonly options: Pick<End, "as" | "rollback" | "withhold" | "tree">;
  }
  | { readonly type: "pause"; readonly questions: readonly Question[]; readonly saved?: unknown }
  | {
    readonly type: "model";
    readonly message: string;
    readonly options: {
      readonly recoverable: boolean;
      readonly overflow: boolean;
      readonly code: ModelErrorCode;
      readonly retryAfter?: number;
      readonly status?: number;
    };
  }
  | { readonly type: "tool"; readonly message: string }
  | { readonly type: "dom"; readonly name: string; readonly message: string }
  | { readonly type: "other"; readonly name: string; readonly message: string };

/** Describes a thrown value. */
export function recordError(error: unknown): RecordedError {
  if (error instanceof End) {
    const { reason, as, rollback, withhold, tree } = error;
    return { type: "end", reason, options: { as, rollback, withhold, tree } };
  }
  if (error instanceof Pause) {
    return { type: "pause", questions: error.questions, ...(error.saved !== undefined && { saved: error.saved }) };
  }
  if (error instanceof ModelError) {
    const { message, recoverable, overflow, code, retryAfter, status } = error;
    const more = { ...(retryAfter !== undefined && { retryAfter }), ...(status !== undefined && { status }) };
    return { type: "model", message, options: { recoverable, overflow, code, ...more } };
  }
  if (error instanceof ToolError) return { type: "tool", message: error.message };
  if (error instanceof DOMException) return { type: "dom", name: error.name, message: error.message };
  return error instanceof Error && !isInterrupt(error)
    ? { type: "other", name: error.name, message: error.message }
    : { type: "other", name: "Error", message: String(error) };
}

/** Returns an error like the recorded one. */
export function errorOf(recorded: RecordedError): Error {
  switch (recorded.type) {
    case "end":
      return new End(recorded.reason, recorded.options);
    case "pause":
      return new Pause(recorded.questions, recorded.saved);
    case "model":
      return new ModelError(recorded.message, recorded.options);
    case "tool":
      return new ToolError(recorded.message);
    case "dom":
      return new DOMException(recorded.message, recorded.name);
    case "other":
      return Object.assign(new Error(recorded.message), { name: recorded.name });
  }
}

// The entries of a recording.

/** The request that started a run: a prompt, with the call that its client made in place of the model, or answers to a paused run. */
export type RecordedRequest =
  & (
    | { readonly type: "run"; readonly messages: readonly Message[]; readonly call?: DirectCall }
    | { readonly type: "resume"; readonly answers: readonly PersonAnswer[] }
  )
  & {
    /** Whether the events of a trace contain requests to the model and changed values. Default: true. */
    readonly detailed?: boolean;
  };

/** A value that a source of the run gave. The source is `model-1` for the first model request, `call_1-1` for the first execution of a call. */
export type RecordedInput =
  & { readonly source: string; readonly at: number }
  & (
    | { readonly type: "model"; readonly model: string }
    | { readonly type: "read"; readonly events: readonly ModelEvent[] }
    | { readonly type: "end" }
    | { readonly type: "call"; readonly call: string; readonly name: string; readonly input: unknown }
    | { readonly type: "emit"; readonly event: Event }
    | { readonly type: "spend"; readonly usage: Usage }
    | {
      readonly type: "state";
      readonly lifetime: "run" | "session";
      readonly name: string;
      readonly value: unknown;
    }
    | { readonly type: "result"; readonly result: ToolResult }
    | { readonly type: "threw"; readonly error: RecordedError }
  );

/** An order of the caller to the run. */
export type RecordedOrder =
  & { readonly source: "caller"; readonly at: number }
  & (
    | { readonly type: "stop"; readonly reason: string; readonly rollback: boolean }
    | { readonly type: "send"; readonly message: string | UserMessage; readonly after?: "batch" | "calls" }
    | { readonly type: "finish" }
    | { readonly type: "drain"; readonly reason: string }
  );

/** One entry of a recording. `at` is in milliseconds since the start. */
export type RecordedEntry = RecordedInput | RecordedOrder;

/** A recorded run. It contains prompts, model output and tool results before any hook masks them. */
export interface Recording {
  /** The version of the format. */
  readonly version: 1;
  /** The name of the agent. */
  readonly agent: string;
  /** The id of the agent's model. */
  readonly model: string;
  /** The start, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The id of the run. */
  readonly run: string;
  /** The id of the session. */
  readonly session: string;
  /** The stored session before the run, if there was one. */
  readonly before?: Session;
  /** The request. */
  readonly request: RecordedRequest;
  /** The definitions of the agent's tools. */
  readonly tools: readonly ToolDefinition[];
  /** The values that the run received, in order. */
  readonly entries: readonly RecordedEntry[];
  /** The events that the run emitted. */
  readonly events: readonly Event[];
  /** The times that hooks read with `ctx.run.now()`, in order, in milliseconds since 1970. Default: none. */
  readonly times?: readonly number[];
  /** The status and the text of the result. */
  readonly result: Pick<RunResult, "status" | "text">;
}

/** Options of `writeRecording()` and `readRecording()`. */
export interface RecordingOptions {
  /** A secret of at least 32 bytes that encrypts the recording. Default: it is not encrypted. */
  readonly key?: string | undefined;
}

const purpose = "jizai recording";

/** Returns a recording as text, encrypted if there is a key. Throws a `RangeError` for a key that is too short. */
export async function writeRecording(recording: Recording, { key }: RecordingOptions = {}): Promise<string> {
  const text = JSON.stringify(recording);
  return key === undefined ? text : await encryption(purpose, [{ id: "recording", secret: key }]).encrypt(text);
}

/** Reads a recording. Throws a `TypeError` if the text is not a recording, or if the key is missing or wrong. */
export async function readRecording(text: string, { key }: RecordingOptions = {}): Promise<Recording> {
  const json = text.trimStart().startsWith("{") ? text : await decrypted(text.trim(), key);
  const recording: unknown = JSON.parse(json);
  if (typeof recording === "object" && recording !== null && "version" in recording && "entries" in recording) {
    if (recording.version === 1) return recording as Recording; // written by writeRecording()
    throw new TypeError(`Cannot read the recording: expected version 1, got ${recording.version}`);
  }
  throw new TypeError("Cannot read the recording: expected the JSON that writeRecording() returns");
}

async function decrypted(text: string, key: string | undefined): Promise<string> {
  if (key === undefined) throw new TypeError("Cannot read the recording: it is encrypted; expected a key");
  const opened = await encryption(purpose, [{ id: "recording", secret: key }]).decrypt(text);
  if ("content" in opened) return opened.content;
  throw new TypeError("Cannot read the recording: the key is wrong, or the text was changed");
}
