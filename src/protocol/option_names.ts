/**
 * The check of the names of options, which every factory and the client share.
 *
 * @module
 */

/** Throws a `TypeError` that starts with `operation` if `options` is not a plain object, or has a name that is not in `known`. Names of the engine start with "~". */
export function expectNames(operation: string, options: object, known: readonly string[]): void {
  const kind = Object.prototype.toString.call(options).slice("[object ".length, -1); // not the value, which may be secret
  if (kind !== "Object" && kind !== "Module") {
    throw new TypeError(`${operation}: got ${kind}; expected an object with ${known.join(", ")}`);
  }
  const isStray = ([name, value]: [string, unknown]) =>
    value !== undefined && !known.includes(name) && !name.startsWith("~");
  const [stray] = Object.entries(options).find(isStray) ?? [];
  if (stray !== undefined) {
    throw new TypeError(`${operation}: there is no option "${stray}"; expected one of ${known.join(", ")}`);
  }
}
