/** The floor, as a server. */
import { count, deltas, floor, macrotask } from "../../kit/floor.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    await request.json();
    return new Response(floor(deltas(count, macrotask)), { headers: { "content-type": "text/event-stream" } });
  },
};
