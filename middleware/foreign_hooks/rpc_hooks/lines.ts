/**
 * Messages as lines, and the answers among them.
 *
 * @module
 */
import { cancellationOf, Semaphore, startTimer } from "../../../src/core/kit.ts";
import { answeredBy, mostBytes, type RpcMessage, type Wire } from "./wire.ts";

/** The lines among bytes. One of more than `most` bytes is left out. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, most: number = mostBytes): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: Uint8Array[] = [];
  let size = 0;

  function take(piece: Uint8Array): void {
    size += piece.length;
    if (size <= most) pieces.push(piece);
    else pieces = [];
  }

  function* line(): Iterable<string> {
    if (size <= most) yield pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
    pieces = [];
    size = 0;
  }

  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      take(chunk.subarray(start, end));
      yield* line();
      start = end + 1;
    }
    take(chunk.subarray(start));
  }
  if (size > 0) yield* line();
}

/** Where lines go to and come from. */
export interface Duplex {
  /** What the hook says. */
  readonly readable: ReadableStream<Uint8Array>;
  /** What the hook is told. */
  readonly writable: WritableStream<Uint8Array>;
  /** Settles when the hook has ended, whoever else it has left these to. Default: it has when there is no more to read. */
  readonly ended?: Promise<unknown>;
}

/** Milliseconds after its end in which what a hook has said is heard. */
const patience = 200;

/** A way to a hook over lines. */
export interface LinesWire extends Wire {
  /** Tells it that there is nothing more to hear. */
  end(): Promise<void>;
}

/** A way to a hook over lines. Answers come in any order; what is none, or comes too late, is left out. */
export function linesWire({ readable, writable, ended }: Duplex): LinesWire {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const reader = readable.getReader();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const turn = new Semaphore(1); // a message that nobody reads keeps the others waiting, and not in memory
  let gone: Error | undefined;
  let leaving: ReturnType<typeof setTimeout> | undefined;

  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  }

  async function listen(): Promise<void> {
    try {
      for await (const line of linesOf(chunks())) hear(line);
      leave(new Error("It has ended"));
    } catch (error) {
      leave(new Error("It cannot be heard any more", { cause: error }));
    }
  }

  /** Hears what a line says, or each of several messages on it. */
  function hear(line: string): void {
    const said = parsed(line);
    for (const message of Array.isArray(said) ? said : [said]) {
      const id = answeredBy(message);
      if (id === undefined) continue;
      waiting.get(id)?.resolve(message);
      waiting.delete(id);
    }
  }

  function leave(error: Error): void {
    gone ??= error;
    clearTimeout(leaving);
    for (const { reject } of waiting.values()) reject(gone);
    waiting.clear();
  }

  async function tell(message: RpcMessage, signal: AbortSignal): Promise<void> {
    if (gone) throw gone;
    const line = encoder.encode(`${JSON.stringify(message)}\n`);
    const wait = turn.take(cancellationOf(signal));
    if (wait) await wait;
    const written = writer.write(line);
    written.then(() => turn.give(), () => turn.give()); // whoever waits for it is told
    await written;
  }

  async function end(): Promise<void> {
    leave(new Error("It was left"));
    await writer.close().catch(() => {}); // it has ended, or was told before
  }

  const listening = listen(); // whoever waits for an answer is told how it ends
  const leaveSoon = () => {
    if (!gone) leaving = startTimer(() => leave(new Error("It has ended")), patience);
  };
  ended?.then(leaveSoon, leaveSoon); // who starts it is told how

  return {
    tell,
    end,
    async ask(request, signal) {
      const answer = Promise.withResolvers<unknown>();
      const abort = () => answer.reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      waiting.set(request.id, answer);
      try {
        const [said] = await Promise.all([answer.promise, tell(request, signal)]);
        return said;
      } finally {
        waiting.delete(request.id);
        signal.removeEventListener("abort", abort);
      }
    },
    async [Symbol.asyncDispose]() {
      await end();
      await reader.cancel();
      await listening;
    },
  };
}

/** The JSON of a line; nothing where it is none. */
export function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
