import { assertEquals } from "@std/assert";

/** Where hooks are handed to adapters with the types of the packages that they are written for. */
const folder = new URL("../types/", import.meta.url).pathname;

for await (const { name } of Deno.readDir(folder)) {
  if (!name.endsWith(".ts")) continue;

  // The packages have a lock of their own, without what they bring only to be run: Deno downloads whatever is in a lock, for whatever it runs.
  Deno.test(`what ${name.replace(".ts", "")}() takes and gives has the types of its home`, async () => {
    const args = ["--no-config", "--import-map", `${folder}imports.json`, "--lock", `${folder}deno.lock`, "--frozen"];
    const check = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", ...args, folder + name] });
    const { success, stderr } = await check.output();
    assertEquals([success, new TextDecoder().decode(stderr)], [true, ""]);
  });
}
