/**
 * Hooks that are told of what happens, and that nobody waits for.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { metaOf, type Place } from "./about.ts";
import { type Kind, numberOf, runtimeName } from "./kinds.ts";
import type { Mounted } from "./mounted.ts";
import { inTime } from "./wire.ts";

/** The most events that wait to be told; what comes then is told to nobody. */
const most = 64;

/** Who is told of what happens. */
export interface Observers {
  /** Whether anybody wants to hear of events of one of these kinds. */
  hear(...kinds: readonly Kind[]): boolean;
  /** Tells of an event, later; `payload` is asked for where anybody wants to hear of it. */
  tell(kind: Kind, ctx: Scope, iteration: number, payload: () => Payload): void;
}

/** What is said of an event. */
export type Payload = Readonly<Record<string, unknown>>;

/** How they are told. */
export interface ObserversOptions extends Place {
  /** The most milliseconds that one of them may take. */
  readonly timeout: number;
}

/** Makes who is told of what happens: one event after another, each hook after those before it. */
export function observersOf(hooks: readonly Mounted[], { timeout, ...place }: ObserversOptions): Observers {
  const heard = new Set(hooks.flatMap(({ kinds }) => [...kinds]));
  const waiting: (() => Promise<void>)[] = [];
  const never = new AbortController().signal;
  const method = place.wire === "brief" ? "hook.event" : "hook.runtime_event";
  let telling = false;

  async function tellAll(kind: Kind, event: Payload, ctx: Scope): Promise<void> {
    for (const hook of hooks) {
      if (!hook.kinds.has(kind)) continue;
      try {
        await inTime(timeout, never, (signal) => hook.tell(method, event, signal));
      } catch (error) {
        ctx.run.report(new Error(`The hook "${hook.name}" could not be told of ${kind}`, { cause: error }));
      }
    }
  }

  /** Never rejects: of those that fail the operator is told. */
  async function work(): Promise<void> {
    telling = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
    telling = false;
  }

  return {
    hear: (...kinds) => kinds.some((kind) => heard.has(kind)),
    tell(kind, ctx, iteration, payload) {
      if (!heard.has(kind) || waiting.length >= most) return;
      const event = eventOf(kind, ctx, iteration, payload(), place);
      waiting.push(() => tellAll(kind, event, ctx));
      if (!telling) void work();
    },
  };
}

/** An event, as hooks are told of it. */
function eventOf(kind: Kind, ctx: Scope, iteration: number, payload: Payload, { wire, channel }: Place): Payload {
  const path = kind.replace("_exec", "").replace(/^(follow_up|[a-z]+)_/, "$1.");
  const meta = metaOf(ctx, iteration, path.startsWith("turn.") ? path : `turn.${path}`, wire);
  const time = new Date().toISOString();
  if (wire === "brief") return { Kind: numberOf(kind), Time: time, Meta: meta, Payload: payload };
  return {
    id: crypto.randomUUID(),
    kind: runtimeName(kind),
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
    attrs: { agent_source: meta.Source, iteration },
  };
}

function severityOf(kind: Kind, { Status, IsError }: Payload): "info" | "warn" | "error" {
  if (kind === "error" || Status === "error") return "error";
  const warns = ["llm_retry", "context_compress", "tool_exec_skipped"].includes(kind);
  return warns || Status === "aborted" || IsError === true ? "warn" : "info";
}
