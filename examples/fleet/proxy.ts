/**
 * A proxy that sends each request to the next process.
 *
 * @module
 */

/** A process that serves. */
export interface Target {
  readonly name: string;
  readonly url: string;
}

/**
 * Returns a handler that forwards requests to the targets in turn. A process that cannot be reached is left out. A stream of a process that dies breaks: the client
 * connects again, and reaches another process. The header `x-process` of a response names the process.
 */
export function roundRobin(targets: () => readonly Target[]): (request: Request) => Promise<Response> {
  let next = 0;
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers, signal } = request;
    const body = method === "GET" ? null : await request.arrayBuffer(); // so that it can be sent again
    const all = targets();
    for (let tries = 0; tries < all.length; tries++) {
      const target = all[next++ % all.length];
      if (!target) break;
      try {
        const reply = await fetch(`${target.url}${pathname}${search}`, { method, headers, body, signal });
        const named = new Headers(reply.headers);
        named.set("x-process", target.name);
        return new Response(reply.body, { status: reply.status, headers: named });
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // fetch() throws a TypeError if there is no connection
      }
    }
    return Response.json({ error: { code: "unavailable", message: "No process serves" } }, { status: 503 });
  };
}
