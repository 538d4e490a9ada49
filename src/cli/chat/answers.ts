/**
 * A person's answers to the questions of a paused run.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { messageOf, type Terminal, visible } from "../terminal/terminal.ts";

/** The answers that one key gives, and those for which a line is typed. */
const keys = "[y]es, [n]o, [a]lways, [e]dit the input, no with a [r]eason, [t]ype a result: ";

/** The answers that a line gives, if a program writes it. */
const lines = "[y/N/a/e, or a reason] ";

/** Asks the questions of a paused run. Returns `undefined` if the input ends before the last is answered, or if the signal aborts. */
export async function answersTo(
  questions: readonly Question[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<readonly PersonAnswer[] | undefined> {
  const answers: PersonAnswer[] = [];
  for (const question of questions) {
    const { callId, tool, input, questions: texts } = question;
    terminal.write(`${texts.map((text) => visible(text)).join("\n")}\n`);
    if (tool !== undefined) terminal.write(`${visible(tool)} ${visible(JSON.stringify(input, null, 2) ?? "")}\n`);
    const answer = callId === undefined
      ? await typedReply("answer: ", undefined, terminal, signal)
      : await answerTo(callId, input, terminal, signal);
    if (!answer) return undefined;
    answers.push(answer);
  }
  return answers;
}

/** Asks about a call. Every line of a program that has no meaning of its own denies the call and is the reason. */
async function answerTo(
  callId: string,
  input: unknown,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<PersonAnswer | undefined> {
  const { keyboard } = terminal;
  const typed = keyboard ? await keyboard.key(keys, "ynaert", signal) : (await terminal.ask(lines, { signal }))?.trim();
  if (typed === undefined) return undefined;
  if (keyboard && typed === "t") return await typedReply("result: ", callId, terminal, signal);
  if (keyboard && typed === "r") {
    const reason = await terminal.ask("reason: ", { signal });
    return reason === undefined ? undefined : { type: "deny", callId, reason };
  }
  if (/^y(es)?$/i.test(typed)) return { type: "approve", callId };
  if (/^a(lways)?$/i.test(typed)) return { type: "approve", callId, always: "tool" };
  if (/^e(dit)?$/i.test(typed)) return await editedInput(callId, JSON.stringify(input) ?? "", terminal, signal);
  return /^(no?)?$/i.test(typed) ? { type: "deny", callId } : { type: "deny", callId, reason: typed };
}

async function typedReply(
  prompt: string,
  callId: string | undefined,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<PersonAnswer | undefined> {
  const text = (await terminal.ask(prompt, { signal }))?.trim();
  return text === undefined ? undefined : { type: "reply", text, ...(callId !== undefined && { callId }) };
}

/** Asks for the input until it is JSON. */
async function editedInput(
  callId: string,
  before: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<PersonAnswer | undefined> {
  let text: string | undefined = before;
  for (;;) {
    text = await terminal.ask("input: ", { text, signal });
    if (text === undefined) return undefined;
    try {
      return { type: "approve", callId, input: JSON.parse(text) };
    } catch (error) {
      terminal.write(`[not JSON: ${visible(messageOf(error))}]\n`);
    }
  }
}
