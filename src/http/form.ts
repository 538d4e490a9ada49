/**
 * Forms: how a response tells of a run, natively or in a client's dialect.
 *
 * @module
 */
import type { Context } from "hono";
import type { NumberedEvent } from "../core/events.ts";
import type { Event } from "../protocol/event.ts";
import type { Lines } from "../session/log.ts";
import { lineOf } from "../stream/line.ts";
import { frame, sse } from "../stream/sse.ts";
import type { JsonResponse, Reply } from "../wire/wire.ts";
import { headers, type Outlet, type OutletOptions } from "./stream.ts";

/** Makes what takes events, and the response that tells of them. */
export type Form = (c: Context, options: OutletOptions) => {
  readonly out: Outlet;
  readonly respond: () => Response | Promise<Response>;
};

/** Events as they are, with their numbers. */
export const native: Form = (c, options) => {
  const { sink: out, stream } = sse({ ...options, frame: nativeFrames });
  return { out, respond: () => c.body(stream, 200, headers) };
};

function nativeFrames(item: NumberedEvent | Lines): string {
  if ("event" in item) return frame(item.id, lineOf(item.event));
  return item.lines.map((line, index) => frame(item.first + index, line)).join("");
}

/** The form of a wire's reply. */
export function formOf(reply: Reply): Form {
  if (reply.type === "json") return whole(reply);
  return (c, options) => {
    const tell = reply.encoder();
    const { sink: out, stream } = sse({
      ...options,
      frame: (item: NumberedEvent | Lines) => "event" in item ? tell(item.event, item.id) : each(item, tell).join(""),
    });
    return { out, respond: () => c.body(stream, 200, { ...headers, ...reply.headers }) };
  };
}

/** A response that comes once the run is over. Whoever has gone by then is known by their request alone. */
function whole({ collector, headers }: Extract<Reply, { readonly type: "json" }>): Form {
  return (c, { onCancel }) => {
    const tell = collector();
    const { signal } = c.req.raw;
    const { promise: over, resolve: close } = Promise.withResolvers<void>();
    let told: JsonResponse | undefined;
    const out: Outlet = {
      write(item) {
        for (const answer of each(item, tell)) told ??= answer;
      },
      cork() {},
      uncork() {},
      full: undefined,
      close,
    };
    async function respond(): Promise<Response> {
      signal.addEventListener("abort", onCancel);
      if (signal.aborted) onCancel();
      await over;
      signal.removeEventListener("abort", onCancel);
      if (!told) throw new Error("Cannot answer: the run has not come to its end");
      return c.json(told.body, told.status, headers);
    }
    return { out, respond };
  };
}

/** What `tell` makes of each event of an item. */
function each<T>(item: NumberedEvent | Lines, tell: (event: Event, id: number) => T): T[] {
  if ("event" in item) return [tell(item.event, item.id)];
  return item.lines.map((line, index) => tell(JSON.parse(line), item.first + index));
}
