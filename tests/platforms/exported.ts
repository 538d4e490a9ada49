/**
 * Middleware as a hook of another system.
 *
 * @module
 */
import { runCommand, serveRpc } from "@jizai/jizai/middleware/export_hooks/stdio";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { truncate } from "@jizai/jizai/middleware/truncate";

const use = [
  truncate({ limit: 60, head: 10, tail: 5 }),
  permissions({ deny: [{ tool: "bash", when: (input) => JSON.stringify(input).includes("rm"), why: "Dangerous" }] }),
];

const [how] = Deno.args;
if (how === "rpc") await serveRpc(use);
else if (how === "command") await runCommand(use);
else await runCommand([{ name: "broken", tool: () => Promise.reject(new Error("broken")) }]);
