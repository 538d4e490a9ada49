/**
 * The table of events: where each one occurs, and what its hooks can do.
 *
 * @module
 */
import type { Point } from "../../../../mod.ts";
import type { HookEvent, UnsupportedEvent } from "./input.ts";

/** One event. */
export interface EventRow {
  /** The point at which it occurs. */
  readonly point: Point;
  /** The input field that matchers test. Default: none, so every matcher matches. */
  readonly matches?: string;
  /** Whether a hook can prevent the action that the event announces. */
  readonly guards?: boolean;
  /** The effect of exit code 2 of a command: it blocks, or adds context for the model. Default: the person receives a notice. */
  readonly exit2?: "block" | "context";
  /** Whether plain output of a command is context for the model. */
  readonly plainText?: boolean;
}

/** The events that occur here. */
export const events: Readonly<Record<HookEvent, EventRow>> = {
  PreToolUse: { point: "tool", matches: "tool_name", guards: true, exit2: "block" },
  PostToolUse: { point: "tool", matches: "tool_name", exit2: "block" },
  PostToolUseFailure: { point: "tool", matches: "tool_name", exit2: "context" },
  PostToolBatch: { point: "turn", exit2: "block" },
  PermissionRequest: { point: "approval", matches: "tool_name", guards: true, exit2: "block" },
  PermissionDenied: { point: "tool", matches: "tool_name" },
  UserPromptSubmit: { point: "prompt", guards: true, exit2: "block", plainText: true },
  UserPromptExpansion: { point: "prompt", matches: "command_name", guards: true, exit2: "block", plainText: true },
  SessionStart: { point: "session", matches: "source", plainText: true },
  SessionEnd: { point: "session", matches: "reason" },
  Stop: { point: "stop", exit2: "block" },
  StopFailure: { point: "error", matches: "error" },
  SubagentStart: { point: "session", matches: "agent_type" },
  SubagentStop: { point: "stop", matches: "agent_type", exit2: "block" },
  PreCompact: { point: "compact", matches: "trigger", guards: true, exit2: "block" },
  PostCompact: { point: "compact", matches: "trigger" },
  CwdChanged: { point: "tool" },
  FileChanged: { point: "tool", matches: "file_path" },
  InstructionsLoaded: { point: "session", matches: "load_reason" },
  Notification: { point: "approval", matches: "notification_type" },
  MessageDisplay: { point: "model" },
  PostModelSwitch: { point: "model", matches: "to_model", plainText: true },
  WorktreeCreate: { point: "tool", guards: true },
  WorktreeRemove: { point: "tool" },
};

const unsupported: Readonly<Record<UnsupportedEvent, true>> = {
  PreModelSwitch: true,
  Setup: true,
  TeammateIdle: true,
  TaskCreated: true,
  TaskCompleted: true,
  Elicitation: true,
  ElicitationResult: true,
  ConfigChange: true,
  DirectoryAdded: true,
};

/** Whether an event occurs here. */
export function occurs(event: string): event is HookEvent {
  return Object.hasOwn(events, event);
}

/** Returns the event of that name, in which capital letters do not matter. */
export function eventNamed(name: string): string | undefined {
  return Object.keys(events).find((event) => event.toLowerCase() === name.toLowerCase());
}

/** Says why hooks of an event never run; undefined for an event that occurs here. */
export function silenceOf(event: string): string | undefined {
  if (occurs(event)) return undefined;
  if (Object.hasOwn(unsupported, event)) return `Hooks of ${event} never run: the event does not occur here.`;
  const meant = eventNamed(event);
  const unknown = `Hooks of ${event} never run: unknown event`;
  return meant === undefined ? `${unknown}.` : `${unknown}; did you mean ${meant}?`;
}

/** Whether a hook can prevent the action that an event announces. Capital letters in its name do not matter. */
export function isGuard(event: string): boolean {
  return Object.entries(events).some(([name, { guards }]) => guards && name.toLowerCase() === event.toLowerCase());
}

/** Whether a hook can prevent a call or a prompt that an event announces: there, a denial counts in whatever form. */
export function guardsCall(event: HookEvent): boolean {
  const { guards = false, point } = events[event];
  return guards && (point === "tool" || point === "approval" || point === "prompt");
}

/** Returns the message that hooks of an event, or those of them that `which` describes, never run. For guards, it adds that nothing is blocked. */
export function neverRun(event: string, reason: string, which?: string): string {
  const hooks = `Hooks of ${event}${which === undefined ? "" : ` with ${which}`}`;
  return `${hooks} never run: ${reason}.${isGuard(event) ? " What they would block is not blocked." : ""}`;
}

/** Returns the value in the input of an event that matchers test. For a file, it is the name without the directory. */
export function matchedIn(event: HookEvent, input: Readonly<Record<string, unknown>>): string | undefined {
  const { matches } = events[event];
  const value = matches === undefined ? undefined : input[matches];
  if (typeof value !== "string") return undefined;
  return matches === "file_path" ? value.slice(value.lastIndexOf("/") + 1) : value;
}
