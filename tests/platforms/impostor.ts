/**
 * A Worker in front of the shop that forwards forged claims of its clients.
 *
 * @module
 */
import type { Stub } from "@jizai/jizai/forward";

export { Conversation } from "../../examples/cloudflare/conversation.ts";

interface Env {
  readonly CONVERSATION: { getByName(name: string): Stub };
}

export default {
  fetch: (request: Request, { CONVERSATION }: Env) => CONVERSATION.getByName("tea").fetch(request),
};
