import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { agent, serve, tool } from "@jizai/jizai";
import { main, type Terminal } from "@jizai/jizai/cli";
import { scripted } from "@jizai/jizai/model/scripted";
import { schema as postgres } from "@jizai/jizai/session/postgres";
import { sqliteKeyValue, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import * as z from "zod";
import { templates } from "../../src/cli/create.ts";
import { d1On } from "../support/growth.ts";
import { target, templatesAsJson } from "../support/templates.ts";
import "../../examples/templates/app/tests/agent_test.ts";
import conversations from "../../examples/templates/durable-objects/src/worker.ts";
import worker from "../../examples/templates/workers/src/worker.ts";

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

Deno.test("chat refuses an address that is no URL before the person types", async () => {
  for (const url of ["notaurl", "localhost:8000", "//example.com", "file:///agent", "http://"]) {
    const terminal = typing("Hi");
    assertEquals(await main(["chat", url], terminal), 1);
    assertEquals(
      terminal.screen(),
      `Cannot chat with "${url}": expected a URL of a server, such as http://localhost:8000\n`,
    );
  }
});

Deno.test("chat names the cause if it cannot reach the server", async () => {
  using time = new FakeTime();
  using _fetch = stub(globalThis, "fetch", () => Promise.reject(new TypeError("connection \u001b refused")));
  const terminal = typing("Hi");
  let code: number | undefined;
  const ended = main(["chat", "http://localhost:9"], terminal).then((value) => code = value);
  while (code === undefined) await time.tickAsync(30_000);
  await ended;
  assertEquals([code, terminal.screen().split("\n").at(-2)], [
    1,
    "Cannot read the run: 8 attempts failed: connection \\u{1b} refused",
  ]);
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

/** Runs a command without input, and returns its exit code and its output. */
async function ran(...args: readonly string[]): Promise<readonly [number, string]> {
  let screen = "";
  const terminal: Terminal = {
    write: (text) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(args, terminal), screen];
}

Deno.test("the command line contains the folders of examples/templates", async () => {
  assertEquals(await Deno.readTextFile(target), await templatesAsJson(), "run `deno task templates`");
});

Deno.test("every template depends on the version of this package", async () => {
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  for (const [name, { files }] of Object.entries(templates)) {
    const ranges = Object.entries(files).flatMap(([path, text]) =>
      /(package|deno|jsr)\.json$/.test(path)
        ? [...text.matchAll(/"@jizai\/jizai": "(?:jsr:@jizai\/jizai@)?([^"]+)"/g)]
        : []
    );
    assertEquals([name, ...new Set(ranges.map(([, range]) => range))], [name, `^${config.version}`]);
  }
});

Deno.test("create rejects a name that the registries reject", async () => {
  for (const name of ["My-Agent", "my agent", "-agent", "7up", "my--agent", "agent_"]) {
    const [code, screen] = await ran("create", "--", name);
    assertEquals([code, screen], [
      1,
      `Cannot create "${name}": expected a name of lower-case letters, digits and hyphens, such as my-agent\n`,
    ]);
  }
});

Deno.test("create rejects an unknown template and names the others", async () => {
  assertEquals(await ran("create", "my-agent", "--template", "toString"), [
    1,
    'Cannot create from the template "toString": expected one of node, deno, workers, durable-objects, middleware\n',
  ]);
});

Deno.test("create rejects a package that is not a tarball", async () => {
  const create = ["create", "my-agent", "--template", "node", "--package"];
  assertEquals(await ran(...create, "nowhere.tgz"), [
    1,
    'Cannot use the package "nowhere.tgz": it is not readable\n',
  ]);
  assertEquals(await ran(...create, "deno.json"), [
    1,
    'Cannot use the package "deno.json": expected a tarball, as npm pack makes it\n',
  ]);
});

/** Runs `jizai schema`, and returns its exit code and output. */
async function schemaOf(database: string): Promise<readonly [number, string]> {
  let screen = "";
  const terminal: Terminal = {
    write: (text) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(["schema", database], terminal), screen];
}

/** Returns the names of the tables and indexes that a schema creates. It is executed twice, since a schema changes nothing where it exists. */
function namesIn(schema: string): readonly unknown[] {
  const database = new DatabaseSync(":memory:");
  database.exec(schema);
  database.exec(schema);
  return database.prepare("SELECT name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").all().map(({ name }) =>
    name
  );
}

const names = [
  "jizai_journal",
  "jizai_journal_due",
  "jizai_journal_ended",
  "jizai_journal_ended_at",
  "jizai_journal_entry",
  "jizai_journal_event",
  "jizai_journal_expires",
  "jizai_journal_owner",
  "jizai_journal_unpacked",
  "jizai_value",
  "jizai_value_expires",
];

Deno.test("jizai schema prints SQL that creates the tables and indexes of sqlite, d1 and libsql", async () => {
  for (const database of ["sqlite", "d1", "libsql"]) {
    const [code, schema] = await schemaOf(database);
    assertEquals([code, namesIn(schema)], [0, names]);
  }
});

Deno.test("the schema that jizai prints for sqlite is the one that the adapters need", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec((await schemaOf("sqlite"))[1]);
  await sqliteStore(database).save({ id: "s", version: 0, messages: [] });
  assertEquals(await sqliteKeyValue(database).increment("n"), 1);
});

Deno.test("jizai schema prints the schema that migrate() executes on Postgres", async () => {
  assertEquals(await schemaOf("postgres"), [0, postgres]);
});

Deno.test("jizai schema fails for an unknown database", async () => {
  assertEquals(await schemaOf("oracle"), [
    1,
    'Cannot print the schema of "oracle": expected one of d1, libsql, postgres, sqlite\n',
  ]);
});

/** Runs a command without input, and returns its exit code and its output. */
async function printed(...args: readonly string[]): Promise<readonly [number, readonly string[]]> {
  let screen = "";
  const terminal = {
    write: (text: string) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(args, terminal), screen.trimEnd().split("\n")];
}

const file = "tests/cli/recording.json";

Deno.test("replay prints the events of a recording", async () => {
  assertEquals(await printed("replay", file), [0, [
    "first, 2026-01-02T03:04:05.000Z, run 11111111-1111-4111-8111-111111111111",
    "run.started",
    "session.opened new",
    "prompt.accepted Hi",
    "turn.started 1",
    "model.started scripted",
    "text.delta One.",
    "model.finished stop",
    "turn.finished 1",
    "session.closed",
    "run.finished done One.",
  ]]);
});

Deno.test("replay runs a recording again with the agent of its name, and prints the differences", async () => {
  const agents = "tests/cli/two_agents.ts";
  assertEquals(await printed("replay", file, "--agent", agents), [0, [
    "The run is the same as the recording: 10 events.",
  ]]);
  assertEquals(await printed("replay", file, "--agent", "tests/cli/loud_agent.ts"), [1, [
    "Cannot confirm the recording: the run differs",
    "text answer",
    "  - One.",
    "  + ONE.",
  ]]);
  assertEquals(await printed("replay", file, "--agent", "mod.ts"), [1, [
    'Cannot replay with "mod.ts": expected an exported agent with the name "first"',
  ]]);
});

Deno.test("replay rejects a file that is not a recording", async () => {
  assertEquals(await printed("replay", "tests/cli/two_agents.json"), [1, [
    "ENOENT: no such file or directory, open 'tests/cli/two_agents.json'",
  ]]);
  const [code] = await printed("replay", "deno.json");
  assertEquals(code, 1);
});

Deno.test("the template for Durable Objects says where a run of a conversation begins", async () => {
  const env = { FORWARD_SECRET: "32 bytes that cannot be guessed.." };
  const response = await conversations.request("/runs", { method: "POST", body: "{}" }, env);
  const message = "Cannot POST /runs: a path begins with a conversation; expected /my-conversation/runs";
  assertEquals([response.status, await response.json()], [404, { error: { code: "unknown", message } }]);
});

Deno.test("the template for Workers shows no request to the model where others connect", async () => {
  const DB = d1On(new DatabaseSync(":memory:"));
  const ctx = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
  const request = new Request("http://agent.example/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Weather in Kyoto?" }),
  });
  const text = await (await worker.fetch(request, { DB }, ctx)).text();
  const shown = ["It is sunny in Kyoto.", "model.requested", "You know the weather"].map((part) => text.includes(part));
  assertEquals(shown, [true, false, false]);
});
