/**
 * The params of requests to hooks, and the kinds of events that hooks can observe.
 *
 * @module
 */
import type { WireMessage, WireResponse, WireResult, WireTool } from "./message.ts";
import type { Scope } from "../../../../mod.ts";

// The kinds of events that hooks can observe.

/** Every kind, by its name in the document. Its index is its number in the version of the document. */
const names = [
  "turn_start",
  "turn_end",
  "llm_request",
  "llm_delta",
  "llm_response",
  "llm_retry",
  "context_compress",
  "session_summarize",
  "tool_exec_start",
  "tool_exec_end",
  "tool_exec_skipped",
  "steering_injected",
  "follow_up_queued",
  "interrupt_received",
  "subturn_spawn",
  "subturn_end",
  "subturn_result_delivered",
  "subturn_orphan",
  "error",
] as const;

/** The kinds of events about servers of tools. Only later versions of the wire have them. */
const mcpKinds = [
  ...["mcp.server.connecting", "mcp.server.connected", "mcp.server.failed"] as const,
  ...["mcp.tool.discovered", "mcp.tool.call.start", "mcp.tool.call.end"] as const,
] as const;

/** The kind of an event about a server of tools. */
export type McpKind = (typeof mcpKinds)[number];

/** The kind of an event. */
export type Kind = (typeof names)[number] | McpKind;

/** Returns whether a kind is that of an event about a server of tools. */
export function isMcpKind(kind: Kind): kind is McpKind {
  return kind.startsWith("mcp.");
}

/** The form of kinds: `tool_exec_start`, 8, or `agent.tool.exec_start`. */
export type KindForm = "names" | "numbers" | "dotted";

/** Kinds of parts of the home system that do not exist here. Hooks may ask for them. */
const elsewhere =
  /^(agent\.(message|thread)|channel|bus|gateway|mcp)\.[a-z_.]+$|^(message_(sent|delivered|received|reply|blocked)|thread_closed)$/;

/** Writes a kind. */
export function writeKind(kind: Kind, form: KindForm): string | number {
  if (isMcpKind(kind)) return kind;
  if (form === "numbers") return names.indexOf(kind);
  return form === "names" ? kind : `agent.${kind.replace(/^(follow_up|[a-z]+)_/, "$1.")}`;
}

const allKinds: readonly Kind[] = [...names, ...mcpKinds];

const known: ReadonlyMap<string, Kind> = new Map(
  allKinds.flatMap((name): [string, Kind][] => [[name, name], [String(writeKind(name, "dotted")), name]]),
);

/** Returns the kinds that a configuration names. Throws a `TypeError` for an unknown one. */
export function kindsOf(observe: readonly string[]): ReadonlySet<Kind> {
  if (observe.some((name) => ["", "*", "all"].includes(name))) return new Set(allKinds);
  return new Set(observe.flatMap((name) => {
    const kind = known.get(name);
    if (!kind && !elsewhere.test(name)) throw new TypeError(`unknown event "${name}" in \`observe\``);
    return kind ? [kind] : [];
  }));
}

// The params of the requests to hooks, and the fields that all of them have.

/** The version of the wire: that of the document, or later versions. */
export type WireVersion = "document" | "head";

/** The run and the place that a request belongs to. */
export interface Meta {
  /** The name of the agent. */
  readonly AgentID: string;
  /** The run. */
  readonly TurnID: string;
  /** The run of the caller of a subagent; empty without one. */
  readonly ParentTurnID: string;
  /** The session. */
  readonly SessionKey: string;
  /** The response of the model that the request belongs to, from 0. */
  readonly Iteration: number;
  /** The place in the loop. */
  readonly TracePath: string;
  /** The source of the event. */
  readonly Source: string;
}

/** The conversation, the agent and the session of a request, in "head". */
export interface TurnContext {
  /** The conversation. */
  readonly inbound: { readonly channel: string; readonly chat_id: string };
  /** The agent that was chosen for the conversation. */
  readonly route: {
    /** The name of the agent. */
    readonly AgentID: string;
    /** The channel. */
    readonly Channel: string;
    /** Always "default": channels have no accounts here. */
    readonly AccountID: "default";
    /** The parts of a message that choose the session. */
    readonly SessionPolicy: { readonly Dimensions: readonly "chat"[] };
    /** Always "default": no rule chooses the agent. */
    readonly MatchedBy: "default";
  };
  /** The session. */
  readonly scope: {
    /** The version of this form. */
    readonly version: 1;
    /** The name of the agent. */
    readonly agent_id: string;
    /** The channel. */
    readonly channel: string;
    /** Always "default". */
    readonly account: "default";
    /** The parts of a message that choose the session. */
    readonly dimensions: readonly "chat"[];
    /** The parts of this session. */
    readonly values: { readonly chat: string };
  };
}

/** The fields of every request. */
export interface About {
  /** The run and the place. */
  readonly meta: Meta;
  /** "document": the channel of the conversation. */
  readonly channel?: string;
  /** "document": the conversation. */
  readonly chat_id?: string;
  /** "head": the same, and the agent and the session that were chosen for it. */
  readonly context?: TurnContext;
}

/** The params of `hook.before_llm`. */
export interface BeforeLlm extends About {
  /** The name of the model. */
  readonly model: string;
  /** The conversation. */
  readonly messages: readonly WireMessage[];
  /** The tools of the model. */
  readonly tools: readonly WireTool[];
  /** The options of the provider. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Whether this is the last request of a run that has to finish. */
  readonly graceful_terminal: boolean;
}

/** The params of `hook.after_llm`. */
export interface AfterLlm extends About {
  /** The name of the model. */
  readonly model: string;
  /** Its response. */
  readonly response: WireResponse;
}

/** The params of `hook.before_tool` and `hook.approve_tool`. */
export interface BeforeTool extends About {
  /** The tool. */
  readonly tool: string;
  /** Its input. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** The params of `hook.after_tool`. */
export interface AfterTool extends BeforeTool {
  /** The result. */
  readonly result: WireResult;
  /** The time of the tool's own work, in nanoseconds. */
  readonly duration: number;
}

/** The form of requests. */
export interface WireForm {
  readonly wire: WireVersion;
  readonly kinds: KindForm;
  /** The name of the channel. */
  readonly channel: string;
}

/** Returns the meta of something at `path` in turn `turn` (from 1; 0 before the first). */
export function metaOf({ run }: Scope, turn: number, path: string, wire: WireVersion): Meta {
  const [TracePath, Source] = wire === "document" ? ["runTurn", path] : [path, "runTurn"];
  return {
    AgentID: run.agent,
    TurnID: run.id,
    ParentTurnID: run.parent?.id ?? "",
    SessionKey: run.session,
    Iteration: Math.max(0, turn - 1),
    TracePath,
    Source,
  };
}

/** Returns the fields of every request. */
export function aboutOf(ctx: Scope, turn: number, path: string, { wire, channel }: WireForm): About {
  const meta = metaOf(ctx, turn, path, wire);
  const { agent, session: chat_id } = ctx.run;
  if (wire === "document") return { meta, channel, chat_id };
  const account = "default";
  const dimensions = ["chat"] as const;
  return {
    meta,
    context: {
      inbound: { channel, chat_id },
      route: {
        AgentID: agent,
        Channel: channel,
        AccountID: account,
        SessionPolicy: { Dimensions: dimensions },
        MatchedBy: "default",
      },
      scope: { version: 1, agent_id: agent, channel, account, dimensions, values: { chat: `direct:${chat_id}` } },
    },
  };
}
