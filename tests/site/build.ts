/**
 * Builds the site in `dist/site`, and checks its links. Needs npm, which provides VitePress.
 *
 * ```sh
 * deno task site
 * ```
 *
 * @module
 */
import { configuration, rank } from "../../examples/guides/site.ts";
import { output } from "../package/pack.ts";
import { cataloguePage, isMiddlewareModule } from "./catalogue.ts";
import { brokenLinks } from "./links.ts";
import { attached, type Draft, type Group, groupsOf, linked } from "./pages.ts";
import { addressOfModule, type DocModule, modulesOf, referenceIndex, referencePage } from "./reference.ts";
import { fullText, indexText, plainPage } from "./texts.ts";
import { kilobytesOf } from "./weights.ts";

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
  const config = JSON.parse((await Deno.readTextFile("deno.json")).replace(/^\s*\/\/.*$/gm, ""));
  const modules = await modulesOf(config);
  const drafts = await groupsOf(await generated(modules));
  const files = new Set<string>();
  const addresses = addressesOf(drafts.flatMap(({ pages }) => pages), modules);
  const groups = drafts.map(({ title, pages }) => ({
    title,
    pages: pages.map((draft) => linked(draft, addresses, (path) => files.add(path))),
  }));
  try {
    await stage(groups);
    for (const path of files) await attach(path);
    await output("npm", "install", "--prefix", staged, "--no-audit", "--no-fund", "--loglevel=error");
    await Deno.remove(site, { recursive: true }).catch(() => {}); // it may not exist
    await output("npm", "exec", "--prefix", staged, "--", "vitepress", "build", staged);
  } finally {
    await clearStaged(); // `deno check` would check its files
  }
  const pages = groups.flatMap((group) => group.pages);
  for (const page of pages) await write(`${site}/${page.path}.md`, plainPage(page));
  await write(`${site}/llms.txt`, indexText(groups));
  await write(`${site}/llms-full.txt`, fullText(groups));
  await Deno.copyFile("examples/guides/SKILL.md", `${site}/SKILL.md`);
  return pages.length;
}

/** Returns the pages that are made from docblocks, by their folder. */
async function generated(modules: readonly DocModule[]): Promise<Record<string, readonly Draft[]>> {
  const [ofMiddleware, others] = [
    modules.filter(isMiddlewareModule),
    modules.filter((each) => !isMiddlewareModule(each)),
  ];
  const weights = await kilobytesOf(ofMiddleware.map(({ name }) => name));
  return {
    middleware: ofMiddleware.map((module) => cataloguePage(module, weights.get(module.name) ?? 0)),
    reference: [referenceIndex(modules), ...others.map(referencePage)],
  };
}

/** Returns the address of the page of each file of Markdown and of each module. */
function addressesOf(drafts: readonly Draft[], modules: readonly DocModule[]): ReadonlyMap<string, string> {
  return new Map([
    ...drafts.filter(({ source }) => source.endsWith(".md")).map(({ source, path }) => [source, path] as const),
    ...modules.map(({ file, name }) => [file, addressOfModule(name)] as const),
  ]);
}

/** Writes the pages and the configuration. */
async function stage(groups: readonly Group[]): Promise<void> {
  await clearStaged();
  await write(`${staged}/package.json`, JSON.stringify({ private: true, type: "module", dependencies: packages }));
  const search = `config.themeConfig.search.options = { miniSearch: { searchOptions: { boostDocument: ${rank} } } };`;
  const config = `const config = ${
    JSON.stringify(configuration(groups), null, 2)
  };\n${search}\nexport default config;\n`;
  await write(`${staged}/.vitepress/config.js`, config);
  await write(`${staged}/.vitepress/theme/index.js`, `export { default } from "vitepress/theme-without-fonts";\n`);
  for (const { pages } of groups) {
    for (const { path, markdown } of pages) await write(`${staged}/${path}.md`, markdown);
  }
}

/** Removes all but the packages, which the next build uses again. */
async function clearStaged(): Promise<void> {
  await Deno.mkdir(staged, { recursive: true });
  for await (const { name } of Deno.readDir(staged)) {
    if (name !== "node_modules" && name !== "package-lock.json") {
      await Deno.remove(`${staged}/${name}`, { recursive: true });
    }
  }
}

/** Copies a file that pages link to. VitePress bundles pictures; a copy stands beside the Markdown of the pages. */
async function attach(path: string): Promise<void> {
  const bytes = await Deno.readFile(path).catch((cause) => {
    throw new Error(`Cannot build the site: a page links to "${path}", which is no file`, { cause });
  });
  const isPicture = attached(path).startsWith("pictures/");
  for (const folder of isPicture ? [staged, `${staged}/public`] : [`${staged}/public`]) {
    await write(`${folder}/${attached(path)}`, bytes);
  }
}

/** Writes a file, in folders that may not exist. */
export async function write(path: string, content: string | Uint8Array): Promise<void> {
  await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeFile(path, typeof content === "string" ? new TextEncoder().encode(content) : content);
}
