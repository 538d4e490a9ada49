/**
 * The terminal of the command line: a person's, with keys and lines, or a pipe.
 *
 * @module
 */
import process from "node:process";
import { clearScreenDown, createInterface, cursorTo, type Interface } from "node:readline";
import { PassThrough } from "node:stream";
import { ClientError } from "../client/connection.ts";

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

// A queue of typed lines.

/** Lines in the order in which they were typed, until they are read. */
class LineQueue {
  readonly #lines: string[] = [];
  #closed = false;
  #waiting: ((line: string | undefined) => void) | undefined;

  /** Whether a reader waits for a line. */
  get waits(): boolean {
    return this.#waiting !== undefined;
  }

  /** Adds a line. */
  add(line: string): void {
    if (this.waits) this.#answer(line);
    else this.#lines.push(line);
  }

  /** Returns the next line, or `undefined` once the queue is closed and empty, or when the signal aborts. */
  next(signal?: AbortSignal): Promise<string | undefined> {
    if (signal?.aborted) return Promise.resolve(undefined);
    if (this.#lines.length > 0 || this.#closed) return Promise.resolve(this.#lines.shift());
    return new Promise((resolve) => {
      const stopWaiting = () => this.#answer(undefined);
      signal?.addEventListener("abort", stopWaiting, { once: true });
      this.#waiting = (line) => {
        signal?.removeEventListener("abort", stopWaiting);
        resolve(line);
      };
    });
  }

  #answer(line: string | undefined): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.(line);
  }

  /** Ends the queue. */
  close(): void {
    this.#closed = true;
    this.#answer(undefined);
  }
}

// The terminal of a person, who types keys and lines while output arrives.

const { stdin, stdout } = process;
const ctrlC = "\x03";
const ctrlD = "\x04";
const escape = "\x1b"; // the first byte of a key without a character, such as an arrow

/** A question that one key answers. */
interface KeyQuestion {
  readonly keys: string;
  readonly resolve: (key: string | undefined) => void;
}

/**
 * A terminal whose lines are edited with `node:readline`. The bytes of the keyboard come here first: they answer the question that waits for a key, or belong
 * to a line. If a person begins a line that nothing asked for, output waits until the line is entered or deleted.
 */
class KeyboardTerminal implements Terminal, Keyboard {
  readonly keyboard: Keyboard = this;
  /** The input of the editor. */
  readonly #typed = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => stdin.setRawMode(isRaw),
  });
  readonly #editor: Interface = createInterface({ input: this.#typed, output: stdout, terminal: true });
  readonly #lines = new LineQueue();
  #question: KeyQuestion | undefined;
  #receive: ((line: string) => void) | undefined;
  #isTyping = false;
  #isClosed = false;
  #finishTyping = () => {};
  #isAtLineStart = true;
  #waitingOutput = "";
  #interrupted = () => this.close();

  /** Opens the terminal of the process. */
  constructor() {
    stdin.on("data", this.#takeBytes);
    stdin.on("end", this.close);
    process.on("SIGINT", this.#interrupt); // from another process
    this.#editor.on("SIGINT", this.#interrupt); // Ctrl-C
    this.#editor.on("line", (line) => this.#takeLine(line));
    this.#editor.on("close", () => this.#end());
    this.#typed.on("keypress", () => {
      if (this.#editor.line === "") this.#endTyping(); // the line was entered or deleted
    });
  }

  write(text: string): void {
    if (this.#isTyping) this.#waitingOutput += text;
    else if (this.#lines.waits) this.#printAbovePrompt(text);
    else this.#print(text);
  }

  ask(prompt: string, { text, signal }: AskOptions = {}): Promise<string | undefined> {
    this.#showPrompt(prompt);
    if (text !== undefined) this.#editor.write(text);
    return this.#lines.next(signal);
  }

  async key(prompt: string, keys: string, signal: AbortSignal): Promise<string | undefined> {
    if (this.#isTyping) await this.#finishedTyping(signal); // its next letters are no answer
    if (this.#isClosed || signal.aborted) return undefined;
    if (!this.#isAtLineStart) this.#print("\n");
    this.#print(prompt);
    return await new Promise((resolve) => {
      this.#question = { keys, resolve };
      signal.addEventListener("abort", () => this.#answerKey(undefined), { once: true });
    });
  }

  onLine(receive: (line: string) => void): void {
    this.#receive = receive;
  }

  onInterrupt(interrupt: () => void): void {
    this.#interrupted = interrupt;
  }

  readonly close = (): void => this.#editor.close();

  readonly #interrupt = (): void => this.#interrupted();

  readonly #takeBytes = (bytes: Uint8Array): void => {
    const text = new TextDecoder().decode(bytes);
    if (this.#question) return this.#takeKey(this.#question, text);
    if (this.#receive && !this.#lines.waits && !this.#isTyping) {
      if (/^[\r\n]/.test(text)) return; // it would break the line of the output
      if (text !== ctrlC && text !== ctrlD) this.#startTyping();
    }
    this.#typed.write(bytes);
  };

  #takeKey({ keys }: KeyQuestion, text: string): void {
    if (text.startsWith(ctrlC)) return this.#interrupt();
    if (text.startsWith(ctrlD)) return this.close();
    const at = text.startsWith(escape) ? -1 : text.search(new RegExp(`[${keys}]`, "i"));
    if (at < 0) return;
    const key = text.charAt(at).toLowerCase();
    this.#print(`${key}\n`);
    this.#answerKey(key);
    if (text.length > at + 1) this.#takeBytes(new TextEncoder().encode(text.slice(at + 1)));
  }

  #answerKey(key: string | undefined): void {
    const question = this.#question;
    this.#question = undefined;
    question?.resolve(key);
  }

  #takeLine(line: string): void {
    this.#isAtLineStart = true;
    if (this.#lines.waits || !this.#receive) this.#lines.add(line);
    else if (line.trim() !== "") this.#receive(line);
  }

  #print(text: string): void {
    if (text === "") return;
    stdout.write(text);
    this.#isAtLineStart = text.endsWith("\n");
  }

  #printAbovePrompt(text: string): void {
    this.#clearLine();
    stdout.write(text.endsWith("\n") ? text : `${text}\n`);
    this.#editor.prompt(true);
  }

  #showPrompt(prompt: string): void {
    this.#endTyping();
    if (!this.#isAtLineStart) this.#print("\n");
    this.#editor.setPrompt(prompt);
    this.#editor.prompt(true); // with the rest of a line that was begun
    this.#isAtLineStart = false;
  }

  #startTyping(): void {
    this.#showPrompt("> ");
    this.#isTyping = true;
  }

  /** Waits until the line that is being typed is entered or deleted, or the signal aborts. */
  #finishedTyping(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#endTyping(), { once: true });
    return new Promise((resolve) => this.#finishTyping = resolve);
  }

  #endTyping(): void {
    if (!this.#isTyping) return;
    this.#isTyping = false;
    this.#finishTyping();
    this.#clearLine();
    const text = this.#waitingOutput;
    this.#waitingOutput = "";
    this.#print(text);
  }

  #clearLine(): void {
    cursorTo(stdout, 0);
    clearScreenDown(stdout);
    this.#isAtLineStart = true;
  }

  #end(): void {
    this.#isClosed = true;
    this.#endTyping();
    if (!this.#isAtLineStart) this.#print("\n");
    stdin.off("data", this.#takeBytes);
    stdin.off("end", this.close);
    stdin.pause();
    process.off("SIGINT", this.#interrupt);
    this.#lines.close();
    this.#answerKey(undefined);
  }
}

// The terminal of the process: a person's, or a pipe.

/** Opens standard input and output. */
export function openTerminal(): Terminal {
  return process.stdin.isTTY && process.stdout.isTTY ? new KeyboardTerminal() : openPipe();
}

/** Opens an input that a program writes, or an output that a program reads. */
function openPipe(): Terminal {
  const input = createInterface({ input: process.stdin, output: process.stdout, terminal: false });
  const queue = new LineQueue();
  let interrupted = () => input.close();
  const interrupt = () => interrupted();

  input.on("line", (line) => queue.add(line));
  input.on("close", () => {
    queue.close();
    process.off("SIGINT", interrupt);
  });
  process.on("SIGINT", interrupt);

  return {
    write: (text) => void process.stdout.write(text),
    ask(prompt, { signal } = {}) {
      process.stdout.write(prompt);
      return queue.next(signal);
    },
    onInterrupt: (next) => void (interrupted = next),
    close: () => input.close(),
  };
}
