import { agent, type Model, serve, type ServedApp, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as z from "zod";
import { hasPseudoTerminals, PseudoTerminal } from "../support/pseudo_terminal.ts";

const ignore = !hasPseudoTerminals; // they need `script` of util-linux
const command = [Deno.execPath(), "run", "--allow-all", "src/cli/mod.ts", "chat"];

/** Serves an agent on this machine while a person chats with it. */
async function chatting(app: ServedApp, use: (person: PseudoTerminal) => Promise<void>): Promise<void> {
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, app.fetch);
  await using person = new PseudoTerminal(...command, `http://127.0.0.1:${server.addr.port}`);
  await use(person);
}

/** A tool that runs until it is released. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<string>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    execute: (_input, { signal }) => {
      const stopped = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      return Promise.race([promise, stopped]);
    },
  });
  return { wait, release: () => resolve("Waited.") };
}

/** A model that calls `wait` if the prompt asks for work, and then repeats the last message of the user. */
const echo: Model = {
  id: "echo",
  async *stream({ messages }) {
    const texts = messages.flatMap((message) =>
      message.role === "user" ? message.parts.map((part) => part.type === "text" ? part.text : "") : []
    );
    if (texts.at(-1) === "Work" && messages.at(-1)?.role === "user") {
      yield [{ type: "text", text: "I work" }, { type: "call.start", id: "c1", name: "wait" }];
      yield [{ type: "call.end", id: "c1" }, { type: "finish", reason: "calls" }];
    } else yield [{ type: "text", text: `You said: ${texts.at(-1)}` }, { type: "finish", reason: "stop" }];
  },
};

const drop = tool({
  name: "drop",
  description: "Drops a table",
  input: z.object({ table: z.string() }),
  ask: true,
  execute: ({ table }) => `Dropped ${table}`,
});

Deno.test({ name: "a line that is typed during a run is sent to the run", ignore }, async () => {
  const { wait, release } = gate();
  const received = Promise.withResolvers<void>();
  const app = serve(agent({ model: echo, tools: [wait] }));
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const response = await app.fetch(request);
    if (request.url.endsWith("/messages")) received.resolve();
    return response;
  });
  await using person = new PseudoTerminal(...command, `http://127.0.0.1:${server.addr.port}`);
  await person.shows("> ");
  await person.type("Work\r");
  await person.shows("I work\n[wait {}]\n");
  await person.type("Faster\r");
  await received.promise;
  release();
  await person.shows("[the agent reads: Faster]\n");
  await person.shows("You said: Faster\n> ");
  await person.type("\x04");
  assertEquals((await person.ended())[0], 0);
});

Deno.test({ name: "output waits while a line is typed, and is shown when the line is deleted", ignore }, async () => {
  const { wait, release } = gate();
  await chatting(serve(agent({ model: echo, tools: [wait] })), async (person) => {
    await person.shows("> ");
    await person.type("Work\r");
    await person.shows("[wait {}]\n");
    await person.type("N");
    await person.shows("> N");
    release();
    await person.shows("You said: Work\n> N"); // the run is over: the line becomes the next prompt
    await person.type("ext\r");
    await person.shows("You said: Next\n> ");
  });
});

Deno.test({ name: "one key answers a question about a call", ignore }, async () => {
  const call = { calls: [["drop", { table: "users" }]] } as const;
  const asks = "no with a [r]eason, [t]ype a result: ";
  const model = scripted(call, "One.", call, "Two.", call, "Three.", call, "Four.", call, "Five.", call, "Six.");
  await chatting(serve(agent({ model, tools: [drop] })), async (person) => {
    const prompt = async (end = asks) => {
      await person.shows("> ");
      await person.type("Drop\r");
      await person.shows('[drop {"table":"users"}]\n');
      return await person.shows(end);
    };
    await prompt();
    await person.type("xn"); // only the second key has a meaning
    await person.shows("n\n[drop: denied]\nOne.\n");
    await prompt();
    await person.type("r");
    await person.shows("reason: ");
    await person.type("Not now\r");
    await person.shows("[drop: denied]\nTwo.\n");
    await prompt();
    await person.type("e");
    await person.shows('input: {"table":"users"}');
    await person.type("\x15oops\r"); // Ctrl-U deletes the line
    await person.shows("[not JSON: ");
    await person.shows("input: oops");
    await person.type('\x15{"table":"logs"}\r');
    await person.shows("Three.\n");
    await prompt();
    await person.type("t");
    await person.shows("result: ");
    await person.type("Done by hand\r");
    await person.shows("Four.\n");
    await prompt();
    await person.type("a");
    await person.shows("Five.\n");
    assertEquals(await prompt("Six.\n"), "");
  });
});

Deno.test({ name: "Ctrl-C stops a run, and at the prompt ends the conversation", ignore }, async () => {
  await chatting(serve(agent({ model: echo, tools: [gate().wait] })), async (person) => {
    await person.shows("> ");
    await person.type("Work\r");
    await person.shows("[wait {}]\n");
    await person.type("\x03");
    await person.shows("[stopped: ");
    await person.shows("> ");
    await person.type("Hi\r");
    await person.shows("You said: Hi\n> ");
    await person.type("\x03");
    assertEquals(await person.ended(), [0, "\n"]);
  });
});

Deno.test({ name: "a second Ctrl-C leaves a run that does not stop", ignore }, async () => {
  const app = serve(agent({ model: echo, tools: [gate().wait] }));
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Response>();
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    if (!request.url.endsWith("/stop")) return app.fetch(request);
    asked.resolve();
    return ended.promise;
  });
  await using person = new PseudoTerminal(...command, `http://127.0.0.1:${server.addr.port}`);
  await person.shows("> ");
  await person.type("Work\r");
  await person.shows("[wait {}]\n");
  await person.type("\x03");
  await asked.promise;
  await person.type("\x03");
  const [code, text] = await person.ended();
  ended.resolve(new Response(null, { status: 204 }));
  assertEquals(code, 0);
  assertStringIncludes(text, "[left]\n");
});

Deno.test({ name: "Ctrl-C at a question stops the paused run", ignore }, async () => {
  const model = scripted({ calls: [["drop", { table: "users" }]] }, "Next.");
  await chatting(serve(agent({ model, tools: [drop] })), async (person) => {
    await person.shows("> ");
    await person.type("Drop\r");
    await person.shows("[t]ype a result: ");
    await person.type("\x03");
    await person.shows("> ");
    await person.type("Hi\r");
    await person.shows("Next.\n> ");
  });
});

Deno.test({ name: "chat reads on after a cut, and says so", ignore }, async () => {
  const { wait, release } = gate();
  const app = serve(agent({ model: echo, tools: [wait] }), { onClientGone: "detach" });
  const cut = Promise.withResolvers<void>();
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const response = await app.fetch(request);
    if (new URL(request.url).pathname !== "/runs") return response;
    const reader = response.body?.getReader();
    return new Response(
      new ReadableStream({
        async pull(controller) {
          const next = reader?.read();
          const part = await Promise.race([next, cut.promise]);
          if (part?.value) return controller.enqueue(part.value);
          controller.close();
          await reader?.cancel();
        },
      }),
      response,
    );
  });
  await using person = new PseudoTerminal(...command, `http://127.0.0.1:${server.addr.port}`);
  await person.shows("> ");
  await person.type("Work\r");
  await person.shows("[wait {}]\n");
  cut.resolve();
  await person.shows("[no connection: trying again]\n");
  await person.shows("[connected]\n");
  release();
  await person.shows("You said: Work\n> ");
});

Deno.test("the lines of a pipe are prompts and answers, also those that arrive during a run", async () => {
  const call = { calls: [["drop", { table: "users" }]] } as const;
  const app = serve(agent({ model: scripted(call, "Gone.", call, "Kept.", "Bye."), tools: [drop] }));
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, app.fetch);
  const [program = "", ...args] = [...command, `http://127.0.0.1:${server.addr.port}`];
  const child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode("Drop it\ny\nDrop it\nNot today\nThanks\n"));
  await writer.close();
  const { code, stdout } = await child.output();
  const asked = '[drop {"table":"users"}]\nRun drop?\ndrop {\n  "table": "users"\n}\n[y/N/a/e, or a reason] ';
  assertEquals([code, new TextDecoder().decode(stdout)], [
    0,
    `> \n${asked}Gone.\n> \n${asked}[drop: denied]\nKept.\n> Bye.\n> `,
  ]);
});
