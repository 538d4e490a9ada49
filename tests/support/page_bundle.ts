/**
 * The bundle of the playground's page: its sources, and how it is made. Run to write it:
 *
 * ```sh
 * deno task playground
 * ```
 *
 * @module
 */
import { filesIn } from "./source.ts";

/** The module that contains the bundle. */
export const target = "src/playground/bundle.ts";

const folder = "src/playground/page";
const entry = `${folder}/main.tsx`;

if (import.meta.main) {
  const text = await buildPage();
  await Deno.writeTextFile(target, text);
  console.log(`${target}: ${Math.round(new TextEncoder().encode(text).length / 1000)} KB`);
}

/** Checks and bundles the page, and returns the text of the module that contains it. */
export async function buildPage(): Promise<string> {
  const options = ["--quiet", "--config", `${folder}/deno.json`, "--frozen"];
  await run("check", ...options, entry);
  const bundle = await run("bundle", ...options, "--minify", "--platform", "browser", entry);
  // in a script element, a comment or an end tag would end the script
  const script = bundle.trim().replaceAll("<!--", "<\\x21--").replaceAll(
    /<\/(?=script)/gi,
    "<\\/",
  );
  const style = (await Deno.readTextFile(`${folder}/style.css`)).replace(/\s+/g, " ").trim();
  return `// deno-fmt-ignore-file
/**
 * The script and the style of the page. \`deno task playground\` writes this file.
 *
 * @module
 */

/** The digest of the files that the bundle is made from. */
export const sources = "${await digestOfSources()}";

/** The style. */
export const style = ${JSON.stringify(style)};

/** The script. */
export const script = ${JSON.stringify(script)};
`;
}

/** Runs a command of Deno and returns its output. */
async function run(...args: readonly string[]): Promise<string> {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args: [...args], stderr: "inherit" }).output();
  if (!success) throw new Error(`Cannot build the page: \`deno ${args[0]}\` failed`);
  return new TextDecoder().decode(stdout);
}

/** Returns the SHA-256 digest of the sources of the page, which include the lock of its packages. */
export async function digestOfSources(): Promise<string> {
  const texts = await Promise.all((await filesOfPage()).map(async (path) => [path, await Deno.readTextFile(path)]));
  const bytes = new TextEncoder().encode(JSON.stringify(texts));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the paths of the sources of the page. */
export function filesOfPage(): Promise<string[]> {
  return filesIn(folder);
}
