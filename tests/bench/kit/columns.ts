/**
 * Text in columns.
 *
 * @module
 */

/** Formats rows as columns: those whose index is in `left` flush left, the others flush right. */
export function columns(rows: readonly (readonly string[])[], left: readonly number[] = [0]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row.map((cell, column) =>
      left.includes(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
    ).join("  ").trimEnd()
  ).join("\n");
}
