/**
 * The guides of this project, split into their sections and indexed by MiniSearch.
 *
 * @module
 */
import { tool, ToolError } from "@jizai/jizai";
import MiniSearch from "minisearch";
import * as z from "zod";

/** A section of a guide or a README. */
export interface Section {
  /** The place, such as `examples/guides/ask_a_person.md#several-questions`. */
  readonly id: string;
  /** The title of the page. */
  readonly page: string;
  readonly title: string;
  readonly text: string;
}

/** The READMEs that users read beside the guides. */
const readmes = ["README.md", "middleware/README.md", "src/http/README.md", "src/session/README.md"];

/** Reads the sections of the guides and READMEs of the project at `root`. */
export async function readGuides(root: URL): Promise<readonly Section[]> {
  const guides = await Array.fromAsync(Deno.readDir(new URL("examples/guides", root)));
  const paths = guides.flatMap(({ name }) => name.endsWith(".md") ? [`examples/guides/${name}`] : []).sort();
  const texts = [...paths, ...readmes].map(async (path) =>
    sectionsOf(path, await Deno.readTextFile(new URL(path, root)))
  );
  return (await Promise.all(texts)).flat();
}

/** Splits a page into its sections. The first one has the title of the page. */
export function sectionsOf(path: string, markdown: string): Section[] {
  const parts: { title: string; lines: string[] }[] = [];
  let fenced = false;
  for (const line of markdown.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    const heading = fenced ? undefined : line.match(/^#{1,3} (.+)$/)?.[1];
    if (heading) parts.push({ title: heading, lines: [] });
    else parts.at(-1)?.lines.push(line);
  }
  const page = parts[0]?.title ?? path;
  return parts.map(({ title, lines }, index) => ({
    id: index === 0 ? path : `${path}#${anchorOf(title)}`,
    page,
    title,
    text: lines.join("\n").trim(),
  }));
}

function anchorOf(title: string): string {
  return title.toLowerCase().replace(/[^\w\s-]/g, "").replaceAll(" ", "-");
}

/** The hits of `search_guides`, the best first. */
export const hits = z.array(z.object({ id: z.string(), title: z.string(), text: z.string() }));

/** Words that nearly every question has. */
const stopWords = new Set(
  "a an the i my me you do does is are can how what which when to of for in on with it and or".split(" "),
);

/** Creates the tool that searches the guides. */
export function searchTool(sections: readonly Section[]) {
  const index = new MiniSearch<Section>({
    fields: ["title", "page", "text"],
    storeFields: ["title", "page", "text"],
    processTerm: (term) =>
      stopWords.has(term.toLowerCase()) ? null : term.toLowerCase().replace(/(?<=\w{3})(?:ies|es|s|ing|ed)$/, ""),
    searchOptions: { boost: { title: 3, page: 2 }, prefix: (term) => term.length > 3, fuzzy: 0.15 },
  });
  index.addAll(sections);
  return tool({
    name: "search_guides",
    description:
      "Searches the guides of Jizai, the framework of this assistant, and returns the sections that fit best",
    input: z.object({ query: z.string().max(200) }),
    readOnly: true,
    execute({ query }): z.infer<typeof hits> {
      const found = index.search(query).slice(0, 3);
      if (found.length === 0) throw new ToolError(`Cannot find "${query}" in the guides; expected other words`);
      return found.map(({ id, page, title, text }) => ({
        id,
        title: page === title ? page : `${page}: ${title}`,
        text: `${text}`.slice(0, 2_000),
      }));
    },
  });
}
