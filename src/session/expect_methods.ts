/**
 * Checks the database that a caller passes: on a runtime that lacks one, code without types passes nothing.
 *
 * @module
 */

/** Throws a `TypeError` with the message if the value lacks one of the methods. */
export function expectMethods<T extends object>(
  value: T | undefined,
  methods: readonly (keyof T)[],
  message: string,
): void {
  if (methods.some((method) => typeof value?.[method] !== "function")) throw new TypeError(message);
}
