import { assert, assertEquals } from "@std/assert";
import { filesFor, templates } from "../../src/cli/create.ts";
import { type App, eventsOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { eventually } from "./eventually.ts";
import { folder } from "./folder.ts";
import { killing } from "./killing.ts";
import { bundled, served } from "./workerd.ts";

const secret = "32 bytes that cannot be guessed..";

/** Makes Deno use the sources of this repository, although a template has a `deno.json` or a `package.json`. */
const here = ["--config", "deno.json"];

/** A demo model that says a word every 20 milliseconds for a minute. */
const slow = `for (let word = 1; word <= 3_000; word++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield [{ type: "text", text: "word " }];
    }`;

/** A demo model that answers at once. */
const fast = `yield [{ type: "text", text: "Awake." }];`;

function filesOf(name: string): Readonly<Record<string, string>> {
  const template = templates[name];
  assert(template);
  return filesFor("my-agent", template);
}

/** Writes the modules of a template, which use the sources of this repository. `changes` are made to their texts. */
async function write(path: string, template: string, changes: Readonly<Record<string, string>> = {}): Promise<void> {
  const files = filesOf(template);
  for (const [name, text] of Object.entries(files).filter(([name]) => name.endsWith(".ts"))) {
    if (name.includes("/")) await Deno.mkdir(`${path}/${name.replace(/\/[^/]*$/, "")}`, { recursive: true });
    const changed = Object.entries(changes).reduce((all, [from, to]) => all.replaceAll(from, to), text);
    await Deno.writeTextFile(`${path}/${name}`, changed);
  }
}

/** Replaces the demo model of a project. */
async function answer(path: string, how: string): Promise<void> {
  const model = `import type { Model } from "@jizai/jizai";
export const demo: Model = {
  id: "demo",
  async *stream() {
    ${how}
    yield [{ type: "finish", reason: "stop" }];
  },
};
`;
  await Deno.writeTextFile(`${path}/src/demo_model.ts`, model);
}

/** Starts the app of the template for Deno in a folder, as its own task does, or as it runs when it is deployed. */
function start(path: string, { deployed = false } = {}) {
  const { tasks } = JSON.parse(filesOf("deno")["deno.json"] ?? "");
  const task = deployed ? tasks.start.replace(" --local", "") : tasks.start;
  const [, command, ...args] = task.replace("8000", "0").replace("main.ts", `${path}/main.ts`).split(" ");
  return started([command, ...here, ...args], "stderr");
}

/** Starts the server of the template for Node with Deno. */
function startNode(host?: string) {
  const main = "examples/templates/node/src/main.ts";
  return started(["run", ...here, "--allow-net", "--allow-env", main], "stdout", host);
}

/** Starts a server with Deno, which prints its address. */
async function started(args: readonly string[], printsTo: "stdout" | "stderr", host = "127.0.0.1") {
  const env = { NO_COLOR: "1", PORT: "0", HOST: host };
  const command = new Deno.Command(Deno.execPath(), { args: [...args], env, [printsTo]: "piped" });
  const process = command.spawn();
  const kill = killing(process);
  const lines = process[printsTo].pipeThrough(new TextDecoderStream()).getReader();
  let printed = "";
  while (!/:\d+(\/|\n)/.test(printed)) {
    const { done, value } = await lines.read();
    if (done) throw new Error(`Cannot start deno ${args.join(" ")}: it printed no address`);
    printed += value;
  }
  const [address = ""] = printed.match(/http:\S+/) ?? [];
  const url = address.replace("0.0.0.0", "127.0.0.1");
  const app: App = { request: (path, init) => fetch(new URL(path, url), init) };
  return {
    ...app,
    url,
    async interrupt(signal: Deno.Signal): Promise<number> {
      process.kill(signal);
      return (await process.status).code;
    },
    async [Symbol.asyncDispose]() {
      await kill();
      while (!(await lines.read()).done);
    },
  };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`the app of the template for Deno ends on ${signal}, and hands its runs over`, async () => {
    await using disk = await folder();
    await write(disk.path, "deno");
    await answer(disk.path, slow);
    const begun: { readonly run: string; readonly session: string }[] = [];
    {
      await using app = await start(disk.path);
      const streams = await Promise.all([1, 2].map(async () => piecesOf(await post(app, "/runs", { prompt: "Hi" }))));
      for (const stream of streams) {
        const [, run = "", session = ""] =
          (await stream.until("text.delta")).match(/"run":"([^"]+)","session":"([^"]+)"/) ??
            [];
        begun.push({ run, session });
      }
      const ended = app.interrupt(signal);
      await Promise.all(streams.map((stream) => stream.rest()));
      assertEquals(await ended, 0);
    }
    await answer(disk.path, fast);
    await using app = await start(disk.path);
    const [first, second] = begun;
    const events = await eventsOf(app.request(`/runs/${first?.run}`));
    const outline = events.flatMap((event) => event.type === "run.started" ? [event.resumed] : []);
    assertEquals([outline, events.at(-1)?.type], [[false, true], "run.finished"]);
    const prompted = await post(app, "/runs", { prompt: "Hi", session: second?.session });
    assertEquals((await eventsOf(prompted)).at(-1)?.type, "run.finished"); // the session is not locked for a lease
  });
}

Deno.test("in workerd, the alarm of the template for Durable Objects continues the run of a killed object", async () => {
  await using disk = await folder();
  await write(disk.path, "durable-objects", { "limits: workers,": "limits: workers, lease: 1_000," });
  const bindings = { className: "Conversation", settings: { FORWARD_SECRET: secret } };
  const scripts = [];
  for (const how of [slow, fast]) {
    await answer(disk.path, how);
    scripts.push(await bundled(`${disk.path}/src/worker.ts`));
  }
  const [slowly = "", fastly = ""] = scripts;
  {
    await using worker = await served(slowly, bindings, disk.path);
    const pieces = piecesOf(await post(worker, "/tea/runs", { prompt: "Hi" }));
    assertEquals((await pieces.until("text.delta")).includes("model.requested"), false); // this machine is not the only one
    await pieces.cancel();
    assertEquals((await refusalOf(post(worker, "/tea/runs", { prompt: "Hi" })))[0], 409);
  }
  await using worker = await served(fastly, bindings, disk.path);
  const messages = await eventually(async () => {
    const session = await (await worker.request("/tea/sessions/tea")).json(); // reading a session continues nothing
    return session.run ? undefined : session.messages;
  });
  assertEquals(messages.at(-1).parts, [{ type: "text", text: "Awake." }]);
});

Deno.test("the servers that the templates start on this machine serve no other host", async () => {
  await using disk = await folder();
  const root = "examples/templates"; // as they are
  const worker = await bundled(`${root}/workers/src/worker.ts`);
  const objects = await bundled(`${root}/durable-objects/src/worker.ts`);
  const settings = { FORWARD_SECRET: secret, LOCAL_ONLY: "yes" };
  const servers = [
    ["/", () => start(`${root}/deno`)],
    ["/", () => served(worker, { settings }, disk.path)],
    ["/", () => startNode()],
    ["/tea", () => served(objects, { className: "Conversation", settings }, disk.path)],
  ] as const;
  for (const [path, open] of servers) {
    await using app = await open();
    const statusOf = async (host?: string) => await statusFor(new URL(path, app.url), host);
    assertEquals(await statusOf("evil.example"), 403);
    assertEquals(await statusOf("localhost.evil.example:80"), 403);
    if (open === servers[1][1]) continue; // this Worker has no database here
    assertEquals(await statusOf(), 200);
    assertEquals(await showsRequests(app, path), true);
  }
});

Deno.test("the templates for Deno and Node show no request to the model where others connect", async () => {
  const root = "examples/templates";
  for (const open of [() => start(`${root}/deno`, { deployed: true }), () => startNode("0.0.0.0")]) {
    await using app = await open();
    assertEquals(await showsRequests(app), false);
  }
});

/** Returns true if a client of a server receives the requests to the model, with their instructions. */
async function showsRequests(app: App, path = "/"): Promise<boolean> {
  const response = await post(app, `${path === "/" ? "" : path}/runs`, { prompt: "Weather in Kyoto?" });
  const text = await response.text();
  assert(text.includes("It is sunny in Kyoto."), text);
  assertEquals(text.includes("You know the weather"), text.includes("model.requested"));
  return text.includes("model.requested");
}

/** Requests a URL as another host. Returns the status. */
async function statusFor({ hostname, port, pathname, host }: URL, asHost = host): Promise<number> {
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const head = `GET ${pathname} HTTP/1.1\r\nHost: ${asHost}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`;
  await connection.write(new TextEncoder().encode(head));
  const buffer = new Uint8Array(100);
  await connection.read(buffer);
  return Number(new TextDecoder().decode(buffer).split(" ")[1]);
}

Deno.test("the tests of the template for middleware pass as they are", async () => {
  // the example of its README imports the package that npm builds
  const args = ["test", ...here, "--no-check", "--filter", "/limit|laws/", "examples/templates/middleware"];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, env: { NO_COLOR: "1" } }).output();
  assertEquals([success, new TextDecoder().decode(stdout).match(/(\d+) passed/)?.[1]], [true, "3"]);
});
