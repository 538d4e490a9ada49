/**
 * A server that sends the given bytes and then closes the connection.
 *
 * @module
 */

/** A server on this machine. */
export interface Socket extends AsyncDisposable {
  readonly url: string;
}

/** The head of a response with a chunked body. */
export const streaming = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/** A chunk of such a body. */
export function chunk(text: string): string {
  return `${new TextEncoder().encode(text).length.toString(16)}\r\n${text}\r\n`;
}

/** Answers every connection with `pieces`, each in its own write. */
export function socket(...pieces: readonly string[]): Socket {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const encoder = new TextEncoder();
  const answered: Promise<void>[] = [];

  async function answer(connection: Deno.Conn): Promise<void> {
    using open = connection;
    await open.read(new Uint8Array(65_536));
    for (const piece of pieces) await open.write(encoder.encode(piece));
  }

  async function listen(): Promise<void> {
    for await (const connection of listener) answered.push(answer(connection));
  }

  const listening = listen();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await listening;
      await Promise.all(answered);
    },
  };
}
