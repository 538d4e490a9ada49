import { assertEquals } from "@std/assert";
import { folder } from "./folder.ts";

// Deno checks the sources of a linked package with the options of the user's project.
Deno.test("all entries have valid types in a project with default compiler options", async () => {
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  await using project = await folder();
  const imports: Record<string, string> = {};
  for (const [name, target] of Object.entries<string>(config.imports)) {
    if (!target.startsWith("npm:")) continue;
    imports[name] = target;
    imports[`${name}/`] = `${target.replace("npm:", "npm:/")}/`;
  }
  const entries = Object.entries<string>(config.exports).map((
    [name, path],
  ) => [name.replace(".", "@jizai/jizai"), path]);
  for (const [name = "", path = ""] of entries) imports[name] = path.replace("./", "../../");
  const map = `${project.path}/imports.json`;
  const program = `${project.path}/main.ts`;
  const lock = `${project.path}/deno.lock`;
  const { workspace: _, ...versions } = JSON.parse(await Deno.readTextFile("deno.lock"));
  await Deno.writeTextFile(lock, JSON.stringify(versions)); // without the links of this repository
  await Deno.writeTextFile(map, JSON.stringify({ imports }));
  await Deno.writeTextFile(program, entries.map(([name]) => `import "${name}";\n`).join(""));
  const options = ["--quiet", "--no-config", "--import-map", map, "--lock", lock, "--frozen"];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["check", ...options, program] })
    .output();
  assertEquals([success, new TextDecoder().decode(stderr)], [true, ""]);
});
