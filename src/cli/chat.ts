/**
 * `jizai chat URL`: a conversation with a served agent.
 *
 * @module
 */
import { messageOf, type Terminal, visible } from "./terminal.ts";
import { client, type ClientRun } from "../client/client.ts";
import { ClientError, type ClientOptions, post, send, type Server } from "../client/connection.ts";
import type { Event } from "../protocol/event.ts";
import { textOf as textOfMessage } from "../protocol/message.ts";
import type { PersonAnswer, Question } from "../protocol/question.ts";

// A person's answers to the questions of a paused run.

/** The answers that one key gives, and those for which a line is typed. */
const keys = "[y]es, [n]o, [a]lways, [e]dit the input, no with a [r]eason, [t]ype a result: ";

/** The answers that a line gives, if a program writes it. */
const lines = "[y/N/a/e, or a reason] ";

/** Asks the questions of a paused run. Returns `undefined` if the input ends before the last is answered, or if the signal aborts. */
async function answersTo(
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

// Notices about the connection.

/** Returns a `fetch` option that writes when the connection is lost, and when it is there again. */
function noticing({ fetch: request = fetch }: ClientOptions, terminal: Terminal): Pick<ClientOptions, "fetch"> {
  let isLost = false;
  function lose(): void {
    if (!isLost) terminal.write("\n[no connection: trying again]\n");
    isLost = true;
  }
  return {
    async fetch(url, init) {
      if (new Headers(init.headers).has("last-event-id")) lose(); // the events before arrived over another connection
      try {
        const response = await request(url, init);
        if (isLost && response.status < 500) {
          isLost = false;
          terminal.write("[connected]\n");
        }
        return response;
      } catch (error) {
        if (!init.signal?.aborted) lose();
        throw error;
      }
    },
  };
}

// The text of an event on the screen.

/** Returns the text to write for an event. */
function textOf(event: Event): string {
  switch (event.type) {
    case "text.delta":
      return visible(event.text);
    case "call.ready":
      return callText(event.call);
    case "provider_tool.started":
      return callText(event.content);
    case "provider_tool.finished":
      return event.content.status === "ok" ? "" : `[${visible(event.content.name)}: ${event.content.status}]\n`;
    case "tool.finished":
      return event.result.status === "ok" ? "" : `[${visible(event.result.name)}: ${event.result.status}]\n`;
    case "steering.injected":
      return event.messages.map((message) => `\n[the agent reads: ${visible(textOfMessage(message))}]\n`).join("");
    case "run.finished":
      return endText(event);
    case "run.failed":
      return `\n[failed: ${visible(event.message)} (${visible(event.error)})]\n`;
    case "run.aborted":
      return `\n[stopped: ${visible(event.reason)}]\n`;
    default:
      return "";
  }
}

/** Returns the text for the end of a run: nothing for an answer that is complete. */
function endText({ status, reason, finish = "stop" }: Extract<Event, { type: "run.finished" }>): string {
  if (status !== "done") return `\n[${status}${reason ? `: ${visible(reason)}` : ""}]\n`;
  return finish === "stop" || finish === "calls" ? "\n" : `\n[the answer ended: ${finish}]\n`;
}

function callText({ name, input }: { readonly name: string; readonly input: unknown }): string {
  return `\n[${visible(name)} ${visible(JSON.stringify(input) ?? "")}]\n`;
}

// One run on the screen of a person, who can steer and stop it.

/** A conversation with one server. */
interface Conversation {
  readonly server: Server;
  readonly terminal: Terminal;
  /** Lines that were typed during a run and are not sent yet, in order. */
  readonly unsent: string[];
  /** Aborts when the person leaves. */
  readonly leaving: AbortController;
}

/** Writes the events of a run until it ends or pauses. Sends it the lines that are typed. Ctrl-C stops the run, once its id is known, and then leaves. */
async function showRun(run: ClientRun, conversation: Conversation): Promise<void> {
  const { terminal, unsent, leaving } = conversation;
  let isInterrupted = false;
  let stopping: Promise<boolean> | undefined;
  let sending = Promise.resolve();
  function sendOrders(): void {
    if (run.state.run === undefined) return;
    if (isInterrupted) stopping ??= stopRun(run, conversation);
    for (const line of unsent.splice(0)) sending = sending.then(() => sendLine(run, line, conversation));
  }
  terminal.onInterrupt(() => {
    if (isInterrupted) leave(conversation);
    isInterrupted = true;
    sendOrders();
  });
  terminal.keyboard?.onLine((line) => {
    unsent.push(line);
    sendOrders();
  });
  try {
    for await (const event of run.events) {
      terminal.write(textOf(event));
      sendOrders();
    }
    await Promise.all([stopping, sending]); // neither rejects
  } finally {
    terminal.keyboard?.onLine((line) => void unsent.push(line));
    if (leaving.signal.aborted) terminal.write("\n[left]\n");
  }
}

function leave({ terminal, leaving }: Conversation): void {
  leaving.abort();
  terminal.close();
}

/** Stops a run. Returns whether it was stopped, and writes the reason if it was not. */
async function stopRun(
  { state }: ClientRun,
  { server, terminal, leaving }: Conversation,
): Promise<boolean> {
  try {
    await send(server, post(`/runs/${state.run}/stop`, {}), leaving.signal);
    return true;
  } catch (error) {
    if (!leaving.signal.aborted) terminal.write(`\n[not stopped: ${visible(messageOf(error))}]\n`);
    return false;
  }
}

/** Sends a line to a run. A line that the run does not take, such as one that came too late, is kept for the next run. */
async function sendLine(
  { state }: ClientRun,
  line: string,
  { server, terminal, unsent, leaving }: Conversation,
): Promise<void> {
  try {
    await send(server, post(`/runs/${state.run}/messages`, { text: line }), leaving.signal);
  } catch (error) {
    const isOver = error instanceof ClientError && error.status === 404;
    if (!isOver && !leaving.signal.aborted) {
      terminal.write(`\n[not sent yet: ${visible(messageOf(error))}]\n`);
    }
    unsent.push(line);
  }
}

// The command `chat`: reads prompts and answers, and prints the events of their runs.

/**
 * Sends each line to the agent that is served at `url`, in one session, and writes its text and calls while they arrive. Asks about calls that need approval. A
 * line that a person types during a run is sent to the run. Ctrl-C stops the run, and a second one leaves it. Without a run, Ctrl-C ends the conversation, as
 * the end of the input does. Throws a `TypeError` if `url` is no URL of a server, and a `ClientError` if the server refuses a request. After the first run, a
 * person sees the error, and can type another line.
 */
export async function chat(url: string, terminal: Terminal, options: ClientOptions = {}): Promise<void> {
  // a `fetch` of the caller may take other addresses
  if (!options.fetch && !/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new TypeError(`Cannot chat with "${url}": expected a URL of a server, such as http://localhost:8000`);
  }
  const leaving = new AbortController();
  const server = { ...options, ...noticing(options, terminal), base: url.replace(/\/$/, "") };
  const conversation: Conversation = { server, terminal, unsent: [], leaving };
  let session: string | undefined;
  while (!leaving.signal.aborted) {
    const prompt = await nextPrompt(conversation);
    if (prompt === undefined) return;
    if (prompt.trim() === "") continue;
    try {
      session = await converse(conversation, prompt, session);
    } catch (error) {
      if (leaving.signal.aborted) return;
      if (!terminal.keyboard || session === undefined) throw error;
      terminal.write(`\n[${visible(messageOf(error))}]\n`);
    }
  }
}

/** Returns the line that no run took, or else the next line. */
async function nextPrompt({ terminal, unsent }: Conversation): Promise<string | undefined> {
  terminal.onInterrupt(() => terminal.close());
  const line = unsent.shift();
  if (line === undefined) return await terminal.ask("> ");
  terminal.write(`> ${line}\n`);
  return line;
}

/** Runs a prompt to its end, with the answers to all its questions. Returns the session. */
async function converse(
  conversation: Conversation,
  prompt: string,
  session: string | undefined,
): Promise<string | undefined> {
  const { server: { base, ...options }, terminal, leaving } = conversation;
  const request = { prompt, signal: leaving.signal, ...(session !== undefined && { session }) };
  let run = client(base, options).run(request);
  await showRun(run, conversation);
  while (run.state.status === "paused") {
    const interrupt = new AbortController();
    terminal.onInterrupt(() => terminal.keyboard ? interrupt.abort() : terminal.close());
    const answers = await answersTo(run.state.questions, terminal, interrupt.signal);
    if (!answers) {
      const isStopped = interrupt.signal.aborted && await stopRun(run, conversation);
      if (!isStopped) leaving.abort();
      break;
    }
    run = run.answer(answers);
    await showRun(run, conversation);
  }
  return run.state.session;
}
