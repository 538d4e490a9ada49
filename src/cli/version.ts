/**
 * The version of this package.
 *
 * @module
 */

/** The version of the command line, which created projects depend on. A test compares it with `deno.json`. */
export const version = "0.1.0";
