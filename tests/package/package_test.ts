import { assertEquals } from "@std/assert";
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
  await Deno.copyFile("tests/package/smoke.ts", `${project}/smoke.ts`);
  await output("npm", "install", "--prefix", project, "--no-audit", "--no-fund", await Deno.realPath(tarball));
});

Deno.test("the installed package has no example, no test and no optional peer", async () => {
  const names = async (folder: string) => {
    return (await Array.fromAsync(Deno.readDir(`${project}/node_modules/${folder}`), ({ name }) => name)).sort();
  };
  assertEquals(await names("@jizai/jizai"), [
    "LICENSE",
    "README.md",
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
    assertEquals([success, out?.match(/^ok /gm)?.length], [true, 6], `${out}${err}`);
  });
}

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
