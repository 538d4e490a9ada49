/**
 * The lines that the default of `onError` writes.
 *
 * @module
 */

/** The arguments of each `console.error`, instead of writing them. */
export interface ConsoleErrors {
  readonly lines: readonly unknown[][];
  /** Brings the console back. */
  readonly restore: () => void;
}

/** Replaces `console.error` until `restore()`. */
export function captured(): ConsoleErrors {
  const lines: unknown[][] = [];
  const { error } = console;
  console.error = (...line: unknown[]) => lines.push(line);
  return { lines, restore: () => console.error = error };
}
