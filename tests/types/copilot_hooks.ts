/**
 * Hooks with the types of Copilot's SDK, passed to the adapter. Compiled, never run.
 *
 * @module
 */
import type * as sdk from "@github/copilot-sdk";
import * as ours from "@jizai/jizai/middleware/copilot_hooks";

type Theirs = Required<sdk.SessionHooks>;
type Ours = Required<ours.SessionHooks<Date>>;
type Name = keyof Theirs;
type Output<H extends (...args: never) => unknown> = Exclude<Awaited<ReturnType<H>>, void>;

/** Compiles if `T` is true. */
function is<T extends true>(..._proof: T[]): void {}

declare const hooks: sdk.SessionHooks;

ours.copilot_hooks(hooks, { dialect: "node" });
ours.copilot_hooks([hooks, { onPreToolUse: () => ({ permissionDecision: "deny" }) }], {
  dialect: "node",
  cwd: "/repo",
});
// @ts-expect-error: by default the time is a number
ours.copilot_hooks(hooks);
// @ts-expect-error: there is no such hook
ours.copilot_hooks({ onToolUse: () => {} });

const written: sdk.SessionHooks = {
  onPreToolUse: (input) => ({ permissionDecision: "ask", modifiedArgs: input.toolArgs }),
  onPreMcpToolCall: (input) => ({ metaToUse: input._meta ?? null }),
  onPostToolUse: async (input) => ({ modifiedResult: await Promise.resolve(input.toolResult) }),
  onPostToolUseFailure: (input) => ({ additionalContext: input.error }),
  onUserPromptSubmitted: (input) => ({ modifiedPrompt: input.prompt }),
  onUserPromptTransformed: (input) => ({ modifiedTransformedPrompt: input.transformedPrompt }),
  onSessionStart: (input) => ({ additionalContext: input.source, modifiedConfig: { model: "gpt-5" } }),
  onSessionEnd: (input) => ({ sessionSummary: input.reason, cleanupActions: [] }),
  onErrorOccurred: (input) => input.recoverable ? { errorHandling: "retry", retryCount: 2 } : undefined,
  onAgentStop(input, { sessionId }) {
    if (!input.stopHookActive) return { decision: "block", reason: sessionId };
  },
};
ours.copilot_hooks(written, { dialect: "node" });

// there is a handler for each hook of the SDK, and for those that its documents have and its types lack
type Documented = "onSubagentStart" | "onSubagentStop" | "onPreCompact" | "onPermissionRequest" | "onNotification";
is<[Name] extends [keyof Ours] ? true : false>();
is<[keyof Ours] extends [Name | Documented] ? true : false>();

// the inputs have the types of the SDK, and its outputs are accepted
type Wrong = {
  [K in Name]: [Parameters<Ours[K]>[0], Output<Theirs[K]>] extends [Parameters<Theirs[K]>[0], Output<Ours[K]> | null]
    ? never
    : K;
}[Name];
is<[Wrong] extends [never] ? true : false>();
