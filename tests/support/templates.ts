/**
 * The templates of `jizai create`: the folders of `examples/templates`, and the JSON file in which the command line carries them, since a package from JSR has
 * no folders. Run to write it:
 *
 * ```sh
 * deno task templates
 * ```
 *
 * @module
 */
import { filesIn, list } from "./source.ts";

/** The file that contains the templates. */
export const target = "src/cli/templates.json";

const root = "examples/templates";

if (import.meta.main) await Deno.writeTextFile(target, await templatesAsJson());

/** Whether npm or another tool wrote a file. */
function isGenerated(path: string): boolean {
  return /(^|\/)(\.|node_modules\/|dist\/)/.test(path);
}

/** Returns the text of the file: folder, path, and text. */
export async function templatesAsJson(): Promise<string> {
  const folders = await Promise.all((await list(root)).map(async (name) => {
    const folder = `${root}/${name}`;
    const files = (await filesIn(folder)).map((path) => path.slice(folder.length + 1)).filter((path) =>
      !isGenerated(path)
    );
    const texts = files.map(async (path) => [path, await Deno.readTextFile(`${folder}/${path}`)]);
    return [name, Object.fromEntries(await Promise.all(texts))];
  }));
  return `${JSON.stringify(Object.fromEntries(folders), null, 2)}\n`;
}
