/**
 * Notices about the connection.
 *
 * @module
 */
import type { ClientOptions } from "../../client/connection.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Returns a `fetch` option that writes when the connection is lost, and when it is there again. */
export function noticing({ fetch: request = fetch }: ClientOptions, terminal: Terminal): Pick<ClientOptions, "fetch"> {
  let isLost = false;
  function lose(): void {
    if (!isLost) terminal.write("\n[no connection: trying again]\n");
    isLost = true;
  }
  return {
    async fetch(url, init) {
      if (new Headers(init.headers).has("last-event-id")) lose(); // the events before arrived over another connection
      try {
        const response = await request(url, init);
        if (isLost && response.status < 500) {
          isLost = false;
          terminal.write("[connected]\n");
        }
        return response;
      } catch (error) {
        if (!init.signal?.aborted) lose();
        throw error;
      }
    },
  };
}
