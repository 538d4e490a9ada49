/**
 * The terminal of the process: a person's, or a pipe.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { LineQueue } from "./line_queue.ts";
import type { Terminal } from "./terminal.ts";
import { KeyboardTerminal } from "./keyboard_terminal.ts";

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
