/**
 * Profiles as tables.
 *
 * @module
 */
import { columns } from "../kit/columns.ts";
import { byFolder, type Cost } from "./cost.ts";
import type { Load } from "../kit/load.ts";
import type { Profile } from "./profile.ts";

/** The number of functions that are listed. */
const listed = 10;

/** Formats a profile: the costs of each folder, and the most expensive functions. Folders with less than one percent of both costs are summed up. */
export function profileTable({ what, unit }: Load, { time, times, bytes }: Profile): string {
  const sampled = sumOf(times);
  const allocated = sumOf(bytes);
  const timeOf = (part: number) => [`${(part / sampled * 100).toFixed(1)} %`, rounded(part / sampled * time, time)];
  const row = (name: string, [part = 0, size = 0]: Figures) => [name, ...timeOf(part), rounded(size, allocated)];
  const folders = summarized([byFolder(times), byFolder(bytes)], ([part = 0, size = 0]) => {
    return part < sampled / 100 && size < allocated / 100;
  });
  return columns([
    [what, "self time", `µs per ${unit}`, `bytes per ${unit}`],
    row("in all", [sampled, allocated]),
    ...folders.map(([name, figures]) => row(`  ${name}`, figures)),
    ["the most expensive functions", "", "", ""],
    ...times.slice(0, listed).map((cost) => [`  ${nameOf(cost)}`, ...timeOf(cost.self), ""]),
    ["the functions that allocate most", "", "", ""],
    ...bytes.slice(0, listed).map((cost) => [`  ${nameOf(cost)}`, "", "", rounded(cost.self, allocated)]),
  ]);
}

/** Formats the bytes that several cases hold by constructor. Constructors with less than one percent of each are summed up. */
export function heldTable(what: string, cases: readonly (readonly [string, ReadonlyMap<string, number>])[]): string {
  const totals = cases.map(([, bytes]) => [...bytes.values()].reduce((sum, size) => sum + size, 0));
  const rows = summarized(cases.map(([, bytes]) => bytes), (sizes) => {
    return sizes.every((size, index) => Math.abs(size) < (totals[index] ?? 0) / 100);
  });
  const row = (name: string, sizes: Figures) => [name, ...sizes.map((size) => size.toFixed(0))];
  return columns([
    [what, ...cases.map(([name]) => name)],
    row("in all", totals),
    ...rows.toSorted(([, a], [, b]) => (b.at(-1) ?? 0) - (a.at(-1) ?? 0)).map(([name, sizes]) =>
      row(`  ${name}`, sizes)
    ),
  ]);
}

/** The figures of one row, one per case. */
type Figures = readonly number[];

/** Returns the figures of each name, one per case. Those that are small are summed up. */
function summarized(cases: readonly ReadonlyMap<string, number>[], isSmall: (figures: Figures) => boolean) {
  const names = [...new Set(cases.flatMap((figures) => [...figures.keys()]))];
  const rows = names.map((name): [string, Figures] => [name, cases.map((figures) => figures.get(name) ?? 0)]);
  const small = rows.filter(([, figures]) => isSmall(figures));
  const others = cases.map((_, index) => small.reduce((sum, [, figures]) => sum + (figures[index] ?? 0), 0));
  const large = rows.filter(([, figures]) => !isSmall(figures));
  return small.length === 0 ? large : [...large, [`${small.length} others`, others] as const];
}

/** Formats a part of a sum with the digits that suit the sum. */
function rounded(part: number, sum: number): string {
  return part.toFixed(sum < 1 ? 3 : sum < 100 ? 2 : 0);
}

function nameOf({ name, place }: Cost): string {
  return place.file === "" ? name : `${name} in ${place.file}`;
}

function sumOf(costs: readonly Cost[]): number {
  return costs.reduce((sum, { self }) => sum + self, 0);
}
