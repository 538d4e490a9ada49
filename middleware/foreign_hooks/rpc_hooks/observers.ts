/**
 * The hooks that observe events. The run does not wait for them.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { callWithin } from "../kit/deadline.ts";
import type { Mounted } from "./mounted.ts";
import { metaOf, type WireForm } from "./wire/input.ts";
import { type Kind, writeKind } from "./wire/kinds.ts";

/** The most events that wait. Further events are dropped. */
const most = 64;

/** The observers of one middleware. */
export interface Observers {
  /** Whether a hook observes one of the kinds. */
  has(...kinds: readonly Kind[]): boolean;
  /** Sends an event, later. `payload` is called if a hook observes the kind. */
  notify(kind: Kind, ctx: Scope, turn: number, payload: () => Payload): void;
}

/** The data of an event. */
export type Payload = Readonly<Record<string, unknown>>;

/** Options of sending events. */
export interface ObserverOptions extends WireForm {
  /** Milliseconds for one hook. */
  readonly timeout: number;
}

/** Creates the observers. Events are sent one after another, to one hook after another. */
export function observersOf(hooks: readonly Mounted[], { timeout, ...form }: ObserverOptions): Observers {
  const observed = new Set(hooks.flatMap(({ kinds }) => [...kinds]));
  const waiting: (() => Promise<void>)[] = [];
  const never = new AbortController().signal;
  const method = form.wire === "document" ? "hook.event" : "hook.runtime_event";
  let isSending = false;

  async function send(kind: Kind, event: Payload, ctx: Scope): Promise<void> {
    for (const hook of hooks.filter(({ kinds }) => kinds.has(kind))) {
      try {
        await callWithin(timeout, never, (signal) => hook.notify(method, event, signal));
      } catch (error) {
        ctx.run.report(
          new Error(`Cannot send the event ${kind} to the hook "${hook.name}"`, { cause: error }),
        );
      }
    }
  }

  /** Never rejects: `send` reports failures. */
  async function sendAll(): Promise<void> {
    isSending = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
    isSending = false;
  }

  return {
    has: (...kinds) => kinds.some((kind) => observed.has(kind)),
    notify(kind, ctx, turn, payload) {
      if (!observed.has(kind) || waiting.length >= most) return;
      const event = eventOf(kind, ctx, turn, payload(), form);
      waiting.push(() => send(kind, event, ctx));
      if (!isSending) void sendAll();
    },
  };
}

function eventOf(kind: Kind, ctx: Scope, turn: number, payload: Payload, { wire, kinds, channel }: WireForm): Payload {
  const path = kind.replace("_exec", "").replace(/^(follow_up|[a-z]+)_/, "$1.");
  const meta = metaOf(ctx, turn, path.startsWith("turn.") ? path : `turn.${path}`, wire);
  const time = new Date().toISOString();
  if (wire === "document") return { Kind: writeKind(kind, kinds), Time: time, Meta: meta, Payload: payload };
  return {
    id: crypto.randomUUID(),
    kind: writeKind(kind, kinds),
    time,
    source: { component: "agent", name: meta.AgentID },
    scope: {
      agent_id: meta.AgentID,
      session_key: meta.SessionKey,
      turn_id: meta.TurnID,
      channel,
      chat_id: meta.SessionKey,
    },
    correlation: { trace_id: meta.TracePath, parent_turn_id: meta.ParentTurnID },
    severity: severityOf(kind, payload),
    payload,
    attrs: { agent_source: meta.Source, iteration: meta.Iteration },
  };
}

function severityOf(kind: Kind, { Status, IsError }: Payload): "info" | "warn" | "error" {
  if (kind === "error" || Status === "error") return "error";
  const warns = ["llm_retry", "context_compress", "tool_exec_skipped"].includes(kind);
  return warns || Status === "aborted" || IsError === true ? "warn" : "info";
}
