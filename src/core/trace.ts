/**
 * Traces: a `hook.acted` event for each hook. An import of its own: `agent({ trace })`.
 *
 * @module
 */
import type { Hook } from "./onion.ts";
import type { Scope } from "./scope.ts";
import type { HookAct, Point } from "../protocol/event.ts";

/** Wraps a hook so that it emits `hook.acted` when it returns or throws. Pass it to `agent({ trace })`. */
export function trace<C extends Scope, D extends object, R>(
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
