/**
 * `jizai chat URL`: a conversation with a served agent.
 *
 * @module
 */
import { client } from "../client/client.ts";
import type { ClientOptions } from "../client/connection.ts";
import type { ClientRun } from "../client/run.ts";
import type { Event } from "../protocol/event.ts";
import type { PersonAnswer, Question } from "../protocol/question.ts";
import { type Terminal, visible } from "./terminal.ts";

/**
 * Sends each line to the agent that is served at `url`, in one session, and writes its text and calls while they arrive. Asks about calls that need approval.
 * Ctrl-C stops the run. Without a run it ends the conversation, as the end of the input does. Throws a `ClientError` if the server refuses a request.
 */
export async function chat(url: string, terminal: Terminal, options: ClientOptions = {}): Promise<void> {
  const assistant = client(url.replace(/\/$/, ""), options);
  let session: string | undefined;
  for (;;) {
    terminal.onInterrupt(terminal.close);
    const prompt = await terminal.ask("> ");
    if (prompt === undefined) return;
    if (prompt.trim() === "") continue;
    let run = assistant.run({ prompt, ...(session !== undefined && { session }) });
    await show(run, terminal);
    while (run.state.status === "paused") {
      const answers = await answersTo(run.state.questions, terminal);
      if (!answers) return;
      run = run.answer(answers);
      await show(run, terminal);
    }
    session = run.state.session;
  }
}

/** Writes the events of a run until it ends or pauses. Ctrl-C stops the run, once its id is known. */
async function show(run: ClientRun, terminal: Terminal): Promise<void> {
  let interrupted = false;
  let stopping: Promise<void> | undefined;
  function stop(): void {
    interrupted = true;
    if (run.state.run !== undefined) stopping ??= stopRun(run, terminal);
  }
  terminal.onInterrupt(stop);
  for await (const event of run.events) {
    terminal.write(textOf(event));
    if (interrupted) stop();
  }
  await stopping;
}

/** Stops a run, or writes why it cannot. */
async function stopRun(run: ClientRun, terminal: Terminal): Promise<void> {
  try {
    await run.stop();
  } catch (error) {
    terminal.write(`\n[not stopped: ${visible(error instanceof Error ? error.message : String(error))}]\n`);
  }
}

/** Returns the text to write for an event. */
function textOf(event: Event): string {
  switch (event.type) {
    case "text.delta":
      return visible(event.text);
    case "call.ready":
      return `\n[${visible(event.call.name)} ${visible(JSON.stringify(event.call.input) ?? "")}]\n`;
    case "tool.finished":
      return event.result.status === "ok" ? "" : `[${visible(event.result.name)}: ${event.result.status}]\n`;
    case "run.finished":
      return event.status === "done"
        ? "\n"
        : `\n[${event.status}${event.reason ? `: ${visible(event.reason)}` : ""}]\n`;
    case "run.failed":
      return `\n[failed: ${visible(event.message)} (${visible(event.error)})]\n`;
    case "run.aborted":
      return `\n[stopped: ${visible(event.reason)}]\n`;
    default:
      return "";
  }
}

/** Asks the questions of a paused run. Returns `undefined` if the input ends before the last is answered. */
async function answersTo(
  questions: readonly Question[],
  terminal: Terminal,
): Promise<readonly PersonAnswer[] | undefined> {
  const answers: PersonAnswer[] = [];
  terminal.onInterrupt(terminal.close);
  for (const { callId, tool, input, questions: texts } of questions) {
    terminal.write(`${texts.map((text) => visible(text)).join("\n")}\n`);
    if (tool !== undefined) terminal.write(`${visible(tool)} ${visible(JSON.stringify(input, null, 2) ?? "")}\n`);
    const typed = (await terminal.ask(callId === undefined ? "answer: " : "[y/N, or a reason] "))?.trim();
    if (typed === undefined) return undefined;
    answers.push(answerOf(callId, typed));
  }
  return answers;
}

/** Returns the answer that a line means: `y` approves a call, and every other line denies it and is the reason. */
function answerOf(callId: string | undefined, typed: string): PersonAnswer {
  if (callId === undefined) return { type: "reply", text: typed };
  if (/^y(es)?$/i.test(typed)) return { type: "approve", callId };
  return /^(no?)?$/i.test(typed) ? { type: "deny", callId } : { type: "deny", callId, reason: typed };
}
