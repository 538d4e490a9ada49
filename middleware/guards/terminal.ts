/**
 * Asks a person on the terminal, on Deno, Node and Bun.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline/promises";
import type { Question } from "../../mod.ts";
import { visible } from "../../src/core/kit.ts";

/** Asks one question. Returns the typed line, or `undefined` if there is no terminal. Rejects when `signal` aborts. */
export type AskLine = (text: string, options: { readonly signal: AbortSignal }) => Promise<string | undefined>;

/** The answer of a person. */
export interface TerminalAnswer {
  /** Whether the call may run. */
  readonly allow: boolean;
  /** The reason for a denial, for the model. */
  readonly reason?: string;
}

/**
 * Creates a callback for `human()` that asks on the terminal. `y` allows the call. Any other input denies it and is given to the model as the reason.
 * Without a terminal, every call is denied. `askLine` replaces the way to ask. Default: standard input and output.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { human } from "@jizai/jizai/middleware/human";
 * import { terminal } from "@jizai/jizai/middleware/terminal";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({ model: scripted("Hello!"), use: [human(terminal())] });
 * ```
 */
export function terminal(
  askLine: AskLine = readLine,
): (question: Question, options: { readonly signal: AbortSignal }) => Promise<TerminalAnswer> {
  return async ({ tool, input, questions }, { signal }) => {
    const lines = [ // the person sees exactly what is asked
      ...questions.map((question) => visible(question)),
      ...tool === undefined ? [] : [`${visible(tool)} ${visible(JSON.stringify(input, null, 2) ?? "", "\n")}`],
      "[y/N, or a reason] ",
    ];
    const typed = (await askLine(lines.join("\n"), { signal }))?.trim() ?? "";
    if (/^y(es)?$/i.test(typed)) return { allow: true };
    return /^(no?)?$/i.test(typed) ? { allow: false } : { allow: false, reason: typed };
  };
}

async function readLine(text: string, options: { readonly signal: AbortSignal }): Promise<string | undefined> {
  if (!process.stdin.isTTY) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await lines.question(text, options);
  } finally {
    lines.close();
  }
}
