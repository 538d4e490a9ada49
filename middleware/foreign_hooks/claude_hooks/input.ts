/**
 * What hooks are told, event by event, in the words of the systems they were written for.
 *
 * @module
 */
/** What every hook is told. */
export type CommonInput = {
  /** The session of the outermost run: agents beneath say theirs by `agent_id`. */
  session_id: string;
  /** The transcript's file where `transcript()` keeps one, else empty. */
  transcript_path: string;
  /** Where the agent is: in its workspace, where it has one. */
  cwd: string;
  /** The prompt that is answered. */
  prompt_id?: string;
  /** The model that was chosen when the session was opened. */
  model?: string;
  /** What became of the mode by `updatedPermissions`; `default` before. */
  permission_mode?: string;
  /** The run of an agent beneath another. */
  agent_id?: string;
  /** The name of an agent beneath another. */
  agent_type?: string;
};

/** What is told of a call. */
export type CallInput = CommonInput & {
  tool_name: string;
  tool_input: unknown;
  tool_use_id: string;
  mcp_server?: { name: string; source: string };
};

/** What is told when an agent is about to stop. */
export type StoppingInput = CommonInput & {
  stop_hook_active: boolean;
  last_assistant_message?: string;
  background_tasks?: never[];
  session_crons?: never[];
};

/** Before a call. */
export type PreToolUseInput = CallInput & { hook_event_name: "PreToolUse" };
/** After a call that is ok. `duration_ms` counts the work alone. */
export type PostToolUseInput = CallInput & {
  hook_event_name: "PostToolUse";
  tool_response: unknown;
  duration_ms?: number;
};
/** After a call that failed. `duration_ms` counts the work alone. */
export type PostToolUseFailureInput = CallInput & {
  hook_event_name: "PostToolUseFailure";
  error: string;
  is_interrupt?: boolean;
  duration_ms?: number;
};
/** After all calls of a response. */
export type PostToolBatchInput = CommonInput & {
  hook_event_name: "PostToolBatch";
  tool_calls: { tool_name: string; tool_input: unknown; tool_use_id: string; tool_response?: unknown }[];
};
/** Where a person would be asked about a call. */
export type PermissionRequestInput = Omit<CallInput, "tool_use_id"> & {
  hook_event_name: "PermissionRequest";
  permission_suggestions?: PermissionSuggestion[];
};
/** What may be answered so that nobody is asked again: what `updatedPermissions` takes. */
export type PermissionSuggestion = {
  type: "addRules";
  rules: { toolName: string }[];
  behavior: "allow";
  destination: "session";
};
/** After a guard has denied a call. */
export type PermissionDeniedInput = CallInput & {
  hook_event_name: "PermissionDenied";
  reason: string;
  denial_reason?: string;
};
/** Before a prompt is taken. */
export type UserPromptSubmitInput = CommonInput & {
  hook_event_name: "UserPromptSubmit";
  prompt: string;
  image_urls?: string[];
  source?: "sdk";
};
/** Before a prompt is taken that is a command. */
export type UserPromptExpansionInput = CommonInput & {
  hook_event_name: "UserPromptExpansion";
  expansion_type: "slash_command";
  command_name: string;
  command_args: string;
  prompt: string;
};
/** When a session is opened, and after it was compacted. */
export type SessionStartInput = CommonInput & {
  hook_event_name: "SessionStart";
  source: "startup" | "resume" | "compact";
};
/** When a session is closed. */
export type SessionEndInput = CommonInput & { hook_event_name: "SessionEnd"; reason: "other" };
/** When the agent is about to finish. */
export type StopInput = StoppingInput & { hook_event_name: "Stop" };
/** When a run fails because the model does. */
export type StopFailureInput = CommonInput & {
  hook_event_name: "StopFailure";
  error: StopFailureKind;
  error_details?: string;
  last_assistant_message?: string;
};
/** What a model fails of, as both systems say it. */
export type StopFailureKind =
  | "authentication_failed"
  | "billing_error"
  | "rate_limit"
  | "invalid_request"
  | "server_error"
  | "unknown";
/** When an agent beneath begins. */
export type SubagentStartInput = CommonInput & {
  hook_event_name: "SubagentStart";
  agent_id: string;
  agent_type: string;
};
/** When an agent beneath is about to finish. */
export type SubagentStopInput = StoppingInput & {
  hook_event_name: "SubagentStop";
  agent_id: string;
  agent_type: string;
  agent_transcript_path: string;
};
/** Before the transcript is compacted. */
export type PreCompactInput = CommonInput & {
  hook_event_name: "PreCompact";
  trigger: "manual" | "auto";
  custom_instructions: string | null;
};
/** After the transcript was compacted. */
export type PostCompactInput = CommonInput & {
  hook_event_name: "PostCompact";
  trigger: "manual" | "auto";
  compact_summary: string;
};
/** After the agent went elsewhere. */
export type CwdChangedInput = CommonInput & { hook_event_name: "CwdChanged"; old_cwd: string; new_cwd: string };
/** After a file of the workspace became another. */
export type FileChangedInput = CommonInput & {
  hook_event_name: "FileChanged";
  file_path: string;
  event: "change" | "add" | "unlink";
};
/** After instructions were loaded. */
export type InstructionsLoadedInput = CommonInput & {
  hook_event_name: "InstructionsLoaded";
  file_path: string;
  memory_type: "Project" | "Managed";
  load_reason: "session_start" | "nested_traversal";
};
/** When a person is asked. */
export type NotificationInput = CommonInput & {
  hook_event_name: "Notification";
  message: string;
  title?: string;
  notification_type: "permission_prompt";
};
/** While the answer streams: the lines that are new. */
export type MessageDisplayInput = CommonInput & {
  hook_event_name: "MessageDisplay";
  turn_id: string;
  message_id: string;
  index: number;
  final: boolean;
  delta: string;
};
/** After another model answered than the one that was to. */
export type PostModelSwitchInput = CommonInput & {
  hook_event_name: "PostModelSwitch";
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
/** Before the tool `EnterWorktree` makes a worktree. */
export type WorktreeCreateInput = CommonInput & { hook_event_name: "WorktreeCreate"; name: string };
/** After the tool `ExitWorktree` removed a worktree. */
export type WorktreeRemoveInput = CommonInput & { hook_event_name: "WorktreeRemove"; worktree_path: string };

/** What a hook of any event may be told. */
export type HookInput =
  | PreToolUseInput
  | PostToolUseInput
  | PostToolUseFailureInput
  | PostToolBatchInput
  | PermissionRequestInput
  | PermissionDeniedInput
  | UserPromptSubmitInput
  | UserPromptExpansionInput
  | SessionStartInput
  | SessionEndInput
  | StopInput
  | StopFailureInput
  | SubagentStartInput
  | SubagentStopInput
  | PreCompactInput
  | PostCompactInput
  | CwdChangedInput
  | FileChangedInput
  | InstructionsLoadedInput
  | NotificationInput
  | MessageDisplayInput
  | PostModelSwitchInput
  | WorktreeCreateInput
  | WorktreeRemoveInput;

/** The events that happen here. */
export type HookEvent = HookInput["hook_event_name"];
/** What the hooks of one event are told. */
export type InputOf<E extends HookEvent> = Extract<HookInput, { hook_event_name: E }>;
/** What sets one event apart: its input without what every event says. */
export type Told<E extends HookEvent> = Omit<InputOf<E>, keyof CommonInput | "hook_event_name">;

/** Events of the other systems that cannot happen here. */
export type UnheardEvent =
  | "PreModelSwitch"
  | "Setup"
  | "TeammateIdle"
  | "TaskCreated"
  | "TaskCompleted"
  | "Elicitation"
  | "ElicitationResult"
  | "ConfigChange"
  | "DirectoryAdded";
