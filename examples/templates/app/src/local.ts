/**
 * Requests to a server that only this machine reaches.
 *
 * @module
 */
const names = ["localhost", "127.0.0.1", "[::1]"];

/** Refuses other hosts: a page whose name resolves to 127.0.0.1 could use the server, which has no login. */
export function refuseOtherHosts(request: Request): Response | undefined {
  if (names.includes(new URL(request.url).hostname)) return undefined;
  return new Response("Cannot serve this host: expected localhost", { status: 403 });
}
