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

/** Serves `fetch`, and prints `welcome` for its URL. If the port is in use, prints how to choose another one, and exits. */
export function listen(
  { port, hostname }: Address,
  fetch: (request: Request) => Response | Promise<Response>,
  welcome: (url: string) => string,
): Deno.HttpServer {
  const name = hostname === "0.0.0.0" ? "127.0.0.1" : hostname;
  try {
    return Deno.serve(
      { port, hostname, onListen: ({ port }) => console.log(welcome(`http://${name}:${port}`)) },
      fetch,
    );
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    console.error(`Cannot serve on port ${port}: another program uses it; set PORT to another port`);
    Deno.exit(1);
  }
}
