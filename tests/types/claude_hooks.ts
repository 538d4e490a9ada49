/**
 * Hooks with the types of the Claude Agent SDK and of the Qoder Agent SDK, passed to the adapter. Compiled, never run.
 *
 * @module
 */
import type * as claude from "@anthropic-ai/claude-agent-sdk";
import * as ours from "@jizai/jizai/middleware/claude_hooks";
import type * as qoder from "@qoder-ai/qoder-agent-sdk";

/** Compiles if `T` is true. */
function is<T extends true>(..._proof: T[]): void {}

/** The events whose hooks receive fields that `Input` does not have. */
type Wrong<Input, E extends ours.HookEvent> = {
  [K in E]: ours.InputOf<K> extends Extract<Input, { hook_event_name: K }> ? never : K;
}[E];
is<[Wrong<claude.HookInput, ours.HookEvent>] extends [never] ? true : false>();
is<[Wrong<qoder.HookInput, qoder.HookEvent>] extends [never] ? true : false>();

// every event is known as supported or as unsupported; all events of Qoder are supported
is<claude.HookEvent extends ours.HookEvent | ours.UnsupportedEvent ? true : false>();
is<qoder.HookEvent extends ours.HookEvent ? true : false>();

// every output of the SDK is accepted
is<claude.HookJSONOutput extends ours.HookOutput ? true : false>();
is<qoder.HookJSONOutput extends ours.HookOutput ? true : false>();

declare const options: { readonly claude: claude.Options; readonly qoder: qoder.Options };
declare const ask: { readonly claude: claude.CanUseTool; readonly qoder: qoder.CanUseTool };
declare const every: {
  readonly claude: Record<claude.HookEvent, claude.HookCallbackMatcher[]>;
  readonly qoder: Record<qoder.HookEvent, qoder.HookCallbackMatcher[]>;
};

ours.claude_hooks(options.claude.hooks ?? {}, { dialect: "claude", canUseTool: ask.claude });
ours.claude_hooks(options.qoder.hooks ?? {}, { dialect: "qoder", canUseTool: ask.qoder });
ours.claude_hooks(every.claude);
ours.claude_hooks(every.qoder, { dialect: "qodercli", cwd: "/repo" });

const protect: claude.HookCallback = async (input, toolUseID, { signal }) => {
  if (input.hook_event_name !== "PreToolUse" || signal.aborted || toolUseID === undefined) return {};
  const { file_path } = input.tool_input as { file_path?: string };
  return await Promise.resolve<claude.HookJSONOutput>({
    hookSpecificOutput: {
      hookEventName: input.hook_event_name,
      permissionDecision: file_path?.endsWith(".env") ? "deny" : "allow",
      updatedInput: { file_path },
    },
  });
};
const redact: qoder.HookCallback = async (input) => {
  if (input.hook_event_name !== "PostToolUse") return {};
  const text = typeof input.tool_response === "string" ? input.tool_response : JSON.stringify(input.tool_response);
  const updatedToolOutput = await Promise.resolve(text.replace(/AKID\w+/g, "<REDACTED>"));
  return { hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput } };
};
const own: ours.HookCallback = (input) => input.hook_event_name === "Stop" ? { decision: "block" } : undefined;

ours.claude_hooks({
  PreToolUse: [{ matcher: "Write|Edit", hooks: [protect, own], timeout: 5, onFailure: "block" }],
  PostToolUse: [{ hooks: [redact, (input) => ({ systemMessage: `${input.tool_name} ${input.tool_use_id}` })] }],
  Elicitation: [{ hooks: [protect] }],
});
// @ts-expect-error: there is no such event
ours.claude_hooks({ PreToolsUse: [{ hooks: [protect] }] });
// @ts-expect-error: a hook is a function
ours.claude_hooks({ PreToolUse: [{ hooks: ["protect.sh"] }] });
// @ts-expect-error: there is no such system
ours.claude_hooks({}, { dialect: "cursor" });
