/**
 * The site as plain text for language models: a Markdown file beside each page, `llms.txt` and `llms-full.txt`.
 *
 * @module
 */
import type { Group, Page } from "./pages.ts";

/** Returns a page without what only browsers show: its frontmatter, its diagrams, its anchors. */
export function plainPage({ markdown }: Page): string {
  return markdown.replace(/^---\n[^]*?\n---\n+/, "")
    .replace(/^<div class="onion">\n[^]*?^<\/div>\n+/gm, "")
    .replace(/^<\/?div.*>\n+/gm, "")
    .replace(/ \{#[\w.-]+\}$/gm, "")
    .replaceAll("```ts ignore", "```ts")
    .replaceAll("&lt;", "<")
    .trim() + "\n";
}

/** Returns `llms.txt`: what the project is, and every page with its first sentence. */
export function indexText(groups: readonly Group[]): string {
  const lists = groups.map(({ title, pages }) => {
    const lines = pages.map((page) => `- [${page.title.replaceAll("`", "")}](${page.path}.md): ${page.description}`);
    return `## ${title}\n\n${lines.join("\n")}`;
  });
  const intro = [
    "# Jizai",
    "> A TypeScript framework for LLM agents at the edge. An agent is a fetch handler that streams its events over SSE, and every point of a run is an onion of (ctx, next) hooks. It runs on Deno, Node, Bun and Cloudflare Workers.",
    "[SKILL.md](SKILL.md) is a summary for coding agents, and [llms-full.txt](llms-full.txt) has all guides and concepts.",
  ];
  return [...intro, ...lists].join("\n\n") + "\n";
}

/** The groups that `llms-full.txt` leaves out: their pages are read one at a time. */
const looked = ["Reference", "In depth"];

/** Returns `llms-full.txt`: all guides, concepts and pages of middleware. */
export function fullText(groups: readonly Group[]): string {
  const pages = groups.filter(({ title }) => !looked.includes(title)).flatMap(({ pages }) => pages);
  return pages.map((page) => `<!-- ${page.path}.md -->\n\n${plainPage(page)}`).join("\n");
}
