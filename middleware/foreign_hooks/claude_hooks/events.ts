/**
 * Events by their names: which there are, and which of them happen here.
 *
 * @module
 */
import type { HookEvent, UnheardEvent } from "./input.ts";

const heard: Readonly<Record<HookEvent, true>> = {
  PreToolUse: true,
  PostToolUse: true,
  PostToolUseFailure: true,
  PostToolBatch: true,
  PermissionRequest: true,
  PermissionDenied: true,
  UserPromptSubmit: true,
  UserPromptExpansion: true,
  SessionStart: true,
  SessionEnd: true,
  Stop: true,
  StopFailure: true,
  SubagentStart: true,
  SubagentStop: true,
  PreCompact: true,
  PostCompact: true,
  CwdChanged: true,
  FileChanged: true,
  InstructionsLoaded: true,
  Notification: true,
  MessageDisplay: true,
  PostModelSwitch: true,
  WorktreeCreate: true,
  WorktreeRemove: true,
};

const unheard: Readonly<Record<UnheardEvent, true>> = {
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

/** Why hooks of an event are never asked; nothing where they are. */
export function silenceOf(event: string): string | undefined {
  if (Object.hasOwn(heard, event)) return undefined;
  if (Object.hasOwn(unheard, event)) return `Hooks of ${event} are never asked: that does not happen here.`;
  const meant = Object.keys(heard).find((name) => name.toLowerCase() === event.toLowerCase());
  return `Hooks of ${event} are never asked: there is no such event${meant === undefined ? "" : `, but ${meant}`}.`;
}
