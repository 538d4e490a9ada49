/**
 * Asks on the terminal. For Deno.
 *
 * @module
 */
import type { Question } from "../../mod.ts";

/**
 * Makes a callback for `human()` that asks on the terminal: `y` allows, anything else denies and is told to the model as the reason.
 * Where there is no terminal nobody can say yes. It blocks the process while it waits: for programs with one user.
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
export function terminal(): (question: Question) => { readonly allow: boolean; readonly reason?: string } {
  return ({ tool, input, questions }) => {
    const lines = [
      ...questions.map((question) => visible(question)),
      ...tool === undefined ? [] : [`${visible(tool)} ${visible(JSON.stringify(input, null, 2) ?? "", "\n")}`],
      "[y/N, or why not]",
    ];
    const typed = prompt(lines.join("\n"))?.trim() ?? "";
    if (/^y(es)?$/i.test(typed)) return { allow: true };
    return /^(no?)?$/i.test(typed) ? { allow: false } : { allow: false, reason: typed };
  };
}

/** `text` with everything spelled out that a terminal would obey or not show, except for `kept`: what is asked must be what is seen. */
function visible(text: string, kept = ""): string {
  return text.replace(/\p{C}/gu, (char) => char === kept ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
