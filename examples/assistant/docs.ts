/**
 * The documentation of this project, cut into passages: the sections of its READMEs, and the docblocks of what its modules export.
 *
 * @module
 */

/** The READMEs, or the docblocks in the code. */
export type Place = "guide" | "code";

/** A piece of documentation that stands on its own. */
export interface Passage {
  /** Where it is, such as `README.md#limits` or `src/core/agent.ts#agent`. */
  readonly id: string;
  readonly place: Place;
  readonly title: string;
  readonly text: string;
}

/** The guide: the README of the project, and one for each room. */
const guides = ["", "src/core/run/", "src/http/", "src/model/", "src/session/", "src/wire/", "middleware/", "examples/"]
  .map((folder) => `${folder}README.md`);

/** Reads all passages of the project at `root`. */
export async function readDocs(root: URL): Promise<readonly Passage[]> {
  const files = [
    ...await passedOn(root, "mod.ts"),
    ...await passedOn(root, "src/testing/mod.ts"),
    ...await modulesIn(root, "middleware"),
  ];
  const read = async (path: string) => ({ path, text: await Deno.readTextFile(new URL(path, root)) });
  const documents = await Promise.all(guides.map(read));
  const sources = await Promise.all(Array.from(new Set(files), read));
  return [
    ...documents.flatMap(({ path, text }) => sections(path, text)),
    ...sources.flatMap(({ path, text }) => docblocks(path, text)),
  ];
}

/** A public entry, and the modules from which it passes something on: what else there is concerns the engine alone. */
async function passedOn(root: URL, entry: string): Promise<string[]> {
  const url = new URL(entry, root);
  const imports = (await Deno.readTextFile(url)).matchAll(/ from "(\..+)";$/gm);
  return [entry, ...imports.map(([, path = ""]) => new URL(path, url).href.slice(root.href.length))];
}

/** The modules within a folder. */
async function modulesIn(root: URL, folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(new URL(folder, root)));
  const paths = await Promise.all(entries.map(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? modulesIn(root, path) : path.endsWith(".ts") ? [path] : [];
  }));
  return paths.flat().sort();
}

/** The sections of a README, by heading. */
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

/** A docblock at the margin, the line after it, and those after that which are not at the margin. */
const block = /^\/\*\*([\s\S]*?)\*\/\n(.*)((?:\n(?: .*)?)*)/gm;
const exported = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/;
const member = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n\s+(?:readonly )?(\w+)\??[:(]/g;

/** The docblocks of a module: what it exports, with what the members say, and its own where it says more than a line. */
export function docblocks(file: string, source: string): Passage[] {
  return source.matchAll(block).flatMap(([, comment = "", declaration = "", body = ""]): Passage[] => {
    const name = declaration.match(exported)?.[1];
    const about = plain(comment);
    if (!name) return about.includes("\n") ? [{ id: file, place: "code", title: file, text: about }] : [];
    const members = body.matchAll(member).map(([, said = "", name]) =>
      `- \`${name}\`: ${plain(said).replace("\n", " ")}`
    );
    return [{
      id: `${file}#${name}`,
      place: "code",
      title: name,
      text: [about, [...members].join("\n")].join("\n\n").trim(),
    }];
  }).toArray();
}

/** A comment without its stars and tags. */
function plain(comment: string): string {
  return comment.replaceAll(/^\s*\*? ?/gm, "").replaceAll(/^@\w+$/gm, "").trim();
}
