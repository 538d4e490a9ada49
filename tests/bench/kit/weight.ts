/**
 * The weight of a bundle by folder.
 *
 * @module
 */
import { charactersOf } from "./bundle.ts";
import { columns } from "./columns.ts";
import { placeOf } from "./place.ts";

/** Lists the minified bytes of a bundle by folder, or also by file. Those of the bundle `without` are subtracted. */
export async function weightOf(
  name: string,
  without: string | undefined,
  detail: "folders" | "files",
): Promise<string> {
  const bytes = bytesByFolder(
    await charactersOf(name),
    without === undefined ? new Map() : await charactersOf(without),
  );
  const total = [...bytes.values()].reduce((sum, { own }) => sum + own, 0);
  const rows = [...bytes].toSorted(([, a], [, b]) => b.own - a.own).flatMap(([folder, { own, files }]) => [
    [folder, `${own}`, `${(own / total * 100).toFixed(1)} %`],
    ...detail === "folders"
      ? []
      : files.toSorted((a, b) => b[1] - a[1]).map(([file, own]) => [`  ${file}`, `${own}`, ""]),
  ]);
  const beyond = without === undefined ? "" : ` beyond ${without}`;
  return columns([[`${name}${beyond}`, "bytes", "share"], ["in all", `${total}`, ""], ...rows]);
}

/** Subtracts the characters of another bundle by source, and groups the rest by folder. The characters of minified code are ASCII: one byte each. */
function bytesByFolder(characters: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>) {
  const folders = new Map<string, { own: number; readonly files: [string, number][] }>();
  for (const source of new Set([...characters.keys(), ...others.keys()])) {
    const own = (characters.get(source) ?? 0) - (others.get(source) ?? 0);
    if (own === 0) continue;
    const { folder, file } = source === "" ? { folder: "the bundler's own", file: "" } : placeOf(source);
    const entry = folders.get(folder) ?? { own: 0, files: [] };
    folders.set(folder, entry);
    entry.own += own;
    entry.files.push([file.slice(folder.length + 1), own]);
  }
  return folders;
}
