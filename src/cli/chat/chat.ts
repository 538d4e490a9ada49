/**
 * `jizai chat URL`: a conversation with a served agent.
 *
 * @module
 */
import { client } from "../../client/client.ts";
import type { ClientOptions } from "../../client/connection.ts";
import { messageOf, type Terminal, visible } from "../terminal/terminal.ts";
import { answersTo } from "./answers.ts";
import { noticing } from "./connection_notices.ts";
import { type Conversation, showRun, stopRun } from "./show_run.ts";

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
