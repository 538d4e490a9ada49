/**
 * The terminal of the command line.
 *
 * @module
 */
import { ClientError } from "../../client/connection.ts";

/** The input and output of the command line. */
export interface Terminal {
  /** Writes text. */
  write(text: string): void;
  /** Writes a prompt and returns the next line, or `undefined` at the end of the input. */
  ask(prompt: string, options?: AskOptions): Promise<string | undefined>;
  /** Calls a function at every Ctrl-C, instead of the one before it. */
  onInterrupt(interrupt: () => void): void;
  /** Ends the input. A waiting `ask()` returns `undefined`. */
  close(): void;
  /** The keyboard, if a person types. Default: the input is a pipe, whose lines are read only by `ask()`. */
  readonly keyboard?: Keyboard;
}

/** Options of a question for a line. */
export interface AskOptions {
  /** The text that the line contains at first, if a person types. Default: none. */
  readonly text?: string;
  /** Ends the question when it aborts: the answer is `undefined`. Default: none. */
  readonly signal?: AbortSignal;
}

/** The keyboard of a person. */
export interface Keyboard {
  /** Writes a prompt and returns the next key that is one of `keys`, or `undefined` at the end of the input or if the signal aborts. */
  key(prompt: string, keys: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Sets the function that receives the lines which are typed while nothing asks. While such a line is being typed, output and the question for a key wait.
   * Default: the next `ask()` returns them.
   */
  onLine(receive: (line: string) => void): void;
}

/** Escapes the characters that a terminal would execute or hide, except line breaks and tabs. */
export function visible(text: string): string {
  return text.replace(/[^\P{C}\n\t]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Returns the message of an error. That of a `ClientError` is followed by its cause, the last failure of a client that gave up. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const hasCause = error instanceof ClientError && error.cause !== undefined;
  return hasCause ? `${error.message}: ${messageOf(error.cause)}` : error.message;
}
