/**
 * The documentation of this project, split into passages: the sections of its READMEs and guides, and the docblocks of its exports.
 *
 * @module
 */

/** The READMEs and guides, or the docblocks in the code. */
export type Place = "guide" | "code";

/** A section of a README or a guide, or a docblock. */
export interface Passage {
  /** The place, such as `README.md#sessions` or `src/core/agent.ts#agent`. */
  readonly id: string;
  readonly place: Place;
  readonly title: string;
  readonly text: string;
}

/** The READMEs that users read: that of the project, and those of the rooms. */
const readmes = [
  "README.md",
  "src/core/runs.md",
  ...["src/http", "src/model", "src/session", "src/wire", "middleware", "examples"].map((folder) =>
    `${folder}/README.md`
  ),
];

/** Reads all passages of the project at `root`. */
export async function readDocs(root: URL): Promise<readonly Passage[]> {
  const read = (path: string) => Deno.readTextFile(new URL(path, root));
  const passages = [
    ...[...readmes, ...await guidesIn(root)].map(async (path) => sections(path, await read(path))),
    ...["mod.ts", "src/testing/mod.ts"].map((entry) => exportedBy(root, entry)),
    ...(await filesIn(root, "middleware", ".ts")).filter(isPublic).map(async (path) =>
      docblocks(path, await read(path))
    ),
  ];
  return (await Promise.all(passages)).flat();
}

/** Returns the docblocks of a public entry, and of the names that it exports from other modules. */
async function exportedBy(root: URL, entry: string): Promise<Passage[]> {
  const url = new URL(entry, root);
  const text = await Deno.readTextFile(url);
  const found = text.matchAll(/^export (?:type )?(?:\*|\{([^}]*)\}) from "(\..+)";$/gm).map(
    async ([, list, path = ""]) => {
      const module = new URL(path, url);
      const all = docblocks(module.href.slice(root.href.length), await Deno.readTextFile(module));
      const names = list?.split(",").map((name) => name.trim().replace("type ", ""));
      return names ? all.filter(({ title }) => names.includes(title)) : all;
    },
  );
  return [...docblocks(entry, text), ...(await Promise.all(found)).flat()];
}

/** Whether a module of `middleware` is one that users import, such as `middleware/limits/budget.ts`. */
function isPublic(path: string): boolean {
  return /^middleware\/\w+\/\w+(\/mod)?\.ts$/.test(path);
}

/** Returns the guides of the site. The skill for coding agents repeats them. */
async function guidesIn(root: URL): Promise<string[]> {
  return (await filesIn(root, "examples/guides", ".md")).filter((path) => !path.endsWith("/SKILL.md"));
}

/** Returns the files in a folder and its subfolders whose names end with `ending`. */
async function filesIn(root: URL, folder: string, ending: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(folder, root)));
  const paths = await Promise.all(entries.map(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesIn(root, path, ending) : path.endsWith(ending) ? [path] : [];
  }));
  return paths.flat().sort();
}

/** Splits a README into its sections. */
export function sections(path: string, markdown: string): Passage[] {
  const parts: { title: string; lines: string[] }[] = [];
  let fenced = false;
  for (const line of markdown.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    const heading = fenced ? undefined : line.match(/^#{1,3} (.+)$/)?.[1];
    if (heading) parts.push({ title: heading, lines: [] });
    else parts.at(-1)?.lines.push(line);
  }
  return parts.map(({ title, lines }) => ({
    id: `${path}#${anchor(title)}`,
    place: "guide",
    title,
    text: lines.join("\n").trim(),
  }));
}

function anchor(title: string): string {
  return title.toLowerCase().replace(/[^\w\s-]/g, "").replaceAll(" ", "-");
}

/** Matches a docblock at the margin, the line after it, and the indented lines that follow. */
const block = /^\/\*\*([\s\S]*?)\*\/\n(.*)((?:\n(?: .*)?)*)/gm;
const exported = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/;
const member = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n\s+(?:readonly )?(\w+)\??[:(]/g;

/** The length in characters below which a docblock only repeats its name, such as "A place in the lifecycle." */
const tooShort = 40;

/** Returns the docblocks of a module's exports with those of their members, and that of the module if it has several lines. */
export function docblocks(file: string, source: string): Passage[] {
  return source.matchAll(block).flatMap(([, comment = "", declaration = "", body = ""]): Passage[] => {
    const name = declaration.match(exported)?.[1];
    const about = plain(comment);
    if (!name) return about.includes("\n") ? [{ id: file, place: "code", title: file, text: about }] : [];
    const members = body.matchAll(member).map(([, comment = "", name]) =>
      `- \`${name}\`: ${plain(comment).replace("\n", " ")}`
    );
    const text = [about, [...members].join("\n")].join("\n\n").trim();
    return text.length < tooShort ? [] : [{ id: `${file}#${name}`, place: "code", title: name, text }];
  }).toArray();
}

/** Removes the stars and the tags of a comment. */
function plain(comment: string): string {
  return comment.replaceAll(/^\s*\*? ?/gm, "").replaceAll(/^@\w+$/gm, "").trim();
}
