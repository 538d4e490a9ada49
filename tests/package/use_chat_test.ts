/**
 * Builds the page of `examples/use_chat` as a project of Vite or esbuild does, with its packages from npm.
 */
import { assertStringIncludes } from "@std/assert";
import { pack } from "./pack.ts";

const bundlers = ["esbuild@0.25", "vite@7"];

Deno.test("the page of useChat builds with esbuild and with Vite", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (const name of ["page.jsx", "package.json"]) {
      await Deno.copyFile(`examples/use_chat/${name}`, `${folder}/${name}`);
    }
    await Deno.writeTextFile(`${folder}/index.html`, `<script type="module" src="/page.jsx"></script>`);
    const packages = [await Deno.realPath(await pack()), ...bundlers];
    await run(folder, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...packages);
    await run(folder, "npx", "esbuild", "page.jsx", "--bundle", "--outfile=page.js", "--log-level=error");
    assertStringIncludes(await Deno.readTextFile(`${folder}/page.js`), "useChat");
    assertStringIncludes(await run(folder, "npx", "vite", "build"), "dist/assets/");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Runs a program in a folder, and returns its output. */
async function run(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args: [...args], cwd }).output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (!success) throw new Error(`Cannot run ${program} ${args.join(" ")}: it failed:\n${out}${err}`);
  return `${out}`;
}
