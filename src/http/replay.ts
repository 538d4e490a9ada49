/**
 * The record of a run as a stream: what is on it, and then what comes.
 *
 * @module
 */
import type { Log, LogPage } from "../session/log.ts";
import { framesOf, outlet, type OutletOptions } from "./stream.ts";

/** How a record is followed. */
export interface FollowOptions {
  /** The number of the event before the first that is given. */
  readonly after: number;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Milliseconds without an event after which `look` is called, each time. */
  readonly silence: number;
  /** Looks what has become of the run. */
  readonly look: () => Promise<void>;
}

/** Gives what is on record, and then what comes, until the run ends or pauses; or until some of it has been forgotten. */
export async function* follow(
  log: Log,
  id: string,
  { after, signal, silence, look }: FollowOptions,
): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const silent = new AbortController();
    const wait = () => setTimeout(() => silent.abort(), silence);
    let timer = wait();
    try {
      for await (const page of log.tail(id, at, AbortSignal.any([signal, silent.signal]))) {
        clearTimeout(timer);
        if (page.first > at + 1) return;
        yield page;
        at += page.lines.length;
        timer = wait();
      }
    } finally {
      clearTimeout(timer);
    }
    if (signal.aborted || !silent.signal.aborted) return;
    await look();
  }
}

/** Pages as a stream of frames, each page a chunk; no page is asked for before there is room. `onError` is told where that fails. */
export function replayed(
  pages: AsyncIterable<LogPage>,
  { onError, ...options }: OutletOptions & { readonly onError: (error: unknown) => void },
): ReadableStream<Uint8Array> {
  const { out, stream } = outlet(options);
  async function send(): Promise<void> {
    try {
      for await (const { first, lines } of pages) {
        out.write(framesOf(first, lines));
        await out.full;
      }
    } catch (error) {
      onError(error);
    } finally {
      out.close();
    }
  }
  send(); // it never rejects
  return stream;
}
