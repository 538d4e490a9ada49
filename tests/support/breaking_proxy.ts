/**
 * A TCP proxy that breaks connections after a given number of bytes.
 *
 * @module
 */

/** A running proxy. */
export interface BreakingProxy extends AsyncDisposable {
  /** The port to connect to. */
  readonly port: number;
}

/** Forwards connections to `port` on this machine. `reach` returns after how many bytes of answers a connection breaks, by its number from 0. */
export function breakingProxy(port: number, reach: (connection: number) => number): BreakingProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const ends = new Set<Deno.Conn>();
  const forwarded: Promise<void>[] = [];

  async function listen(): Promise<void> {
    let connection = 0;
    for await (const near of listener) {
      const far = await Deno.connect({ hostname: "127.0.0.1", port });
      ends.add(near).add(far);
      forwarded.push(forward(near, far, Infinity), forward(far, near, reach(connection++)));
    }
  }

  /** Forwards bytes in one direction. When it ends, both connections are closed. */
  async function forward(from: Deno.Conn, to: Deno.Conn, most: number): Promise<void> {
    const buffer = new Uint8Array(16_384);
    let left = most;
    while (left > 0) {
      const read = await from.read(buffer).catch(() => null); // the other direction has ended
      if (read === null) break;
      const bytes = buffer.subarray(0, Math.min(read, left));
      left -= read;
      for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent)).catch(() => Infinity);
    }
    for (const end of [from, to]) if (ends.delete(end)) end.close();
  }

  const listening = listen();
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await listening;
      for (const end of ends) end.close();
      ends.clear();
      await Promise.all(forwarded);
    },
  };
}
