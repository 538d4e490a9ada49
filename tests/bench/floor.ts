/**
 * The floor: the least code that yields the same bytes. No agent, no hooks, no history.
 *
 * @module
 */
import type { Event } from "@jizai/jizai";

/** What a piece of a streamed answer says: about as much as a provider sends at once. */
export const texts: readonly string[] = Array.from({ length: 160 }, (_, index) => ` word${index % 10}`);

const events = texts.map((text): Event => ({ type: "text.delta", turn: 1, part: 0, text }));

/** The events of so many deltas. `between` is awaited before each, where there is one. */
export async function* deltas(count: number, between?: () => Promise<void>): AsyncGenerator<Event> {
  for (let index = 0; index < count; index++) {
    if (between) await between();
    const event = events[index % events.length];
    if (event) yield event;
  }
}

/** `events` as a body of server-sent events, each of them a chunk. */
export function floor(events: AsyncGenerator<Event>): ReadableStream<Uint8Array> {
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

/** Reads a body to its end; gives its length. */
export async function drained(body: ReadableStream<Uint8Array> | null): Promise<number> {
  let length = 0;
  for await (const chunk of body ?? []) length += chunk.byteLength;
  return length;
}
