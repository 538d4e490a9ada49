/**
 * A cable to a server on this machine, which breaks where it is told to.
 *
 * @module
 */

/** A cable that lies. */
export interface Cable extends AsyncDisposable {
  /** Where it begins. */
  readonly port: number;
}

/** Leads to `port`. Of each connection, `reach` says after how many bytes of answers it breaks. */
export function cable(port: number, reach: (connection: number) => number): Cable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const ends = new Set<Deno.Conn>();
  const ways: Promise<void>[] = [];

  async function connect(): Promise<void> {
    let connection = 0;
    for await (const near of listener) {
      const far = await Deno.connect({ hostname: "127.0.0.1", port });
      ends.add(near).add(far);
      ways.push(carry(near, far, Infinity), carry(far, near, reach(connection++)));
    }
  }

  /** Carries bytes one way; both ways end with it. */
  async function carry(from: Deno.Conn, to: Deno.Conn, most: number): Promise<void> {
    const buffer = new Uint8Array(16_384);
    let left = most;
    while (left > 0) {
      const read = await from.read(buffer).catch(() => null); // where the other way has ended
      if (read === null) break;
      const bytes = buffer.subarray(0, Math.min(read, left));
      left -= read;
      for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent)).catch(() => Infinity);
    }
    for (const end of [from, to]) if (ends.delete(end)) end.close();
  }

  const connecting = connect();
  return {
    port: listener.addr.port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await connecting;
      for (const end of ends) end.close();
      ends.clear();
      await Promise.all(ways);
    },
  };
}
