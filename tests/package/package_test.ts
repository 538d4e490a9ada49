import { assertEquals, assertMatch } from "@std/assert";
import { binary } from "../platforms/workerd.ts";
import { check, output, pack } from "./pack.ts";

/** The runtimes that npm provides, and the versions that are tested. */
const runtimes = {
  "Node 22": ["npx", "-y", "node@22.23.3", "--disable-warning=ExperimentalWarning", "smoke.ts"],
  "Node 24": ["npx", "-y", "node@24.21.0", "smoke.ts"],
  Bun: ["npx", "-y", "bun@1.4.5", "smoke.ts"],
  Deno: [Deno.execPath(), "run", "--no-prompt", "--allow-read", "--allow-env", "--allow-sys", "smoke.ts"],
};

const project = await Deno.makeTempDir();
addEventListener("unload", () => Deno.removeSync(project, { recursive: true }));

Deno.test("the npm package has no findings of publint and attw", async () => {
  const tarball = await pack();
  await check(tarball);
  await Deno.writeTextFile(
    `${project}/package.json`,
    JSON.stringify({ name: "project", private: true, type: "module" }),
  );
  for (const file of ["checks.ts", "smoke.ts", "worker.ts", "edge.ts"]) {
    await Deno.copyFile(`tests/package/${file}`, `${project}/${file}`);
  }
  await Deno.copyFile("examples/node/main.ts", `${project}/main.ts`);
  await output("npm", "install", "--prefix", project, "--no-audit", "--no-fund", await Deno.realPath(tarball));
});

Deno.test("the installed package has no example, no test and no optional peer", async () => {
  const names = async (folder: string) => {
    return (await Array.fromAsync(Deno.readDir(`${project}/node_modules/${folder}`), ({ name }) => name)).sort();
  };
  assertEquals(await names("@jizai/jizai"), [
    "LICENSE",
    "README.md",
    "SKILL.md",
    "bin.js",
    "middleware",
    "mod.d.ts",
    "mod.js",
    "package.json",
    "src",
  ]);
  assertEquals((await names("")).filter((name) => !name.startsWith(".")), ["@jizai", "hono", "re2js", "zod"]);
});

for (const [runtime, [program = "", ...args]] of Object.entries(runtimes)) {
  Deno.test(`the installed package works on ${runtime}`, async () => {
    const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd: project }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assertEquals([success, out?.match(/^ok /gm)?.length], [true, 8], `${out}${err}`);
  });
}

/** Asks a server once it listens, and returns its answer. Ends it, and reads its output to the end. */
async function answerOf(
  process: Deno.ChildProcess,
  port: Promise<number>,
  request: RequestInit,
  path = "/",
): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${await port}${path}`, request);
    return await response.text();
  } finally {
    process.kill("SIGTERM");
    await process.status;
  }
}

/** Returns the port that a server prints. The server must print nothing afterwards. */
async function portIn(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<number> {
  let text = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const [, port] = text.match(pattern) ?? [];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`Cannot find the port of the server: ${text}`);
}

/** Returns the path of Node 22. */
function node22(): Promise<string> {
  return output("npx", "-y", "node@22.23.3", "-p", "process.execPath");
}

/** Bundles a module of the project with the installed package. */
async function bundle(file: string, format: "esm" | "iife"): Promise<string> {
  const path = `${project}/${file.replace(".ts", `.${format}.js`)}`;
  const args = ["bundle", "--quiet", "--no-lock", "--platform", "browser", "--format", format, "--output", path, file];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: project }).output();
  assertEquals(success, true, new TextDecoder().decode(stderr));
  return path;
}

const passed = /^(ok .*(\n|$)){7}$/;

Deno.test("the installed package works on workerd", async () => {
  const script = await Deno.readTextFile(await bundle("worker.ts", "esm"));
  await Deno.writeTextFile(
    `${project}/config.capnp`,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "worker", worker = (
    modules = [(name = "worker.js", esModule = ${JSON.stringify(script)})],
    compatibilityDate = "2026-11-17",
  ))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);`,
  );
  const args = ["serve", "--control-fd=1", `${project}/config.capnp`];
  const process = new Deno.Command(await binary(), { args, stdout: "piped" }).spawn();
  assertMatch(await answerOf(process, portIn(process.stdout, /"port":(\d+)/), {}), passed);
});

Deno.test("the installed package works in the Edge runtime", async () => {
  await output("npm", "install", "--prefix", `${project}/edge`, "--no-audit", "--no-fund", "edge-runtime@4.0.1");
  const script = await bundle("edge.ts", "iife");
  const cli = `${project}/edge/node_modules/edge-runtime/dist/cli/index.js`;
  const args = [cli, "--listen", "--port", "0", script];
  const process = new Deno.Command(await node22(), { args, stdout: "piped" }).spawn(); // it has the globals of its Node
  assertMatch(await answerOf(process, portIn(process.stdout, /:(\d+)/), {}), passed);
});

Deno.test("examples/node serves an agent on Node", async () => {
  await output("npm", "install", "--prefix", project, "--no-audit", "--no-fund", "@hono/node-server@^2.1.8");
  const args = ["--disable-warning=ExperimentalWarning", "main.ts"];
  const process = new Deno.Command(await node22(), {
    args,
    cwd: project,
    env: { PORT: "0", HOST: "127.0.0.1" },
    stdout: "piped",
  })
    .spawn();
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: '{"prompt":"Weather?"}' };
  const events = await answerOf(process, portIn(process.stdout, /:(\d+)/), request, "/runs");
  assertMatch(events, /"type":"tool.finished".*It is sunny in Kyoto\.[^]*"type":"run.finished"/);
});

Deno.test("the installed command explains an agent on Node 22", async () => {
  const module = [
    `import { agent } from "@jizai/jizai";`,
    `import { scripted } from "@jizai/jizai/model/scripted";`,
    `export default agent({ name: "greeter", model: scripted("Hi") });`,
  ];
  await Deno.writeTextFile(`${project}/greeter.mjs`, module.join("\n"));
  const [program, ...args] = [
    "npx",
    "-y",
    "node@22.23.3",
    "node_modules/.bin/jizai",
    "explain",
    "greeter.mjs",
  ] as const;
  const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd: project }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals([success, out?.split("\n")[0], err?.replace(/^npm warn .*\n/gm, "")], [true, "greeter", ""]);
});
