/**
 * Makes the npm package in `dist`, and checks it with publint and "are the types wrong".
 *
 * ```sh
 * deno task pack https://github.com/OWNER/jizai
 * ```
 *
 * The address of the repository is needed to publish: npm compares it with the one that provenance names.
 *
 * @module
 */
const raw = "dist/raw.tgz";
const folder = "dist/package";
const checks = [
  ["publint@0.3.25", "--strict"],
  ["@arethetypeswrong/cli@0.18.5", "--profile", "esm-only", "--quiet"],
];

/** The program that `npx @jizai/jizai` runs. */
const bin = `#!/usr/bin/env node
import { run } from "./src/cli/mod.js";
await run();
`;

/** The peer dependencies. An optional one is needed only by the middleware named after it. */
const peers = ["hono", "zod"];
const optionalPeers = ["@modelcontextprotocol/client", "@opentelemetry/api"];

if (import.meta.main) {
  const tarball = await pack(Deno.args[0]);
  await check(tarball);
  console.log(`${tarball}: ${Math.round((await Deno.stat(tarball)).size / 1024)} KiB, no findings`);
}

/** Makes the tarball and returns its path. `repository` is the address of the sources. Default: the package names none. */
export async function pack(repository?: string): Promise<string> {
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  await Deno.mkdir("dist", { recursive: true });
  await output("deno", "pack", "--allow-dirty", "--no-source-maps", "--ignore=examples", `--output=${raw}`);
  await Deno.remove(folder, { recursive: true }).catch(() => {}); // it may not exist
  await output("tar", "-xzf", raw, "-C", "dist");
  await Deno.remove(`${folder}/deno.lock`);
  await Deno.writeTextFile(`${folder}/bin.js`, bin, { mode: 0o755 });
  const manifest = JSON.parse(await Deno.readTextFile(`${folder}/package.json`));
  const sources = repository === undefined ? {} : { repository: { type: "git", url: `git+${repository}.git` } };
  const written = { ...packageJson(manifest, config.imports), ...sources };
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(written, null, 2));
  const changes = (await Deno.readTextFile("examples/guides/changes.md")).replace(/^# [^#]*/, ""); // without its title
  await Deno.writeTextFile(`${folder}/README.md`, `${await Deno.readTextFile(`${folder}/README.md`)}\n${changes}`);
  await Deno.copyFile("examples/guides/SKILL.md", `${folder}/SKILL.md`); // for coding agents
  const [{ filename }] = JSON.parse(await output("npm", "pack", "--json", "--pack-destination=dist", `./${folder}`));
  await Deno.remove(folder, { recursive: true }); // `deno check` would check its declarations
  await Deno.remove(raw);
  return `dist/${filename}`;
}

/** Checks the tarball. Throws with the findings, if there are any. */
export async function check(tarball: string): Promise<void> {
  for (const [tool = "", ...args] of checks) await output("npx", "-y", tool, ...args, tarball);
}

/** Completes the `package.json` that `deno pack` wrote. `imports` are those of `deno.json`. */
function packageJson(
  { dependencies, ...written }: { dependencies: Record<string, string> },
  imports: Readonly<Record<string, string>>,
): object {
  const versions = [...peers, ...optionalPeers].map((name) => [name, rangeOf(name, imports[name])]);
  return {
    ...written,
    description: "A framework for LLM agents at the edge: every point in an agent's life is an onion of hooks",
    keywords: ["agent", "ai", "edge", "hono", "llm", "middleware"],
    bin: { jizai: "bin.js" },
    engines: { node: ">=22.18" },
    publishConfig: { access: "public", provenance: true },
    sideEffects: ["./src/testing/strict_default.js"],
    dependencies: Object.fromEntries(
      Object.entries(dependencies).filter(([name]) => ![...peers, ...optionalPeers].includes(name)),
    ),
    peerDependencies: Object.fromEntries(versions),
    peerDependenciesMeta: Object.fromEntries(optionalPeers.map((name) => [name, { optional: true }])),
  };
}

/** Returns the range of a dependency: `npm:hono@^4.13` is `^4.13`, and a pinned version is its minimum. */
function rangeOf(name: string, specifier = ""): string {
  const version = specifier.slice(`npm:${name}@`.length);
  if (!version) throw new Error(`Cannot pack: deno.json imports no version of "${name}"`);
  return version.startsWith("^") ? version : `^${version}`;
}

/** Runs a program and returns what it prints. Throws with both of its outputs if it fails. */
export async function output(program: string, ...args: string[]): Promise<string> {
  const command = new Deno.Command(program === "deno" ? Deno.execPath() : program, { args });
  const { success, stdout, stderr } = await command.output();
  const out = new TextDecoder().decode(stdout);
  const err = new TextDecoder().decode(stderr);
  if (!success) throw new Error(`Cannot run ${program} ${args.join(" ")}: it failed:\n${out}${err}`);
  return out.trim();
}
