/**
 * A server that speaks the REST API of Upstash, on a real Redis.
 *
 * @module
 */

/** Executes one command on Redis. */
type Call = (command: string, ...values: string[]) => Promise<unknown>;

/** A running server. It ends when it is disposed of. */
export interface UpstashServer extends AsyncDisposable {
  readonly url: string;
  /** The token of its clients. */
  readonly token: string;
  /** Returns the number of requests so far. */
  requests(): number;
}

/** Starts a server. A request is a command, or a pipeline of commands, as JSON. Texts of a reply are in base64 if the client asks for that. */
export function upstashServer(call: Call): UpstashServer {
  const token = crypto.randomUUID();
  let count = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    count++;
    if (request.headers.get("authorization") !== `Bearer ${token}`) {
      return Response.json({ error: "WRONGPASS invalid or missing auth token" }, { status: 401 });
    }
    const body: readonly unknown[] = await request.json();
    const encode = request.headers.get("upstash-encoding") === "base64" ? encoded : (value: unknown) => value;
    const execute = async ([command, ...values]: readonly unknown[]) => {
      try {
        return { result: encode(await call(String(command), ...values.map(String))) };
      } catch (error) {
        return { error: error instanceof Error ? error.message : String(error) };
      }
    };
    if (new URL(request.url).pathname === "/pipeline") {
      return Response.json(await Promise.all(body.map((command) => execute(Array.isArray(command) ? command : []))));
    }
    const reply = await execute(body);
    return Response.json(reply, { status: "error" in reply ? 400 : 200 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    token,
    requests: () => count,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Encodes every text of a reply in base64, except the status "OK". */
function encoded(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(encoded);
  if (typeof reply !== "string" || reply === "OK") return reply;
  return btoa(Array.from(new TextEncoder().encode(reply), (byte) => String.fromCharCode(byte)).join(""));
}
