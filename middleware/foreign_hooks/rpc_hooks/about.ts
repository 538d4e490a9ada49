/**
 * What hooks are told.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import type { WireMessage, WireTool } from "./message.ts";
import type { WireResponse } from "./response.ts";
import type { WireResult } from "./result.ts";

/** How messages are spelled: as the document and its version have them, or as later versions do. */
export type WireVersion = "brief" | "head";

/** What something belongs to. */
export interface Meta {
  /** The agent's name. */
  readonly AgentID: string;
  /** The run: from a prompt to its final answer. */
  readonly TurnID: string;
  /** The run of the agent above, or an empty text. */
  readonly ParentTurnID: string;
  /** The session. */
  readonly SessionKey: string;
  /** The response of the model that it belongs to, from 1; 0 outside of them. */
  readonly Iteration: number;
  /** Where it happens. */
  readonly TracePath: string;
  /** Who says so. */
  readonly Source: string;
}

/** What every hook is told. */
export interface About {
  /** What it belongs to. */
  readonly meta: Meta;
  /** "brief": where the conversation is. */
  readonly channel?: string;
  /** "brief": the conversation. */
  readonly chat_id?: string;
  /** "head": the same. */
  readonly context?: { readonly inbound: { readonly channel: string; readonly chat_id: string } };
}

/** Before the model is asked. */
export interface BeforeLlm extends About {
  /** The model's name. */
  readonly model: string;
  /** The conversation. */
  readonly messages: readonly WireMessage[];
  /** What the model may use. */
  readonly tools: readonly WireTool[];
  /** What the provider is told. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Whether this is the last request of a run that was asked to end. */
  readonly graceful_terminal: boolean;
}

/** After the model has answered. */
export interface AfterLlm extends About {
  /** The model's name. */
  readonly model: string;
  /** Its answer. */
  readonly response: WireResponse;
}

/** Before a call is made, and whether it may be. */
export interface BeforeTool extends About {
  /** The tool. */
  readonly tool: string;
  /** Its input. */
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** After a call was made. */
export interface AfterTool extends BeforeTool {
  /** What it came to. */
  readonly result: WireResult;
  /** How long the work took, in nanoseconds. */
  readonly duration: number;
}

/** Where a conversation is, and how hooks are told of it. */
export interface Place {
  /** How messages are spelled. */
  readonly wire: WireVersion;
  /** What hooks are told that the conversation is held on. */
  readonly channel: string;
}

/** What something belongs to that happens at `path`, in the response of the model number `iteration`. */
export function metaOf({ run }: Scope, iteration: number, path: string, wire: WireVersion): Meta {
  const [TracePath, Source] = wire === "brief" ? ["runTurn", path] : [path, "runTurn"];
  return {
    AgentID: run.agent,
    TurnID: run.id,
    ParentTurnID: run.parent?.id ?? "",
    SessionKey: run.session,
    Iteration: iteration,
    TracePath,
    Source,
  };
}

/** What every hook is told. */
export function aboutOf(ctx: Scope, iteration: number, path: string, { wire, channel }: Place): About {
  const meta = metaOf(ctx, iteration, path, wire);
  const chat_id = ctx.run.session;
  return wire === "brief" ? { meta, channel, chat_id } : { meta, context: { inbound: { channel, chat_id } } };
}
