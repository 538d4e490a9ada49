/**
 * The floor: the least code that streams the same bytes as a served agent. It has no agent, no hooks and no history.
 *
 * @module
 */
import type { Event } from "@jizai/jizai";

/** The texts of the deltas, each about as long as a provider's. */
export const texts: readonly string[] = Array.from({ length: 160 }, (_, index) => ` word${index % 10}`);

const events = texts.map((text): Event => ({ type: "text.delta", turn: 1, part: 0, text }));

/** The deltas of one of many streams. */
export const count = 200;

/** The body of a request. */
export const body = JSON.stringify({ prompt: "Hi" });

/** Yields `count` deltas. Awaits `between` before each of them. */
export async function* deltas(count: number, between?: () => Promise<void>): AsyncGenerator<Event> {
  for (let index = 0; index < count; index++) {
    if (between) await between();
    const event = events[index % events.length];
    if (event) yield event;
  }
}

/** Yields recorded events, and runs their calls: each begins at its `call.ready`, and its `tool.finished` waits for it. */
export async function* replay(
  events: readonly Event[],
  execute: () => unknown = () => Promise.resolve("ok"),
): AsyncGenerator<Event> {
  const running = new Map<string, unknown>();
  for (const event of events) {
    if (event.type === "call.ready") running.set(event.call.id, execute());
    if (event.type === "tool.finished") await running.get(event.call);
    yield event;
  }
}

/** Streams events as server-sent events, one chunk each. */
export function floor(events: AsyncGenerator<Event>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let id = 0;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await events.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`id: ${++id}\ndata: ${JSON.stringify(value)}\n\n`));
    },
  });
}

/** Reads a body to its end and returns its length in bytes. */
export async function drain(body: ReadableStream<Uint8Array> | null): Promise<number> {
  let length = 0;
  for await (const chunk of body ?? []) length += chunk.byteLength;
  return length;
}

/** Resolves in the next macrotask. */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
