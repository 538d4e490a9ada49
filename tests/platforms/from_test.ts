import { assertEquals } from "@std/assert";

/** The guides that show a program of another framework beside one of this package. */
const guides = new URL("../../examples/guides/from/", import.meta.url);

/** The pinned packages of the other frameworks. They have a lock of their own, because Deno downloads all packages of a lock. */
const packages = new URL("../types/from/", import.meta.url).pathname;

Deno.test("the programs of other frameworks in examples/guides/from compile with their packages", async () => {
  const folder = "dist/from";
  await Deno.mkdir(folder, { recursive: true });
  const files: string[] = [];
  for await (const { name } of Deno.readDir(guides)) {
    const markdown = await Deno.readTextFile(new URL(name, guides));
    const programs = Array.from(markdown.matchAll(/^```ts ignore\n([^]*?)^```$/gm), ([, program = ""]) => program);
    for (const [index, program] of programs.entries()) {
      const file = `${folder}/${name.replace(".md", "")}_${index}.ts`;
      await Deno.writeTextFile(file, program);
      files.push(file);
    }
  }
  const names = files.map((file) => file.slice(folder.length + 1)).sort();
  assertEquals(names, ["ai_sdk_0.ts", "claude_hooks_0.ts", "langchain_0.ts", "tanstack_ai_0.ts"]);
  const options = [
    "--no-config",
    "--import-map",
    `${packages}imports.json`,
    "--lock",
    `${packages}deno.lock`,
    "--frozen",
  ];
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", ...options, ...files],
    env: { NO_COLOR: "1" },
  }).output();
  await Deno.remove(folder, { recursive: true });
  assertEquals([success, new TextDecoder().decode(stderr)], [true, ""]);
});
