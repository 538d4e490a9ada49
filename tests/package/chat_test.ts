/** Chats in a pseudo terminal, with the command line on the runtimes that npm provides. */
import { agent, serve, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { hasPseudoTerminals, PseudoTerminal } from "../support/pseudo_terminal.ts";
import { output } from "./pack.ts";

const runtimes = { "Node 22": ["node@22.23.3", "node"], Bun: ["bun@1.4.5", "bun"] } as const;
const ignore = !hasPseudoTerminals; // they need `script` of util-linux
const program = "dist/chat_program.mjs";
await output("deno", "bundle", "--quiet", "--output", program, "tests/package/chat_program.ts");

for (const [runtime, [version, name]] of Object.entries(runtimes)) {
  Deno.test({ name: `a person steers, approves with a key and stops a run on ${runtime}`, ignore }, async () => {
    const path = await output("npx", "-y", "--package", version, "which", name);
    const released = Promise.withResolvers<string>();
    const received = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<string>();
    const results = [released.promise, stopped.promise];
    const wait = tool({
      name: "wait",
      description: "Waits",
      input: z.object({}),
      ask: true,
      execute: (_input, { signal }) => {
        signal.addEventListener("abort", () => stopped.reject(signal.reason));
        return results.shift() ?? "";
      },
    });
    const call = { calls: [["wait", {}]] } as const;
    const app = serve(agent({ model: scripted(call, "Faster it is.", call, "Next."), tools: [wait] }));
    await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
      const response = await app.fetch(request);
      if (request.url.endsWith("/messages")) received.resolve();
      return response;
    });
    await using person = new PseudoTerminal(path, program, "chat", `http://127.0.0.1:${server.addr.port}`);
    await person.shows("> ");
    await person.type("Work\r");
    await person.shows("[t]ype a result: ");
    await person.type("a");
    await person.shows("a\n");
    await person.type("Faster\r");
    const late = setTimeout(() => received.reject(new Error("Cannot steer: no message has arrived")), 60_000);
    await received.promise;
    clearTimeout(late);
    released.resolve("Waited.");
    await person.shows("[the agent reads: Faster]\n");
    await person.shows("Faster it is.\n> ");
    await person.type("Work\r");
    await person.shows("[wait {}]\n");
    await person.type("\x03");
    await person.shows("[stopped: ");
    await person.shows("> ");
    await person.type("Bye\r");
    await person.shows("Next.\n> ");
    await person.type("\x04");
    assertEquals((await person.ended())[0], 0);
  });
}
