/**
 * Handlers of type `prompt`, `agent` and `mcp_tool`: a model, an agent or a tool of an MCP server decides.
 *
 * @module
 */
import { agent, type Model } from "../../../../mod.ts";
import { isObject, parseJson } from "../../kit/fields.ts";
import { commandError, denialOf, outputOf } from "../output.ts";
import type { McpToolHook, PromptHook } from "../handler_config.ts";
import type { Handler } from "./handler.ts";

/** Calls tools of an MCP server: the `Client` of `@modelcontextprotocol/client`, or an object like it. */
export interface McpClient {
  /** Calls a tool. */
  callTool(
    call: { name: string; arguments: Record<string, unknown> },
    options?: { signal: AbortSignal },
  ): Promise<{ content?: unknown; isError?: unknown }>;
}

/** Decides about events: an agent made by `agent()`. */
export interface HookAgent {
  /** Runs the agent. */
  run(options: { prompt: string; signal: AbortSignal }): {
    readonly result: Promise<{ readonly status: string; readonly text: string }>;
  };
}

const instructions = 'Decide about an event. Answer with JSON alone: {"ok": true}, or {"ok": false, "reason": "..."}.';

/** Creates a handler of type `prompt`. */
export function promptHandler(hook: PromptHook, model: Model): Handler {
  return agentHandler(hook, agent({ name: "prompt_hook", model, instructions }));
}

/** Creates a handler of type `agent`. */
export function agentHandler({ prompt }: PromptHook, decider: HookAgent): Handler {
  return async (input, { signal }) => {
    const json = JSON.stringify(input);
    const text = prompt.includes("$ARGUMENTS") ? prompt.replaceAll("$ARGUMENTS", () => json) : `${prompt}\n\n${json}`;
    const { status, text: answer } = await decider.run({ prompt: text, signal }).result;
    if (status !== "done") throw commandError(`its run is ${status}`, prompt);
    const decision = parseJson(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1));
    if (!isObject(decision) || typeof decision.ok !== "boolean") {
      const denial = denialOf(input.hook_event_name, decision ?? answer);
      if (denial) return denial;
      throw commandError('expected JSON with a boolean "ok"', prompt);
    }
    return decision.ok ? undefined : { decision: "block", reason: String(decision.reason ?? "Blocked by a hook.") };
  };
}

/** Creates a handler of type `mcp_tool`. The text of the result is read like the output of a command. */
export function mcpToolHandler({ server, tool, input: template = {} }: McpToolHook, client: McpClient): Handler {
  const name = `${server} ${tool}`;
  return async (input, { signal, dialect }) => {
    const call = {
      name: tool,
      arguments: Object.fromEntries(Object.entries(template).map(([key, value]) => [key, fill(value, input)])),
    };
    const { content, isError } = await client.callTool(call, { signal });
    const parts = Array.isArray(content) ? content : [];
    const stdout = parts.map((part) => isObject(part) && typeof part.text === "string" ? part.text : "").join("");
    const denial = isError === true ? denialOf(input.hook_event_name, parseJson(stdout)) : undefined;
    if (denial) return denial;
    if (isError === true) throw commandError(`the tool failed: ${stdout}`, name);
    return outputOf({ code: 0, stdout, stderr: "" }, { event: input.hook_event_name, dialect, name });
  };
}

/** Replaces `${a.b}` in strings by the field `a.b` of the input. */
function fill(value: unknown, input: object): unknown {
  if (Array.isArray(value)) return value.map((each) => fill(each, input));
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fill(each, input)]));
  if (typeof value !== "string") return value;
  return value.replace(/\$\{([\w.]+)\}/g, (_, path: string) => {
    const found = path.split(".").reduce<unknown>((at, key) => isObject(at) ? at[key] : undefined, input);
    return typeof found === "string" ? found : JSON.stringify(found) ?? "";
  });
}
