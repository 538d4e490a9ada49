/**
 * The weight of a bundle by folder.
 *
 * @module
 */
import { columns } from "../kit/columns.ts";
import { type Place, placeOf } from "../kit/place.ts";
import { charactersOf } from "./bundle.ts";

/** The bytes of one file in a bundle. The characters of minified code are ASCII: one byte each. */
interface Part extends Place {
  readonly bytes: number;
}

/** Lists the minified bytes of a bundle by folder, or also by file. Those of the bundle `without` are subtracted. */
export async function weightOf(name: string, without: string | undefined, detail: "folders" | "files") {
  const parts = difference(await charactersOf(name), without === undefined ? new Map() : await charactersOf(without));
  const folders = [...Map.groupBy(parts, ({ folder }) => folder)].toSorted(([, a], [, b]) => sumOf(b) - sumOf(a));
  const row = (name: string, bytes: number) => [name, `${bytes}`, `${(bytes / sumOf(parts) * 100).toFixed(1)} %`];
  const files = (parts: readonly Part[]) =>
    parts.toSorted((a, b) => b.bytes - a.bytes).map(({ file, folder, bytes }) => {
      return row(`    ${file.slice(folder.length).replace(/^\//, "")}`, bytes);
    });
  return columns([
    [without === undefined ? name : `${name} beyond ${without}`, "bytes", "share"],
    row("in all", sumOf(parts)),
    ...folders.flatMap((
      [folder, parts],
    ) => [row(`  ${folder}`, sumOf(parts)), ...detail === "files" ? files(parts) : []]),
  ]);
}

/** Subtracts the characters of another bundle by source. */
function difference(bundle: ReadonlyMap<string, number>, without: ReadonlyMap<string, number>): readonly Part[] {
  const sources = [...new Set([...bundle.keys(), ...without.keys()])];
  return sources.map((source) => {
    const place = source === "" ? { folder: "the bundler's own", file: "" } : placeOf(source);
    return { ...place, bytes: (bundle.get(source) ?? 0) - (without.get(source) ?? 0) };
  }).filter(({ bytes }) => bytes !== 0);
}

function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}
