/**
 * The pages of the site: guides and READMEs, with links that lead from page to page.
 *
 * @module
 */
import { posix } from "node:path";
import { type Entry, sections } from "../../examples/guides/site.ts";

/** A page: Markdown whose links lead to files of the site. */
export interface Page extends Entry {
  /** The first sentence of the page. */
  readonly description: string;
  readonly markdown: string;
}

/** A page as it is written: its links lead to files of the repository. */
export interface Draft extends Page {
  /** The file that the page is made from. Links are relative to it. */
  readonly source: string;
}

/** The pages of a group of the sidebar. */
export interface Group {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** Returns the address of a file that a page links to, and that is no page: a picture, or its text, which every browser shows. */
export function attached(path: string): string {
  return /\.(png|svg)$/.test(path) ? `pictures/${posix.basename(path)}` : `source/${path}.txt`;
}

/** Returns the address of the page that a file of Markdown becomes, without its ending. */
export function addressOf(source: string): string {
  if (source === "middleware/README.md") return "middleware/index";
  if (source === "examples/README.md") return "manual/examples";
  const room = source.match(/^src\/(\w+)\/(\w+)\.md$/);
  if (room) return `manual/${room[2] === "README" ? room[1] : room[2]?.toLowerCase()}`;
  return source.replace(/^examples\/guides\//, "").replace(/\.md$/, "");
}

/** Reads a file of Markdown. */
export async function draftOf(source: string): Promise<Draft> {
  const markdown = await Deno.readTextFile(source);
  return { source, path: addressOf(source), markdown, ...titleOf(markdown) };
}

/** Returns the title of a page, and its first sentence, from its text. */
export function titleOf(markdown: string): { title: string; description: string } {
  const title = markdown.match(/^# (.+)$/m)?.[1] ?? "";
  const [first = ""] = markdown.replace(/^---\n[^]*?\n---\n/, "").split(/\n{2,}/)
    .filter((block) => /^[A-Z`[*]/.test(block.trim()));
  const plain = first.replace(/\s+/g, " ").replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "").trim();
  return { title, description: plain.match(/^.*?[.!?:](?= |$)/)?.[0].replace(/:$/, ".") ?? plain };
}

/** Reads the drafts of all sections. `generated` has the pages of a folder that are made by programs. */
export async function groupsOf(
  generated: Readonly<Record<string, readonly Draft[]>>,
): Promise<{ readonly title: string; readonly pages: readonly Draft[] }[]> {
  return await Promise.all(sections.map(async ({ title, files = [], generated: folder }) => ({
    title,
    pages: [...await Promise.all(files.map(draftOf)), ...folder ? generated[folder] ?? [] : []],
  })));
}

/** Code, or a link: its label, and its target. */
const codeOrLink = /^```[^]*?^```$|(!?\[(?:`[^`\n]*`|[^\]`])*\])\(([^)\s]+)\)|`[^`\n]+`/gm;

/** Returns the relative links of a text: outside of code, to no other host. */
export function linksIn(markdown: string): string[] {
  return Array.from(markdown.matchAll(codeOrLink), ([, , target = ""]) => target)
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target));
}

/**
 * Makes the links of a draft lead to pages. `pages` has the address of the page of a file. A link that begins with `/` is one from the root of the repository. Reports files that are linked to
 * and that are no pages to `attach`.
 */
export function linked(draft: Draft, pages: ReadonlyMap<string, string>, attach: (path: string) => void): Page {
  const { source, path } = draft;
  const from = posix.dirname(path);
  const lead = (target: string): string => {
    if (/^([a-z]+:|#)/.test(target)) return target;
    const [file = "", anchor] = target.split("#");
    const resolved = posix.join(file.startsWith("/") ? "." : posix.dirname(source), file).replace(/^\/|\/$/g, "");
    const page = pages.get(resolved);
    if (page === undefined) attach(resolved);
    const relative = posix.relative(from, page === undefined ? attached(resolved) : `${page}.md`);
    return `${relative.startsWith(".") ? relative : `./${relative}`}${page && anchor ? `#${anchor}` : ""}`;
  };
  const markdown = draft.markdown.replace(
    codeOrLink,
    (whole: string, label?: string, target?: string) => label && target ? `${label}(${lead(target)})` : whole,
  );
  return { ...draft, markdown };
}
