/**
 * The events of Qoder and Claude, and the inputs of their hooks, with their field names.
 *
 * @module
 */
import { isGuard } from "../kit/settings.ts";
import type { Point } from "../../../mod.ts";

// The table of events: where each one occurs, and what its hooks can do.

/** One event. */
interface EventRow {
  /** The point at which it occurs. */
  readonly point: Point;
  /** The input field that matchers test. Default: none, so every matcher matches. */
  readonly matches?: string;
  /** The effect of exit code 2 of a command: it blocks, or adds context for the model. Default: the person receives a notice. */
  readonly exit2?: "block" | "context";
  /** Whether plain output of a command is context for the model. */
  readonly plainText?: boolean;
}

/** The events that occur here. */
export const events: Readonly<Record<HookEvent, EventRow>> = {
  PreToolUse: { point: "tool", matches: "tool_name", exit2: "block" },
  PostToolUse: { point: "tool", matches: "tool_name", exit2: "block" },
  PostToolUseFailure: { point: "tool", matches: "tool_name", exit2: "context" },
  PostToolBatch: { point: "turn", exit2: "block" },
  PermissionRequest: { point: "approval", matches: "tool_name", exit2: "block" },
  PermissionDenied: { point: "tool", matches: "tool_name" },
  UserPromptSubmit: { point: "prompt", exit2: "block", plainText: true },
  UserPromptExpansion: { point: "prompt", matches: "command_name", exit2: "block", plainText: true },
  SessionStart: { point: "session", matches: "source", plainText: true },
  SessionEnd: { point: "session", matches: "reason" },
  Stop: { point: "stop", exit2: "block" },
  StopFailure: { point: "error", matches: "error" },
  SubagentStart: { point: "session", matches: "agent_type" },
  SubagentStop: { point: "stop", matches: "agent_type", exit2: "block" },
  PreCompact: { point: "compact", matches: "trigger", exit2: "block" },
  PostCompact: { point: "compact", matches: "trigger" },
  CwdChanged: { point: "tool" },
  FileChanged: { point: "tool", matches: "file_path" },
  InstructionsLoaded: { point: "session", matches: "load_reason" },
  Notification: { point: "approval", matches: "notification_type" },
  MessageDisplay: { point: "model" },
  PostModelSwitch: { point: "model", matches: "to_model", plainText: true },
  WorktreeCreate: { point: "tool" },
  WorktreeRemove: { point: "tool" },
  Elicitation: { point: "execute", matches: "mcp_server_name", exit2: "block" },
  ElicitationResult: { point: "execute", matches: "mcp_server_name", exit2: "block" },
};

const unsupported: Readonly<Record<UnsupportedEvent, true>> = {
  PreModelSwitch: true,
  Setup: true,
  TeammateIdle: true,
  TaskCreated: true,
  TaskCompleted: true,
  ConfigChange: true,
  PreSkillShellCommand: true,
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

/** Whether a hook can prevent a call or a prompt that an event announces: there, a denial counts in whatever form. */
export function guardsCall(event: HookEvent): boolean {
  return isGuard(event) && ["tool", "approval", "prompt"].includes(events[event].point);
}

/** Returns the value in the input of an event that matchers test. For a file, it is the name without the directory. */
export function matchedIn(event: HookEvent, input: Readonly<Record<string, unknown>>): string | undefined {
  const { matches } = events[event];
  const value = matches === undefined ? undefined : input[matches];
  if (typeof value !== "string") return undefined;
  return matches === "file_path" ? value.slice(value.lastIndexOf("/") + 1) : value;
}

// The inputs of hooks: the fields that all of them have, and those that each event adds.

/** The fields that every hook receives. */
export type CommonInput = {
  /** The session of the outermost run. A subagent is identified by `agent_id`. */
  session_id: string;
  /** The file that `transcript()` writes; empty without one. */
  transcript_path: string;
  /** The working directory of the agent in its workspace. */
  cwd: string;
  /** The id of the outermost run. */
  prompt_id?: string;
  /** The model that was chosen when the session was opened. */
  model?: string;
  /** The mode that `updatedPermissions` has set. Default: "default". */
  permission_mode?: string;
  /** The effort of the last request, once the model has been asked. Absent for a provider's default. */
  effort?: { level: EffortLevel };
  /** The run of a subagent. */
  agent_id?: string;
  /** The name of a subagent. */
  agent_type?: string;
};

/** An effort of reasoning. */
export type EffortLevel = "low" | "medium" | "high" | "xhigh" | "max";

/** The fields of a call. */
export type CallFields = {
  tool_name: string;
  tool_input: unknown;
  tool_use_id: string;
  mcp_server?: { name: string; source: string };
};

/** The fields of an agent that is about to stop. */
export type StopFields = {
  stop_hook_active: boolean;
  last_assistant_message?: string;
  background_tasks?: never[];
  session_crons?: never[];
};

/** An update that prevents further questions about a tool; `updatedPermissions` accepts it. */
export type PermissionSuggestion = {
  type: "addRules";
  rules: { toolName: string }[];
  behavior: "allow";
  destination: "session";
};

/** The cause of a failed model request. `max_output_tokens` is the end of an answer at the limit of its length. */
export type StopFailureKind =
  | "authentication_failed"
  | "oauth_org_not_allowed"
  | "account_on_hold"
  | "billing_error"
  | "cloud_credential_error"
  | "rate_limit"
  | "overloaded"
  | "model_not_found"
  | "invalid_request"
  | "server_error"
  | "max_output_tokens"
  | "unknown";

/** The fields that each event adds to the common ones. */
export type EventFields = {
  /** Before a call. */
  PreToolUse: CallFields;
  /** After a successful call. `duration_ms` is the time of the tool's own work. */
  PostToolUse: CallFields & { tool_response: unknown; duration_ms?: number };
  /** After a failed call. `error` is the message of the error as thrown. */
  PostToolUseFailure: CallFields & { error: string; is_interrupt?: boolean; duration_ms?: number };
  /** After all calls of a response. */
  PostToolBatch: {
    tool_calls: { tool_name: string; tool_input: unknown; tool_use_id: string; tool_response?: unknown }[];
  };
  /** Before a person is asked about a call. */
  PermissionRequest: Omit<CallFields, "tool_use_id"> & { permission_suggestions?: PermissionSuggestion[] };
  /** After a guard denied a call. */
  PermissionDenied: CallFields & { reason: string; denial_reason?: string };
  /** Before a prompt is accepted. */
  UserPromptSubmit: { prompt: string; image_urls?: string[]; source?: "sdk" | "system"; session_title?: string };
  /** Before a prompt such as `/name arguments` is accepted. */
  UserPromptExpansion: {
    expansion_type: "slash_command" | "mcp_prompt";
    command_name: string;
    command_args: string;
    command_source?: string;
    prompt: string;
  };
  /** When a session is opened, and after a compaction. In "claude", the source of a session that was made from another one is "fork", which other types lack. */
  SessionStart: {
    source: "startup" | "resume" | "clear" | "compact";
    session_title?: string;
    seconds_since_last_response?: number;
    context_tokens?: number;
    prompt_cache_likely_expired?: boolean;
    estimated_cache_write_usd?: number;
  };
  /** When the run of a session has ended. A pause is not an end. */
  SessionEnd: { reason: "other" };
  /** When the agent is about to finish. */
  Stop: StopFields;
  /** When a run fails. */
  StopFailure: { error: StopFailureKind; error_details?: string; last_assistant_message?: string };
  /** When a subagent begins. */
  SubagentStart: { agent_id: string; agent_type: string };
  /** When a subagent is about to finish. */
  SubagentStop: StopFields & { agent_id: string; agent_type: string; agent_transcript_path: string };
  /** Before a compaction. */
  PreCompact: { trigger: "manual" | "auto"; custom_instructions: string | null };
  /** After a compaction. */
  PostCompact: { trigger: "manual" | "auto"; compact_summary: string };
  /** After a change of the working directory. */
  CwdChanged: { old_cwd: string; new_cwd: string };
  /** After a change of a file in the workspace. */
  FileChanged: { file_path: string; event: "change" | "add" | "unlink" };
  /** After instructions were loaded. */
  InstructionsLoaded: {
    file_path: string;
    memory_type: "Project" | "Managed";
    load_reason: "session_start" | "nested_traversal";
  };
  /** When a person is asked. */
  Notification: { message: string; title?: string; notification_type: "permission_prompt" };
  /** For each batch of new lines of a streamed answer. */
  MessageDisplay: { turn_id: string; message_id: string; index: number; final: boolean; delta: string };
  /** After a model answered that was not the requested one. */
  PostModelSwitch: {
    from_model: string;
    to_model: string;
    requested_model: string | null;
    source: "auto";
    context_tokens: number;
    prompt_cache_warm: boolean;
    cache_ttl: "5m";
    estimated_cache_write_usd: number;
    pricing: "default";
  };
  /** Before the tool `EnterWorktree` creates a worktree. */
  WorktreeCreate: { name: string };
  /** After the tool `ExitWorktree` removed a worktree. */
  WorktreeRemove: { worktree_path: string };
  /** When a server of `mcp()` asks a person. */
  Elicitation: {
    mcp_server_name: string;
    message: string;
    mode: "form" | "url";
    url?: string;
    elicitation_id?: string;
    requested_schema?: Record<string, unknown>;
  };
  /** When a person has answered a server. */
  ElicitationResult: {
    mcp_server_name: string;
    action: "accept" | "decline" | "cancel";
    content?: Record<string, unknown>;
    mode: "form" | "url";
    elicitation_id?: string;
  };
};

/** The events that occur here. */
export type HookEvent = keyof EventFields;
/** The input of a hook of event `E`. */
export type InputOf<E extends HookEvent> = CommonInput & { hook_event_name: E } & EventFields[E];
/** The input of a hook. */
export type HookInput = { [E in HookEvent]: InputOf<E> }[HookEvent];

/** Events of the home systems that do not occur here. */
export type UnsupportedEvent =
  | "PreModelSwitch"
  | "Setup"
  | "TeammateIdle"
  | "TaskCreated"
  | "TaskCompleted"
  | "ConfigChange"
  | "DirectoryAdded"
  | "PreSkillShellCommand";
