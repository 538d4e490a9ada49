import { assertEquals } from "@std/assert";

/** Hooks and clients with the types of other packages, passed to the adapters. */
const folder = new URL("../types/", import.meta.url).pathname;

for await (const { name } of Deno.readDir(folder)) {
  if (!name.endsWith(".ts")) continue;

  // The packages have a lock of their own, because Deno downloads all packages of a lock.
  Deno.test(`the adapter of ${name.replace(".ts", "")} accepts values with the types of the original package`, async () => {
    const args = ["--no-config", "--import-map", `${folder}imports.json`, "--lock", `${folder}deno.lock`, "--frozen"];
    const check = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", ...args, folder + name] });
    const { success, stderr } = await check.output();
    assertEquals([success, new TextDecoder().decode(stderr)], [true, ""]);
  });
}
