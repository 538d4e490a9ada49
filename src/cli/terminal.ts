/**
 * The terminal of the command line.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";

/** The input and output of the command line. */
export interface Terminal {
  /** Writes text. */
  write(text: string): void;
  /** Writes a prompt and returns the next line, or `undefined` at the end of the input. */
  ask(prompt: string): Promise<string | undefined>;
  /** Calls a function at every Ctrl-C, instead of the one before it. */
  onInterrupt(interrupt: () => void): void;
  /** Ends the input. A waiting `ask()` returns `undefined`. */
  close(): void;
}

/** Opens standard input and output. */
export function openTerminal(): Terminal {
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: process.stdin.isTTY });
  const buffer: string[] = [];
  let closed = false;
  let waiting: ((line: string | undefined) => void) | undefined;
  let interrupted = () => lines.close();
  const interrupt = () => interrupted();

  lines.on("line", (line) => {
    if (waiting) waiting(line);
    else buffer.push(line);
    waiting = undefined;
  });
  lines.on("close", () => {
    closed = true;
    waiting?.(undefined);
    process.off("SIGINT", interrupt);
  });
  lines.on("SIGINT", interrupt); // from a TTY
  process.on("SIGINT", interrupt); // from another process

  return {
    write: (text) => void process.stdout.write(text),
    ask(prompt) {
      if (buffer.length > 0) return Promise.resolve(buffer.shift());
      if (closed) return Promise.resolve(undefined);
      lines.setPrompt(prompt);
      lines.prompt();
      return new Promise((resolve) => waiting = resolve);
    },
    onInterrupt: (next) => void (interrupted = next),
    close: () => lines.close(),
  };
}

/** Escapes the characters that a terminal would execute or hide, except line breaks and tabs. */
export function visible(text: string): string {
  return text.replace(/[^\P{C}\n\t]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
