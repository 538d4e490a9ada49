/**
 * Starts the servers of the examples.
 *
 * @module
 */

/** The port and the host name of a server. */
export interface Address {
  readonly port: number;
  readonly hostname: string;
}

/** Answers a request. */
type Fetch = (request: Request) => Response | Promise<Response>;

/** The names by which the programs of this machine reach it, with their ports. */
const localHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/**
 * Returns `fetch` for a server on `hostname`. If only this machine can connect, every other `Host` is answered with 403: a page that lets its own name resolve
 * to 127.0.0.1 could otherwise use a server without a login through the browser of its visitor.
 */
export function localOnly(hostname: string, fetch: Fetch): Fetch {
  if (!/^(localhost|127\.[\d.]+|::1)$/.test(hostname)) return fetch;
  return (request) =>
    localHost.test(new URL(request.url).host)
      ? fetch(request)
      : new Response("Cannot serve this host: expected localhost\n", { status: 403 });
}

/** Serves `fetch` as `localOnly()` does, and prints `welcome` for its URL. If the port is in use, prints how to choose another one, and exits. */
export function listen(
  { port, hostname }: Address,
  fetch: Fetch,
  welcome: (url: string) => string,
): Deno.HttpServer {
  const name = hostname === "0.0.0.0" ? "127.0.0.1" : hostname;
  try {
    return Deno.serve(
      { port, hostname, onListen: ({ port }) => console.log(welcome(`http://${name}:${port}`)) },
      localOnly(hostname, fetch),
    );
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    console.error(`Cannot serve on port ${port}: another program uses it; set PORT to another port`);
    Deno.exit(1);
  }
}
