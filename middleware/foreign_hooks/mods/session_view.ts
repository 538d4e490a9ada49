/**
 * The session as mods see it: its messages, the texts that enter its transcript, its models, and the tools that they register.
 *
 * @module
 */
import type { HostCall } from "./host.ts";
import type { Data } from "./patterns.ts";
import type { Mod } from "./registration.ts";
import type { At, ModRun } from "./run.ts";
import { objectOf } from "../kit/answers.ts";
import { messageOf } from "../kit/calls.ts";
import {
  type AnyTool,
  type CallResult,
  callsOf,
  type Message,
  type Model,
  noUsage,
  type Run,
  type Scope,
  state,
  textOf,
  tool,
  type Usage,
  user,
} from "../../../mod.ts";
import { isObject, schemaOf } from "../../../src/core/kit.ts";

// Messages, and the loops of subagents.

/** Returns the field that names the loop of a subagent. */
export function loopOf(run: Run): { readonly agentId?: string } {
  return run.parent ? { agentId: run.id } : {};
}

/** The author of the messages that mods build. */
const author = "mods";

function resultOf({ callId, status, parts }: CallResult): Data {
  return { tool_use_id: callId, text: textOf({ parts }), isError: status !== "ok" };
}

/** Returns messages as `$.session.messages()` does: calls have their results, if there are some. */
export function sessionMessages(messages: readonly Message[]): readonly Data[] {
  const results = new Map(
    messages.flatMap((message) => message.role === "tool" ? message.results : []).map((each) => [each.callId, each]),
  );
  return messages.map((message): Data => {
    if (message.role === "tool") {
      return { role: "user", text: "", toolUses: [], toolResults: message.results.map(resultOf) };
    }
    const calls = message.role === "assistant" ? callsOf(message) : [];
    const toolUses = calls.map(({ id, name: tool, input }) => {
      const result = results.get(id);
      const text = result && textOf(result);
      return {
        ...{ tool_use_id: id, tool, input: objectOf(input) },
        ...(result && { result: text, text, ...(result.status !== "ok" && { isError: true }) }),
      };
    });
    return { role: message.role, text: textOf(message), toolUses };
  });
}

/** Returns messages with a handle each, by which a list that comes back refers to them. The handles count up from `first`. */
export function handledMessages(messages: readonly Message[], first = 0): readonly Data[] {
  return sessionMessages(messages).map((message, index) => ({ ...message, handle: String(first + index) }));
}

/** Returns the transcript that a list stands for. A message with a handle is our own, whole; another one is built from its text, its calls and their results. */
export function transcriptOf(list: unknown, messages: readonly Message[]): readonly Message[] {
  return (Array.isArray(list) ? list : []).flatMap((item): readonly Message[] => {
    const fields = objectOf(item);
    const known = typeof fields.handle === "string" ? messages[Number(fields.handle)] : undefined;
    return known ? [known] : builtFrom(fields);
  });
}

function builtFrom({ role, text, toolUses, toolResults }: Data): readonly Message[] {
  const parts = typeof text === "string" && text !== "" ? [{ type: "text", text } as const] : [];
  if (Array.isArray(toolResults) && toolResults.length > 0) {
    const results = toolResults.map((each) => builtResult(objectOf(each)));
    return [{ role: "tool", results }, ...(parts.length > 0 ? [user(String(text), author)] : [])];
  }
  if (role !== "assistant") return parts.length > 0 ? [user(String(text), author)] : [];
  const calls = (Array.isArray(toolUses) ? toolUses : []).map(objectOf).map((call) => ({
    ...{ type: "call" as const, id: String(call.tool_use_id), name: String(call.tool), input: call.input ?? {} },
  }));
  return parts.length + calls.length > 0 ? [{ role: "assistant", parts: [...parts, ...calls] }] : [];
}

function builtResult({ tool_use_id, text, isError }: Data): CallResult {
  const status = isError === true ? "error" : "ok";
  return { callId: String(tool_use_id), name: "", status, parts: [{ type: "text", text: String(text ?? "") }] };
}

// The event `session.append`: a message that enters the transcript, whose texts mods may change.

/** The places at which messages enter the transcript. */
type Door = "prompt" | "response" | "tool-result";

/** Whether a mod names the event. It is of later builds, and a hook of all events need not know it. */
export function appends({ links }: ModRun): boolean {
  return links.some(({ pattern }) => pattern === "session.append" || pattern === "session.*");
}

/** Raises `session.append` for a message, and returns the texts of its blocks. Only texts and the content of results may change. */
export async function appendedText(run: ModRun, at: At, door: Door, message: Data): Promise<readonly string[]> {
  if (!appends(run)) return [];
  const e = { message, door, origin: { kind: "engine" }, uuid: crypto.randomUUID(), ...loopOf(at.ctx.run) };
  const answer = await run.raise("session.append", e, ({ message }) => Promise.resolve({ message }), at);
  const { content } = objectOf(answer.message);
  return (Array.isArray(content) ? content : []).map(objectOf).flatMap(({ text, content }) => {
    const shown = text ?? content;
    return typeof shown === "string" ? [shown] : [];
  });
}

// Requests of mods to a model.

/** The tokens of a completion, if the mod sets none. */
const maxTokens = 1_024;

/** Returns the model of an id: from the option `models`, or that of the run. Without an id, it is that of the run. */
export function modelOf({ model, options: { models } }: ModRun, id: unknown): Model | undefined {
  if (id === undefined || id === "inherit" || id === model?.id) return model;
  return models?.(String(id));
}

/** Returns token counts as mods see them. */
export function usageOf({ input, output, cached = 0, cacheWrite = 0 }: Usage, model?: string): Data {
  return {
    input_tokens: Math.max(0, input - cached - cacheWrite),
    output_tokens: output,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
    ...(model !== undefined && { model }),
  };
}

/** Asks a model, and returns its text in the form of the dialect. */
export async function completeText(
  { model: id, prompt, system = "", maxTokens: tokens = maxTokens }: Data,
  { run, signal }: HostCall,
  before: readonly Message[] = [],
): Promise<unknown> {
  const isOld = run.options.dialect === "2.1.277";
  try {
    const model = modelOf(run, id);
    if (!model) throw new TypeError(`there is no model "${id}"`);
    const request = {
      model,
      instructions: String(system),
      messages: [...before, user(String(prompt))],
      tools: [],
      options: { maxTokens: Number(tokens) },
    };
    let text = "";
    let usage = noUsage;
    for await (const events of model.stream(request, { signal })) {
      for (const event of events) {
        if (event.type === "text") text += event.text;
        else if (event.type === "finish") usage = event.usage ?? noUsage;
      }
    }
    return isOld ? text : { isAnswered: true, text, usage: usageOf(usage, model.id) };
  } catch (error) {
    if (signal.aborted) throw error;
    return isOld ? null : { isAnswered: false, reason: messageOf(error) };
  }
}

// Tools that mods register. They stay for the whole run, and a hook at `tool.call` answers their calls.

/** A tool that a mod has registered. */
interface RegisteredTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

const registered = state<readonly RegisteredTool[]>("mods.tools", () => []);

/** Registers a tool, and returns its whole name. One of the same name is replaced. */
export function registerTool(ctx: Scope, mod: Mod, { name: short, description, inputSchema }: Data): string {
  if (typeof short !== "string" || !/^[\w-]{1,64}$/.test(short)) {
    throw new TypeError("Cannot call $.tool.register(): expected a name of up to 64 letters, digits, _ and -");
  }
  const whole = `mcp__${mod.name.replace(/[^\w-]/g, "_")}__${short}`;
  const schema = isObject(inputSchema) ? inputSchema : { type: "object" };
  const registeredTool = { name: whole, description: String(description ?? ""), inputSchema: schema };
  registered.update(ctx, (all) => [...all.filter((each) => each.name !== whole), registeredTool]);
  return whole;
}

/** Returns the tools that mods have registered. */
export function toolsOf(ctx: Scope): readonly AnyTool[] {
  return registered.get(ctx).map(({ name, description, inputSchema }) =>
    tool({
      name,
      description,
      input: schemaOf<unknown>(inputSchema),
      execute() {
        throw new Error(`Cannot run ${name}: no mod has answered its call`);
      },
    })
  );
}
