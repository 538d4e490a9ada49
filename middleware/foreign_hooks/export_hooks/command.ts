/**
 * Middleware as a command hook of Claude: what it says to one event.
 *
 * @module
 */
import {
  defaultLimits,
  finish,
  isInterrupt,
  noUsage,
  Pause,
  type RunResult,
  type Scope,
  textOf,
  user,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import { dialects } from "../claude_hooks/config/dialect.ts";
import { tellingTool } from "./command_tool.ts";
import type { Onions } from "./onions.ts";
import { type OnError, reasonOf, runsOf, scopeOf } from "./runs.ts";
import { type CommandOutput, decided, specific, type Told, told } from "./told.ts";

/** Answers what a command is told on its standard input. Throws where that is nothing that a hook is told. */
export type Command = (input: unknown) => Promise<CommandOutput>;

/** How often in a row an agent may be kept from stopping there. */
const { mostBlocks } = dialects.claude;

/** Makes who answers for `onions`. */
export function commandOf(onions: Onions, onError: OnError): Command {
  const events: Readonly<Record<string, (scope: Scope, event: Told) => Promise<CommandOutput>>> = {
    ...tellingTool(onions, onError),
    ...tellingRun(onions),
  };

  return async (given) => {
    const event = told.parse(given);
    const { hook_event_name: name, session_id: session, prompt_id: id = session } = event;
    const notices: string[] = [];
    const foreign = runsOf(onError)({ id, session, agent: "" });
    const scope = scopeOf(foreign, (event) => {
      if (event.type === "notice") notices.push(event.text);
    });
    const say = (output: CommandOutput) =>
      notices.length === 0 ? output : { ...output, systemMessage: notices.join("\n") };
    try {
      const output = await events[name]?.(scope, event) ?? {};
      const end = foreign.ended();
      return say(end ? { ...output, continue: false, stopReason: end.reason } : output);
    } catch (error) {
      if (!(error instanceof Error && isInterrupt(error))) throw error;
      const reason = reasonOf(error);
      const asks = error instanceof Pause && name === "PreToolUse";
      return say(asks ? decided("ask", reason) : { continue: false, stopReason: reason });
    }
  };
}

/** Answers about prompts, sessions and their end. */
function tellingRun(onions: Onions) {
  async function UserPromptSubmit(scope: Scope, event: Told): Promise<CommandOutput> {
    const prompt = user(event.prompt);
    let said: readonly string[] = [];
    let meant = prompt;
    const ctx = { ...scope, prompt, transcript: [], context: [], resumed: false };
    const { status, reason = "" } = await onions.prompt(ctx, (reached) => {
      said = reached.context;
      meant = reached.prompt;
      return Promise.resolve({ status: "done", text: "" });
    });
    if (status === "cancelled") return { decision: "block", reason };
    if (canonicalJson(meant) !== canonicalJson(prompt)) {
      return { decision: "block", reason: `It may only be said like this: ${textOf(meant)}` };
    }
    return said.length === 0 ? {} : specific("UserPromptSubmit", { additionalContext: said.join("\n") });
  }

  async function SessionStart(scope: Scope, event: Told): Promise<CommandOutput> {
    const { session_id: session, source } = event;
    let said: readonly string[] = [];
    const model = { id: "", stream: () => ReadableStream.from([]) };
    const ctx = {
      ...scope,
      session,
      source: source === "startup" ? "new" as const : "resume" as const,
      resumed: false,
      settings: { model, instructions: "", tools: [], limits: defaultLimits },
      context: [],
    };
    const result: RunResult = {
      status: "done",
      run: "",
      session,
      text: "",
      questions: [],
      usage: noUsage,
      messages: [],
    };
    const { status, reason = "" } = await onions.session(ctx, (reached) => {
      said = reached.context;
      return Promise.resolve(result);
    });
    if (status === "cancelled") return { continue: false, stopReason: reason };
    return said.length === 0 ? {} : specific("SessionStart", { additionalContext: said.join("\n") });
  }

  async function Stop(scope: Scope, event: Told): Promise<CommandOutput> {
    const verdict = await onions.stop({
      ...scope,
      message: { role: "assistant", parts: [{ type: "text", text: event.last_assistant_message }] },
      transcript: [],
      continuations: event.stop_hook_active ? 1 : 0,
      limit: mostBlocks,
      resumed: false,
    }, () => Promise.resolve(finish()));
    if (verdict.type === "finish") return {};
    if (verdict.type === "pause") return { continue: false, stopReason: verdict.question };
    return { decision: "block", reason: verdict.messages.map(textOf).join("\n") };
  }

  return { UserPromptSubmit, SessionStart, Stop };
}
