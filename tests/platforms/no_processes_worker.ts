/**
 * A Worker that uses the middleware that start processes, which Workers do not have.
 *
 * @module
 */
import { agent, type Middleware } from "@jizai/jizai";
import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { stdio } from "@jizai/jizai/middleware/rpc_hooks/stdio";
import { scripted } from "@jizai/jizai/model/scripted";

/** Every Worker of these tests has a Durable Object. */
export class Nothing {}

const uses: Readonly<Record<string, () => Middleware>> = {
  "/command_hooks": () => command_hooks({ hooks: { Stop: [{ hooks: [{ type: "command", command: "true" }] }] } }),
  "/rpc_hooks": () => {
    const processes = { gate: { enabled: true, command: ["gate"], intercept: ["before_tool"] } };
    return rpc_hooks({ processes }, { stdio });
  },
};

/** Returns the messages of an error and its causes. */
function messagesOf(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...messagesOf(error.cause)] : [];
}

export default {
  /** Runs an agent with the middleware that the path names. Returns the messages of the errors. */
  async fetch(request: Request): Promise<Response> {
    const errors: unknown[] = [];
    const use = uses[new URL(request.url).pathname]?.();
    await agent({ model: scripted("Done."), use: use ? [use] : [] })
      .run({ prompt: "Go", onError: (error) => void errors.push(error) }).result
      .catch((error: unknown) => errors.push(error));
    return Response.json(errors.flatMap(messagesOf));
  },
};
