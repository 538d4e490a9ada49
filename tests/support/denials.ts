/**
 * Answers of hooks that deny, each in the form of one of the hook systems or of a program like them.
 *
 * @module
 */
import type { Chance } from "./seeded.ts";

/** The reason in answers that have one. */
export const reason = "Not here.";

/** Answers that deny. */
export const denials: readonly [unknown, ...unknown[]] = [
  { hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: reason } },
  { hookSpecificOutput: { hookEventName: "PostToolUse", permissionDecision: "deny" } },
  { hookSpecificOutput: { hookEventName: "pre_tool_use", permissionDecision: "deny" } },
  { hook_specific_output: { hook_event_name: "PreToolUse", permission_decision: "deny" } },
  { permissionDecision: "deny", permissionDecisionReason: reason },
  { permission_decision: "deny", permission_decision_reason: reason },
  { PermissionDecision: "DENY" },
  { permissionDecision: "denied" },
  { permissionDecision: ["deny"] },
  { decision: "block", reason },
  { decision: "deny" },
  { decision: "reject" },
  { Decision: "Block" },
  { decision: ["block"] },
  { decision: false },
  { decision: { action: "deny_tool", reason } },
  { decision: { behavior: "deny", message: reason } },
  { decision: "approve", permission_decision: "deny" },
  { continue: false, stopReason: reason },
  { continue: "false" },
  { action: "deny_tool", reason },
  { action: "denyTool" },
  { action: "deny" },
  { action: "block" },
  { action: "abort_turn" },
  { action: "hardAbort" },
  { approved: false, reason },
  { approved: "false" },
  { approved: 0 },
  { isApproved: false },
  { allow: false },
  { allowed: false },
  { behavior: "deny", message: reason },
  { block: true, reason },
  { blocked: "yes" },
  { should_block: true },
  { deny: true },
  { Deny: reason },
  { ok: false, reason },
  { result: { decision: "block", reason } },
  { result: { approved: false } },
  { result: { hookSpecificOutput: { permissionDecision: "deny" } } },
  { jsonrpc: "2.0", id: 1, result: { action: "deny_tool" } },
  { output: { permissionDecision: "deny" } },
  { response: { subtype: "success", response: { decision: "block" } } },
  { output: '{"decision":"block"}' },
  { kind: "denied-by-rules" },
  { resultType: "rejected" },
  { Abort: reason },
  { Cancel: reason },
  { Skip: true },
  { type: "Abort", reason },
  { verdict: "forbidden" },
  { effect: "Deny" },
  { status: "denied" },
  { action: "decline" },
  { permission: "deny", userMessage: "No." },
  { cancel: true },
  { result: false },
  { result: { allow: false } },
  { exit_code: 2 },
  { inner: { approved: false } },
  { inner: { more: [{ block: true }] } },
  { outcome: { allowed: false } },
  [{ decision: "block" }],
  "deny",
];

/** Answers that deny nothing. */
export const harmless: readonly unknown[] = [
  {},
  { mood: "good" },
  { decision: null, approved: null },
  { reason: "deny" },
  { blocked: false, denied: false },
  { status: "skipped", reason: "no repository" },
  { checks: [{ name: "lint", ok: false }] },
  { note: "block" },
  { toolName: "deny", toolArgs: { decision: "block", approved: false } },
  { tool_name: "block", tool_input: { action: "deny", behavior: "deny" }, permission_mode: "dontAsk" },
  { text: "deny", additionalInfo: { count: 1 } },
  "yes",
  "Skipped: this is no repository",
  1,
  true,
  false,
];

/** Returns an answer that denies, with its names, words and surroundings varied. */
export function randomDenial(chance: Chance): unknown {
  const { below, one } = chance;
  const answer = one<unknown>([...denials] as [unknown, ...unknown[]]);
  let made = respelled(answer, one([(name) => name, (name) => name, snake, pascal, upper]));
  for (let count = below(3); count > 0; count--) made = amid(chance, wrapped(chance, made));
  return made;
}

function wrapped({ one }: Chance, answer: unknown): unknown {
  const name = one([
    "result",
    "response",
    "output",
    "decision",
    "hookSpecificOutput",
    "hook_output",
    "answer",
    "data",
    "payload",
  ]);
  return one<unknown>([
    { [name]: answer },
    { [name]: answer },
    { [name]: [answer] },
    { [name]: JSON.stringify(answer) },
    [answer],
  ]);
}

/** Adds members that mean nothing. */
function amid({ below, one }: Chance, answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer) || below(2) === 0) return answer;
  const noise = {
    version: 1,
    mood: "good",
    ms: 3.5,
    tags: ["a"],
    debug: { matched: [] },
    note: "it is fine",
    id: null,
  };
  const [name, value] = one(Object.entries(noise) as [[string, unknown], ...[string, unknown][]]);
  return below(2) === 0 ? { [name]: value, ...answer } : { ...answer, [name]: value };
}

/** Changes the names of members. */
function respelled(value: unknown, spell: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => respelled(each, spell));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [spell(name), respelled(each, spell)]));
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter, at) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`);
}

function pascal(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replace(/_(.)/g, (_, letter) => letter.toUpperCase());
}

function upper(name: string): string {
  return snake(name).toUpperCase();
}
