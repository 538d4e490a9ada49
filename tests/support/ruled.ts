/**
 * Calls under a permission rule in the syntax of Claude.
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";

/** The field that each tool declares. */
const declared: Readonly<Record<string, string>> = {
  Bash: "command",
  Read: "file_path",
  NotebookEdit: "notebook_path",
  WebFetch: "url",
  WebSearch: "query",
  Agent: "subagent_type",
};

/** Returns whether each call runs ("ok"), is denied, or would be asked about, under a rule of the session such as `Bash(rm *)`. */
export async function ruled(
  behavior: "allow" | "ask" | "deny",
  rule: string,
  inputs: readonly (string | Readonly<Record<string, unknown>>)[],
  { cwd = "/repo", field, as, isText = false }: {
    readonly cwd?: string;
    /** The field that the tool declares. Default: that of the tool in Claude. */
    readonly field?: string;
    /** The name of the tool. Default: the one in the rule. */
    readonly as?: string;
    /** Whether the rule is one text, in place of the tool. */
    readonly isText?: boolean;
  } = {},
): Promise<readonly string[]> {
  const [, toolName = rule, ruleContent] = /^([^(]+)\((.*)\)$/s.exec(rule) ?? [];
  const name = as ?? toolName;
  const own = field ?? declared[name] ?? "input";
  const used = tool({
    name,
    description: "Works",
    ask: behavior === "allow",
    input: z.looseObject({ [own]: z.unknown().optional(), limit: z.number().optional() }),
    execute: () => "ran",
  });
  const setup = tool({ name: "Setup", description: "Sets up", ask: true, input: z.object({}), execute: () => "done" });
  const added = {
    type: "addRules",
    behavior,
    destination: "session",
    rules: [isText ? { toolName: rule } : { toolName, ...(ruleContent !== undefined && { ruleContent }) }],
  };
  const answers: HookCallback = (input) => {
    if (input.hook_event_name !== "PermissionRequest") return;
    const decision = input.tool_name === "Setup"
      ? { behavior: "allow" as const, updatedPermissions: [added] }
      : { behavior: "deny" as const, message: "asked" };
    return { hookSpecificOutput: { hookEventName: "PermissionRequest", decision } };
  };
  const calls = inputs.map((input, index) => ({
    id: String(index),
    name,
    input: typeof input === "string" ? { [own]: input } : input,
  }));
  const { messages } = await agent({
    model: scripted({ calls: [["Setup", {}]] }, { calls }, "Done."),
    tools: [setup, used],
    use: [claude_hooks({ PermissionRequest: [{ hooks: [answers] }] }, { dialect: "claude", cwd })],
    limits: { calls: Infinity },
  }).run("Go").result;
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []).slice(1);
  return results.map(({ status, parts: [part] }) => part?.type === "text" && part.text === "asked" ? "asked" : status);
}
