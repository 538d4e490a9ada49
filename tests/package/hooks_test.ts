import { assertEquals } from "@std/assert";

/** The runtimes that npm provides, and Deno, each with the arguments before a program. */
const runtimes = {
  "Node 22": ["npx", "-y", "node@22.23.3"],
  Bun: ["npx", "-y", "bun@1.4.5"],
  Deno: [Deno.execPath(), "run", "--no-prompt", "--allow-run", "--allow-env", "--allow-read"],
};

const program = "dist/hook_program.mjs";
const args = ["bundle", "--quiet", "--output", program, "tests/package/hook_program.ts"];
const bundled = await new Deno.Command(Deno.execPath(), { args }).output();

for (const [runtime, [command = "", ...before]] of Object.entries(runtimes)) {
  Deno.test(`hooks that are processes and commands decide about calls on ${runtime}`, async () => {
    const env = { MOOD: "sorry" };
    const { stdout, stderr } = await new Deno.Command(command, { args: [...before, program], env }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    const denied = "Tool execution denied by approval hook: Dangerous, sorry";
    const printed = [`ok ran ls; denied ${denied}`, "ok ran ls; denied Dangerous, sorry", ""];
    assertEquals([bundled.success, out?.split("\n")], [true, printed], err);
  });
}
