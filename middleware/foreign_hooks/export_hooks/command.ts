/**
 * Middleware as a command hook of Claude, which answers one event.
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
import { commandTool } from "./command_tool.ts";
import type { Onions } from "./onions.ts";
import { type OnError, reasonOf, runsOf, scopeOf } from "./runs.ts";
import { type CommandInput, commandInput, type CommandOutput, decided, specific } from "./output.ts";

/** Returns the output of a command for its input. Throws for an invalid input. */
export type Command = (input: unknown) => Promise<CommandOutput>;

/** The most blocks of Stop in a row, in Claude. */
const { mostBlocks } = dialects.claude;

/** Creates the function that answers with the hooks in `onions`. */
export function commandOf(onions: Onions, onError: OnError): Command {
  const events: Readonly<Record<string, (scope: Scope, event: CommandInput) => Promise<CommandOutput>>> = {
    ...commandTool(onions, onError),
    ...commandRun(onions),
  };

  return async (given) => {
    const event = commandInput.parse(given);
    const { hook_event_name: name, session_id: session, prompt_id: id = session } = event;
    const notices: string[] = [];
    const foreign = runsOf(onError)({ id, session, agent: "" });
    const scope = scopeOf(foreign, (event) => {
      if (event.type === "notice") notices.push(event.text);
    });
    const addNotices = (output: CommandOutput) =>
      notices.length === 0 ? output : { ...output, systemMessage: notices.join("\n") };
    try {
      const output = await events[name]?.(scope, event) ?? {};
      const end = foreign.ended();
      return addNotices(end ? { ...output, continue: false, stopReason: end.reason } : output);
    } catch (error) {
      if (!(error instanceof Error && isInterrupt(error))) throw error;
      const reason = reasonOf(error);
      const asks = error instanceof Pause && name === "PreToolUse";
      return addNotices(asks ? decided("ask", reason) : { continue: false, stopReason: reason });
    }
  };
}

/** Creates the outputs of events about prompts, sessions and stops. */
function commandRun(onions: Onions) {
  async function UserPromptSubmit(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const prompt = user(event.prompt);
    let context: readonly string[] = [];
    let changed = prompt;
    const arrived = { ...scope, source: "prompt" as const, messages: [prompt], context };
    const input = await onions.input(arrived, ({ messages: [message], context: added }) => {
      if (message?.role === "user") changed = message;
      context = added;
      return Promise.resolve({ status: "accepted", messages: [changed] });
    });
    if (input.status === "cancelled") return { decision: "block", reason: input.reason ?? "" };
    const ctx = { ...scope, prompt: changed, transcript: [], context, resumed: false };
    const { status, reason = "" } = await onions.prompt(ctx, (reached) => {
      context = reached.context;
      changed = reached.prompt;
      return Promise.resolve({ status: "done", text: "" });
    });
    if (status === "cancelled") return { decision: "block", reason };
    if (canonicalJson(changed) !== canonicalJson(prompt)) {
      return { decision: "block", reason: `It is only allowed as: ${textOf(changed)}` };
    }
    return context.length === 0 ? {} : specific("UserPromptSubmit", { additionalContext: context.join("\n") });
  }

  async function SessionStart(scope: Scope, event: CommandInput): Promise<CommandOutput> {
    const { session_id: session, source } = event;
    let context: readonly string[] = [];
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
      context = reached.context;
      return Promise.resolve(result);
    });
    if (status === "cancelled") return { continue: false, stopReason: reason };
    return context.length === 0 ? {} : specific("SessionStart", { additionalContext: context.join("\n") });
  }

  async function Stop(scope: Scope, event: CommandInput): Promise<CommandOutput> {
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
