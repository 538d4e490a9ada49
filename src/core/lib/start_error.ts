/**
 * The error of a process that does not start.
 *
 * @module
 */

/** The codes of Node's errors for functions that a runtime declares and does not have. */
const missing: readonly unknown[] = ["ERR_METHOD_NOT_IMPLEMENTED", "ERR_NOT_IMPLEMENTED"];

/** Returns the error to throw for a program that did not start: on a runtime without processes, one that names the runtimes that have them. */
export function startError(program: string, error: unknown): unknown {
  if (!(error instanceof Error && "code" in error && missing.includes(error.code))) return error;
  return new Error(`Cannot start "${program}": this runtime has no processes; expected Deno, Node or Bun`, {
    cause: error,
  });
}
