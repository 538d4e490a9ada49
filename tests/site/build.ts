/**
 * Builds the site in `dist/site`, and checks its links. Needs npm, which provides VitePress.
 *
 * ```sh
 * deno task site
 * ```
 *
 * @module
 */
import { configuration } from "../../examples/guides/site.ts";
import { output } from "../package/pack.ts";
import { brokenLinks } from "./links.ts";
import { attached, groupsOf, linked, type Page } from "./pages.ts";

/** The folder of the site. It has only static files. */
export const site = "dist/site";

/** The pages and the configuration, as VitePress reads them. */
const staged = "dist/site_sources";

/** The versions of the packages that build the site. */
const packages = { vitepress: "1.6.4", vue: "3.5.45" };

if (import.meta.main) {
  const pages = await build();
  const broken = await brokenLinks(site);
  if (broken.length > 0) throw new Error(`Cannot publish the site: links are broken:\n${broken.join("\n")}`);
  console.log(`${site}: ${pages} pages, no broken link`);
}

/** Builds the site and returns the number of its pages. */
export async function build(): Promise<number> {
  const groups = await groupsOf({});
  const drafts = groups.flatMap(({ pages }) => pages);
  const addresses = new Map<string, string>(drafts.map(({ source, path }) => [source, path]));
  const files = new Set<string>();
  const pages = drafts.map((draft) => linked(draft, addresses, (path) => files.add(path)));
  await stage(pages, configuration(groups));
  for (const path of files) await copyText(path);
  await output("npm", "install", "--prefix", staged, "--no-audit", "--no-fund", "--loglevel=error");
  await Deno.remove(site, { recursive: true }).catch(() => {}); // it may not exist
  await output("npm", "exec", "--prefix", staged, "--", "vitepress", "build", staged);
  for (const { path, markdown } of pages) await write(`${site}/${path}.md`, markdown);
  return pages.length;
}

/** Writes the pages and the configuration. */
async function stage(pages: readonly Page[], config: object): Promise<void> {
  for await (const { name } of readFolder(staged)) {
    if (name !== "node_modules" && name !== "package-lock.json") {
      await Deno.remove(`${staged}/${name}`, { recursive: true });
    }
  }
  await write(`${staged}/package.json`, JSON.stringify({ private: true, type: "module", dependencies: packages }));
  await write(`${staged}/.vitepress/config.js`, `export default ${JSON.stringify(config, null, 2)};\n`);
  for (const { path, markdown } of pages) await write(`${staged}/${path}.md`, markdown);
}

/** Copies a file that pages link to as text, which every browser shows. */
async function copyText(path: string): Promise<void> {
  await write(`${staged}/public/${attached(path)}`, await Deno.readTextFile(path));
}

async function* readFolder(path: string): AsyncGenerator<Deno.DirEntry> {
  await Deno.mkdir(path, { recursive: true });
  yield* Deno.readDir(path);
}

/** Writes a file, in folders that may not exist. */
export async function write(path: string, text: string): Promise<void> {
  await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(path, text);
}
