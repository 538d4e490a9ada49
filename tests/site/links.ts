/**
 * The link checker: finds links of built pages that lead to no file, or to no element of it.
 *
 * @module
 */
import { posix } from "node:path";
import { filesIn } from "../support/source.ts";

/** Returns the broken links of all pages in a folder, each with the page that has it. */
export async function brokenLinks(folder: string): Promise<string[]> {
  const files = await filesIn(folder);
  const texts = new Map<string, string>();
  for (const file of files) {
    texts.set(posix.relative(folder, file), /\.(html|md)$/.test(file) ? await Deno.readTextFile(file) : "");
  }
  return [...texts].filter(([path]) => path.endsWith(".html")).flatMap(([path, text]) => brokenIn(path, text, texts));
}

/** Returns the broken links of one page. `texts` has the files of the site, and the text of each page. */
export function brokenIn(path: string, text: string, texts: ReadonlyMap<string, string>): string[] {
  const targets = new Set(
    Array.from(text.matchAll(/<(?:a|link|script|img)\b[^>]*?\b(?:href|src)="([^"]*)"/g), (m) => m[1] ?? ""),
  );
  return [...targets].filter((target) => !leadsSomewhere(target, path, texts)).map((target) => `${path}: ${target}`);
}

function leadsSomewhere(target: string, path: string, texts: ReadonlyMap<string, string>): boolean {
  if (/^(https?|mailto|data):/.test(target)) return true;
  const [file = "", anchor] = target.replaceAll("&amp;", "&").split("#");
  const resolved = file === "" ? path : file.startsWith("/") ? file.slice(1) : posix.join(posix.dirname(path), file);
  const found = [resolved, `${resolved}.html`, posix.join(resolved, "index.html")].find((name) => texts.has(name));
  if (found === undefined) return false;
  return !anchor || !found.endsWith(".html") ||
    texts.get(found)?.includes(` id="${decodeURIComponent(anchor)}"`) === true;
}
