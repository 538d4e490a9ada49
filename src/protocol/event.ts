/**
 * Events: what happened in a run, for clients and observers. One flat union, `noun.verb`, plain JSON. The events of a run's start and end,
 * of a response, and of a call are in `run_event.ts`, `response_event.ts` and `tool_event.ts`.
 *
 * ```text
 * run.started
 *   session.opened
 *   prompt.accepted
 *   turn.started
 *     model.started
 *       reasoning.delta*  text.delta*  output.delta*  part.added*  call.delta*  call.ready*
 *       provider_tool.started*  provider_tool.finished*
 *     model.finished
 *     tool.started  approval.asked?  approval.decided  tool.progress*  tool.finished     (per call)
 *   turn.finished
 *   ...
 *   session.closed
 * run.finished | run.paused | run.failed | run.aborted
 * ```
 *
 * @module
 */
import type { FileChange } from "./files.ts";
import type { UserMessage } from "./message.ts";
import type { ResponseEvent } from "./response_event.ts";
import type { Json } from "./part.ts";
import type { RunEvent } from "./run_event.ts";
import type { ToolEvent } from "./tool_event.ts";

/** A place in the lifecycle. */
export type Point =
  | "session"
  | "input"
  | "prompt"
  | "turn"
  | "model"
  | "tool"
  | "approval"
  | "execute"
  | "stop"
  | "compact"
  | "subagent"
  | "error"
  | "abort";

/** Something that happened in a run. */
export type Event =
  | RunEvent
  | { readonly type: "session.opened"; readonly source: "new" | "resume" }
  | { readonly type: "session.closed" }
  | { readonly type: "prompt.accepted"; readonly prompt: UserMessage }
  | { readonly type: "turn.started"; readonly turn: number }
  | ResponseEvent
  | ToolEvent
  | { readonly type: "turn.finished"; readonly turn: number }
  | { readonly type: "steering.injected"; readonly messages: readonly UserMessage[] }
  | { readonly type: "steering.interrupted" }
  | { readonly type: "notice"; readonly text: string }
  | { readonly type: "data"; readonly name: string; readonly data: Json }
  | {
    readonly type: "warning";
    readonly code: WarningCode;
    readonly message: string;
    readonly middleware?: string;
    readonly point?: Point;
    readonly error?: string;
  }
  | { readonly type: "compact.started"; readonly trigger: CompactTrigger }
  | {
    readonly type: "compact.finished";
    readonly trigger: CompactTrigger;
    /** `failed`: the transcript stays as it is; if a provider has refused it, the oldest messages were left out instead. */
    readonly status: "compacted" | "declined" | "failed";
    /** The estimated tokens of the transcript before the compaction. */
    readonly before: number;
    /** The estimated tokens of the transcript after the compaction. */
    readonly after: number;
    /** The reason why it was declined. */
    readonly reason?: string;
  }
  | ({
    readonly type: "file.changed";
    readonly turn?: number;
    /** The call that changed the file; undefined if the change came from outside the run. */
    readonly call?: string;
  } & FileChange)
  | {
    readonly type: "cwd.changed";
    readonly turn: number;
    readonly call: string;
    readonly from: string;
    readonly to: string;
  }
  | {
    readonly type: "instructions.loaded";
    /** The file's path, or the URL. */
    readonly path: string;
    /** The session was opened, or a call entered the directory of the instructions. */
    readonly reason: "session" | "directory";
    readonly turn?: number;
    readonly call?: string;
  }
  | { readonly type: "subagent.started"; readonly call: string; readonly agent: string; readonly run: string }
  | { readonly type: "subagent.event"; readonly call: string; readonly agent: string; readonly event: Event }
  | {
    readonly type: "subagent.finished";
    readonly call: string;
    readonly agent: string;
    readonly status: string;
    /** The text of the unfinished answer, which the model does not receive. */
    readonly text?: string;
  }
  | {
    readonly type: "hook.acted";
    readonly middleware: string;
    readonly point: Point;
    readonly turn?: number;
    readonly call?: string;
    /** The acts of the hook: it answered without the inner layers, changed what they receive or return, or threw. */
    readonly did: readonly HookAct[];
    /** The keys that it passed to `next()`. */
    readonly changed?: readonly string[];
    /** The answer, if the point decides something: an approval, a status. */
    readonly decided?: string;
    readonly ms: number;
  };

/** Returns true for the event with which a run ends or pauses. */
export function isLastEvent({ type }: Event): boolean {
  return type.startsWith("run.") && type !== "run.started";
}

/** An observable act of a hook. */
export type HookAct = "passed" | "answered" | "changed" | "replaced" | "retried" | "threw";

/** The cause of a compaction: the transcript exceeded the limit, a request asked for it, or the provider refused a request as too large. */
export type CompactTrigger = "auto" | "manual" | "overflow";

/** The subject of a `warning`. */
export type WarningCode =
  | "transcript.repaired"
  | "transcript.trimmed"
  | "hook.failed"
  | "hook.abandoned"
  | "hook.skipped"
  | "note.dropped"
  | "observer.failed"
  | "response.unread"
  | "tool.abandoned"
  | "tool.removed"
  | "session.unsaved";

/** Emits an event. */
export type Emit = (event: Event) => void;
