import { agent, serve, tool } from "@jizai/jizai";
import { main, type Terminal } from "@jizai/jizai/cli";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as z from "zod";

/** A terminal on which a person types `lines`, and then ends the input. */
function typing(...lines: readonly string[]): Terminal & { readonly screen: () => string } {
  const left = [...lines];
  let screen = "";
  return {
    write: (text) => void (screen += text),
    ask(prompt) {
      const line = left.shift();
      screen += `${prompt}${line ?? ""}\n`;
      return Promise.resolve(line);
    },
    onInterrupt() {},
    close: () => void left.splice(0),
    screen: () => screen,
  };
}

const drop = tool({
  name: "drop",
  description: "Drops a table",
  input: z.object({ table: z.string() }),
  ask: true,
  execute: ({ table }) => `Dropped ${table}`,
});

/** Serves an agent on this machine while `use` runs. */
async function serving(app: ReturnType<typeof serve>, use: (url: string) => Promise<void>): Promise<void> {
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, app.fetch);
  await use(`http://127.0.0.1:${server.addr.port}/`);
}

const call = { calls: [["drop", { table: "users" }]] } as const;

Deno.test("chat continues one session and asks about calls", async () => {
  const app = serve(agent({ model: scripted(call, "Gone.", "Bye."), tools: [drop] }));
  await serving(app, async (url) => {
    const terminal = typing("Drop the users", "y", "", "Thanks");
    assertEquals(await main(["chat", url], terminal), 0);
    assertEquals(
      terminal.screen(),
      [
        "> Drop the users",
        "",
        '[drop {"table":"users"}]',
        "Run drop?",
        "drop {",
        '  "table": "users"',
        "}",
        "[y/N/a/e, or a reason] y",
        "Gone.",
        "> ",
        "> Thanks",
        "Bye.",
        "> ",
        "",
      ].join("\n"),
    );
  });
});

Deno.test("chat denies a call for the reason that is typed", async () => {
  const app = serve(agent({ model: scripted(call, "Fine."), tools: [drop] }));
  await serving(app, async (url) => {
    const terminal = typing("Drop the users", "Not today");
    assertEquals(await main(["chat", url], terminal), 0);
    assertStringIncludes(terminal.screen(), "[y/N/a/e, or a reason] Not today\n[drop: denied]\nFine.\n");
  });
});

Deno.test("chat approves a call with another input, and further calls of its tool", async () => {
  const app = serve(agent({ model: scripted(call, "One.", call, "Two.", call, "Three."), tools: [drop] }));
  await serving(app, async (url) => {
    const terminal = typing("Drop", "e", "{table}", '{"table":"logs"}', "Drop", "a", "Drop");
    assertEquals(await main(["chat", url], terminal), 0);
    const screen = terminal.screen();
    assertStringIncludes(screen, "reason] e\ninput: {table}\n[not JSON: ");
    assertStringIncludes(screen, ']\ninput: {"table":"logs"}\nOne.\n> Drop\n');
    assertStringIncludes(screen, 'reason] a\nTwo.\n> Drop\n\n[drop {"table":"users"}]\nThree.\n> \n');
  });
});

Deno.test("chat stops the run at Ctrl-C and goes on", async () => {
  let stop = () => {};
  const waits = tool({
    name: "wait",
    description: "Waits until it is stopped",
    input: z.object({}),
    execute: (_input, { signal }) => {
      stop();
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const app = serve(agent({ model: scripted({ calls: [["wait", {}]] }, "Here."), tools: [waits] }));
  await serving(app, async (url) => {
    const terminal = { ...typing("Wait", "Hello"), onInterrupt: (interrupt: () => void) => stop = interrupt };
    assertEquals(await main(["chat", url], terminal), 0);
    assertStringIncludes(terminal.screen(), "[wait {}]\n");
    assertStringIncludes(terminal.screen(), "\n[stopped: ");
    assertStringIncludes(terminal.screen(), "> Hello\nHere.\n");
  });
});

Deno.test("chat shows the calls that the provider of the model runs", async () => {
  const reads = [
    [{ type: "part", part: { type: "provider_call", callId: "s1", name: "web_search", input: { query: "\u001b" } } }],
    [{ type: "part", part: { type: "provider_result", callId: "s1", name: "web_search", status: "error", output: 1 } }],
    [{ type: "text", text: "Hi." }, { type: "finish", reason: "stop" }],
  ] as const;
  await serving(serve(agent({ model: scripted({ reads }) })), async (url) => {
    const terminal = typing("Hi");
    await main(["chat", url], terminal);
    assertStringIncludes(terminal.screen(), '\n[web_search {"query":"\\u001b"}]\n[web_search: error]\nHi.\n');
  });
});

Deno.test("chat writes no control character of the server", async () => {
  await serving(serve(agent({ model: scripted("\u001b[2JHi") })), async (url) => {
    const terminal = typing("Hi");
    await main(["chat", url], terminal);
    assertStringIncludes(terminal.screen(), "\\u{1b}[2JHi\n");
  });
});

Deno.test("chat sends headers, and reports a refused request", async () => {
  const app = serve(agent({ model: scripted("Hello.") }), { owner: (c) => c.req.header("x-user") });
  await serving(app, async (url) => {
    const terminal = typing("Hi");
    assertEquals(await main(["chat", url, "--header", "x-user: ann"], terminal), 0);
    assertEquals(terminal.screen(), "> Hi\nHello.\n> \n");
    assertEquals(await main(["chat", `${url}nowhere`], typing("Hi")), 1);
    assertEquals(await main(["chat", url, "--header", "wrong"], terminal), 1);
    assertStringIncludes(terminal.screen(), 'Cannot send the header "wrong": expected "NAME: VALUE"\n');
  });
});

Deno.test("explain prints the agents that a file exports", async () => {
  const terminal = typing();
  assertEquals(await main(["explain", "tests/cli/two_agents.ts"], terminal), 0);
  assertStringIncludes(terminal.screen(), "tool      shout → core");
  assertEquals(await main(["explain", "mod.ts"], terminal), 1);
  assertStringIncludes(terminal.screen(), 'Cannot explain "mod.ts": expected an exported agent, found none\n');
});

Deno.test("wrong arguments print the usage and return 2", async () => {
  for (const args of [[], ["dance", "x"], ["chat"], ["explain", "a", "b"], ["toString", "a"]]) {
    const terminal = typing();
    assertEquals(await main(args, terminal), 2);
    assertStringIncludes(terminal.screen(), "Usage: jizai COMMAND");
  }
  assertEquals(await main(["chat", "--nonsense"], typing()), 2);
  assertEquals(await main(["--help"], typing()), 0);
});
