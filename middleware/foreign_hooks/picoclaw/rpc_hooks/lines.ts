/**
 * Connections over lines: one message of JSON-RPC per line.
 *
 * @module
 */
import { answeredBy, mostBytes, type RpcMessage, type Wire } from "../config.ts";
import { parseJson } from "../../kit/answers.ts";
import { cancellationOf, Semaphore, startTimer } from "../../../../src/core/kit.ts";

/** Splits bytes into lines. A line of more than `maxBytes` bytes is dropped. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number = mostBytes,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pieces: Uint8Array[] = [];
  let size = 0;

  function take(piece: Uint8Array): void {
    size += piece.length;
    if (size <= maxBytes) pieces.push(piece);
    else pieces = [];
  }

  function* line(): Iterable<string> {
    if (size <= maxBytes) {
      yield pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
    }
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

/** The two streams of a connection. */
export interface Duplex {
  /** The output of the hook. */
  readonly readable: ReadableStream<Uint8Array>;
  /** The input of the hook. */
  readonly writable: WritableStream<Uint8Array>;
  /** Settles when the hook has ended, even if another process keeps its output open. Default: at the end of the output. */
  readonly ended?: Promise<unknown>;
}

/** Milliseconds after the end of a hook in which its output is still read. */
const patience = 200;

/** A connection over lines. */
export interface LinesWire extends Wire {
  /** Closes the input of the hook. */
  end(): Promise<void>;
}

/** Connects over lines. Answers may come out of order. A line that is not an answer, and a late answer, are dropped. */
export function linesWire({ readable, writable, ended }: Duplex): LinesWire {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const reader = readable.getReader();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const turn = new Semaphore(1); // while the hook does not read, the other messages wait here and not in the stream
  let closed: Error | undefined;
  let closing: ReturnType<typeof startTimer>;

  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  }

  async function listen(): Promise<void> {
    try {
      for await (const line of linesOf(chunks())) receive(line);
      close(new Error("Cannot ask the hook: its process has ended"));
    } catch (error) {
      close(new Error("Cannot ask the hook: its output cannot be read", { cause: error }));
    }
  }

  /** Resolves the requests that the messages on a line answer. */
  function receive(line: string): void {
    const read = parseJson(line);
    for (const message of Array.isArray(read) ? read : [read]) {
      const id = answeredBy(message);
      if (id === undefined) continue;
      waiting.get(id)?.resolve(message);
      waiting.delete(id);
    }
  }

  function close(error: Error): void {
    closed ??= error;
    clearTimeout(closing);
    for (const { reject } of waiting.values()) reject(closed);
    waiting.clear();
  }

  async function notify(message: RpcMessage, signal: AbortSignal): Promise<void> {
    if (closed) throw closed;
    const line = encoder.encode(`${JSON.stringify(message)}\n`);
    const wait = turn.take(cancellationOf(signal));
    if (wait) await wait;
    const written = writer.write(line);
    written.then(() => turn.give(), () => turn.give()); // the caller, which awaits it, reports a failure
    await written;
  }

  async function end(): Promise<void> {
    close(new Error("Cannot ask the hook: the connection was closed"));
    await writer.close().catch(() => {}); // the hook has ended, or the stream was closed before
  }

  const listening = listen(); // `close` rejects the requests if it fails
  const closeSoon = () => {
    if (!closed) closing = startTimer(() => close(new Error("Cannot ask the hook: its process has ended")), patience);
  };
  ended?.then(closeSoon, closeSoon);

  return {
    notify,
    end,
    async ask(request, signal) {
      const answer = Promise.withResolvers<unknown>();
      const abort = () => answer.reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      waiting.set(request.id, answer);
      try {
        const [message] = await Promise.all([answer.promise, notify(request, signal)]);
        return message;
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
