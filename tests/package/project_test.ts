/**
 * Creates a project from each template, as a person does who has only Node or Deno, and uses it.
 */
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { output, pack } from "./pack.ts";

const folder = await Deno.makeTempDir();
addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));

const start = { npm_config_update_notifier: "false", npm_config_audit: "false", npm_config_fund: "false" };
const env = {
  ...start,
  PATH: `${folder}/node/node_modules/.bin:${Deno.env.get("PATH")}`,
  WRANGLER_SEND_METRICS: "false",
};

/** Runs a program in a folder, and returns its output. Throws if it fails or warns. */
async function quietly(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  const command = new Deno.Command(program, { args: [...args], cwd, env });
  const { success, stdout, stderr } = await command.output();
  const [out = "", err = ""] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  const complaints = err.split("\n").filter((line) => /warn|error|deprecated/i.test(line) && !/"nodedir"/.test(line));
  assertEquals([success, complaints], [true, []], `${program} ${args.join(" ")}\n${out}${err}`);
  return out;
}

/** Creates a project with the command of the tarball, and returns its folder. */
async function created(template: string): Promise<string> {
  const command = ["jizai", "create", `my-${template}`, "--template", template, "--package", "./jizai.tgz"];
  const out = await quietly(folder, "npx", "--yes", "--package", "./jizai.tgz", ...command);
  assertStringIncludes(out, `cd my-${template}\n`);
  return `${folder}/my-${template}`;
}

/** Starts a server with its own start command on a free port, chats with it, and returns the screen. */
async function chatted(project: string, command: string, path: string, ...lines: readonly string[]): Promise<string> {
  const [program = "", ...args] = command.replace("8000", "0").split(" ");
  const server = new Deno.Command(program, {
    args,
    cwd: project,
    env: { ...env, PORT: "0" },
    stdout: "piped",
    stderr: "piped",
  })
    .spawn();
  const outputs = [server.stdout, server.stderr].map(read);
  try {
    const url = await Promise.any(outputs.map(({ address }) => address));
    const cli = `${folder}/my-node/node_modules/@jizai/jizai/bin.js`;
    const chat = new Deno.Command("node", { args: [cli, "chat", url + path], env, stdin: "piped", stdout: "piped" })
      .spawn();
    const writer = chat.stdin.getWriter();
    await writer.write(new TextEncoder().encode(`${lines.join("\n")}\n`));
    await writer.close();
    const { success, stdout } = await chat.output();
    const screen = new TextDecoder().decode(stdout);
    assertEquals(success, true, screen);
    return screen;
  } finally {
    server.kill("SIGTERM");
    await server.status;
    await Promise.all(outputs.map(({ end }) => end)); // programs that the server started have ended, too
  }
}

/** Reads an output of a server to its end, and finds the address in it. */
function read(stream: ReadableStream<Uint8Array>): { readonly address: Promise<string>; readonly end: Promise<void> } {
  const address = Promise.withResolvers<string>();
  async function readAll(): Promise<void> {
    let text = "";
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const [found] = text.match(/http:\/\/(localhost|127\.0\.0\.1):\d+/) ?? [];
      if (found !== undefined) address.resolve(found);
    }
    address.reject(new Error(`Cannot find the address of the server: ${text}`));
  }
  return { address: address.promise, end: readAll() };
}

const prompts = ["Weather in Kyoto and Oslo?", "Send a postcard", "y"];

function assertConversation(screen: string): void {
  assertStringIncludes(screen, '[weather {"city":"Kyoto"}]\n\n[weather {"city":"Oslo"}]\n');
  assertStringIncludes(screen, "It is sunny in Kyoto. It is sunny in Oslo.\n");
  assertStringIncludes(screen, "Run send_postcard?\n");
  assertStringIncludes(screen, "Sent a postcard of 15 characters.\n");
}

Deno.test("create needs only Node 22 and the package", async () => {
  await output("npm", "install", "--prefix", `${folder}/node`, "--no-audit", "--no-fund", "node@22.23.3");
  await Deno.copyFile(await pack(), `${folder}/jizai.tgz`);
  const project = await created("node");
  await quietly(project, "npm", "install");
  assertMatch(await quietly(project, "npm", "test"), /pass 3\n.*fail 0\n/);
});

Deno.test("a created agent on Node starts without a key and answers", async () => {
  const project = `${folder}/my-node`;
  const { scripts } = JSON.parse(await Deno.readTextFile(`${project}/package.json`));
  assertConversation(await chatted(project, scripts.start, "", ...prompts));
});

Deno.test("create refuses a folder with files", async () => {
  await assertRejects(() => created("node"), Error, "the folder is not empty");
});

Deno.test("a created middleware package passes its tests, and both registries accept it", async () => {
  const project = await created("middleware");
  await quietly(project, "npm", "install");
  assertMatch(await quietly(project, "npm", "test"), /pass 4\n.*fail 0\n/);
  await quietly(project, "npx", "-y", "publint@0.3.25", "--strict");
  // JSR resolves the dependency from this repository
  const jsr = JSON.parse(await Deno.readTextFile(`${project}/jsr.json`));
  await Deno.writeTextFile(`${project}/jsr.json`, JSON.stringify({ ...jsr, links: [Deno.cwd()] }));
  await quietly(project, Deno.execPath(), "publish", "--dry-run", "--allow-dirty", "--quiet");
});

Deno.test("a created agent on Deno passes its tests and answers", async () => {
  const project = await created("deno");
  await quietly(project, Deno.execPath(), "task", "--quiet", "test");
  const { tasks } = JSON.parse(await Deno.readTextFile(`${project}/deno.json`));
  assertConversation(await chatted(project, tasks.start.replace(/^deno/, Deno.execPath()), "", ...prompts));
});

for (const [template, path] of [["durable-objects", "/my-conversation"], ["workers", ""]] as const) {
  Deno.test(`a created agent on ${template} passes its tests and answers in wrangler dev`, async () => {
    const project = await created(template);
    // the dependencies of the two are the same, and are large
    if (template === "workers") {
      await Deno.rename(`${folder}/my-durable-objects/node_modules`, `${project}/node_modules`);
    }
    await quietly(project, "npm", "install");
    assertMatch(await quietly(project, "npm", "test"), /pass 3\n.*fail 0\n/);
    const { scripts } = JSON.parse(await Deno.readTextFile(`${project}/package.json`));
    const start = scripts.start.replace(/^wrangler/, "node node_modules/wrangler/bin/wrangler.js");
    assertConversation(await chatted(project, start, path, ...prompts));
  });
}

Deno.test("a created agent on workers keeps its sessions in D1", async () => {
  const execute = ["node_modules/wrangler/bin/wrangler.js", "d1", "execute", "DB", "--local", "--json", "--command"];
  const query = "SELECT COUNT(*) AS sessions FROM jizai_journal WHERE session IS NOT NULL";
  const [answer] = JSON.parse(await quietly(`${folder}/my-workers`, "node", ...execute, query));
  assertEquals(answer.results, [{ sessions: 1 }]);
});
