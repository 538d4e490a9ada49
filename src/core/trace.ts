/**
 * Traces: a `hook.acted` event for each hook, and each request to a model. An import of its own: `agent({ trace })`.
 *
 * @module
 */
import type { WrapHooks } from "./definition.ts";
import type { Hook } from "./onion.ts";
import type { ModelContext } from "./points.ts";
import type { Scope } from "./scope.ts";
import type { HookAct, Point } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
export type { WrapHooks } from "./definition.ts";

/** Wraps a hook so that it emits `hook.acted` when it returns or throws. */
function traced<C extends Scope, D extends object, R>(
  point: Point,
  middleware: string,
  hook: Hook<C, D, R>,
): Hook<C, D, R> {
  return async (ctx, next) => {
    const start = performance.now();
    const changed = new Set<string>();
    let times = 0;
    let below: R | undefined;
    const keep = (result: R) => {
      below = result;
    };
    const spy = (change?: D): Promise<R> => {
      times++;
      for (const [key, value] of Object.entries(change ?? {})) if (value !== undefined) changed.add(key);
      const result = next(change);
      result.then(keep, () => {}); // a failure reaches the hook that awaits `result`
      return result;
    };
    let threw = true;
    let returned: R | undefined;
    try {
      returned = await hook(ctx, spy);
      threw = false;
      return returned;
    } finally {
      const did: HookAct[] = [];
      if (threw) did.push("threw");
      else if (times === 0) did.push("answered");
      else if (returned !== below) did.push("replaced");
      if (times > 1) did.push("retried");
      if (changed.size > 0) did.push("changed");
      const decided = decisionOf(returned);
      ctx.emit({
        type: "hook.acted",
        middleware,
        point,
        ...placeOf(point, ctx),
        did: did.length > 0 ? did : ["passed"],
        ...(changed.size > 0 && { changed: [...changed] }),
        ...(decided !== undefined && { decided }),
        ms: Math.round((performance.now() - start) * 1_000) / 1_000,
      });
    }
  };
}

/** The most characters of the messages in an event. A conversation is sent again with each request, and the log keeps each event. */
const mostCharacters = 20_000;

/** Emits `model.requested`. */
function requested({ emit, request, turn, attempt }: ModelContext): void {
  const { instructions, tools } = request;
  const messages = request.messages.map(withoutNotes);
  let omitted = messages.length;
  for (let left = mostCharacters; omitted > 0; omitted--) {
    left -= JSON.stringify(messages[omitted - 1]).length;
    if (left < 0) break;
  }
  emit({
    type: "model.requested",
    turn,
    attempt,
    instructions,
    messages: messages.slice(omitted),
    omitted,
    tools: tools.map(({ name, description, schema }) => ({ name, description, schema })),
  });
}

/** Returns a message without what its provider has signed or encrypted, which no hook can mask. */
function withoutNotes(message: Message): Message {
  if (message.role !== "assistant") return message;
  return { ...message, parts: message.parts.map((part) => "meta" in part ? { ...part, meta: null } : part) };
}

/**
 * Makes each hook emit `hook.acted` when it returns or throws, and each request to a model `model.requested`. The events pass the hooks that mask them, such as
 * `redact()`, and the clients of the run receive them. Pass it to `agent({ trace })`.
 */
export const trace: WrapHooks = /* @__PURE__ */ Object.assign(traced, { requested });

/** Returns the turn and the call of a context, if it has them. */
function placeOf(point: Point, ctx: object): { readonly turn?: number; readonly call?: string } {
  const index = point === "turn" && "index" in ctx ? ctx.index : "turn" in ctx ? ctx.turn : undefined;
  const turn = typeof index === "number" ? { turn: index } : {};
  const call = "call" in ctx ? ctx.call : undefined;
  const id = typeof call === "object" && call !== null && "id" in call ? call.id : call;
  return typeof id === "string" ? { ...turn, call: id } : turn;
}

/** Returns the decision of an answer: its status or its type. */
function decisionOf(returned: unknown): string | undefined {
  if (typeof returned !== "object" || returned === null) return undefined;
  if ("status" in returned && typeof returned.status === "string") return returned.status;
  return "type" in returned && typeof returned.type === "string" ? returned.type : undefined;
}
