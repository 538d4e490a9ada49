/**
 * Checks of options, and the error of a process that does not start.
 *
 * @module
 */
import { typeOf } from "./json.ts";

// Checks of options.

/** The longest time of a timer, in milliseconds: 24 days. A longer one would fire at once. */
const longest = 2 ** 31 - 1;

/** Throws a `RangeError` that starts with `subject` if a timer cannot run for `ms` milliseconds, or if `ms` is 0, unless `zero` is true. */
export function expectTime(subject: string, ms: number, { zero = false }: { readonly zero?: boolean } = {}): void {
  if (typeof ms === "number" && (zero ? ms >= 0 : ms > 0) && ms <= longest) return;
  const least = zero ? "0" : "a positive number up";
  throw new RangeError(`${subject} is ${ms}; expected ${least} to ${longest} milliseconds`);
}

/** Throws a `RangeError` that starts with `operation` if one of `counts`, the values of options by their names, is not a whole number of 1 or more. */
export function expectCount(operation: string, counts: { readonly [name: string]: number }): void {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new RangeError(`${operation}: \`${name}\` is ${value}; expected a whole number of 1 or more`);
  }
}

/** Throws a `TypeError` that starts with `operation` if the option `name` is none of `choices`. */
export function expectChoice(operation: string, name: string, value: unknown, choices: readonly string[]): void {
  if (choices.some((choice) => choice === value)) return;
  const found = typeof value === "string" ? value : typeof value;
  throw new TypeError(`${operation}: \`${name}\` is ${found}; expected ${choices.join(", ")}`);
}

/** Throws a `TypeError` that starts with `operation` if the value of the field `name` is not of the `type`, as `typeOf()` returns it. Undefined passes. */
export function expectType(operation: string, name: string, value: unknown, type: string): void {
  const found = typeOf(value);
  if (value === undefined || found === type || (type === "Function" && found.endsWith(type))) return; // an AsyncFunction is a Function
  throw new TypeError(`${operation}: \`${name}\` is ${found}; expected ${type}`);
}

/** Throws a `TypeError` with the message if the value lacks one of the methods, as a database that code without types does not pass. */
export function expectMethods<T extends object>(
  value: T | undefined,
  methods: readonly (keyof T)[],
  message: string,
): void {
  if (methods.some((method) => typeof value?.[method] !== "function")) throw new TypeError(message);
}

// The error of a process that does not start.

/** The codes of Node's errors for functions that a runtime declares and does not have. */
const missing: readonly unknown[] = ["ERR_METHOD_NOT_IMPLEMENTED", "ERR_NOT_IMPLEMENTED"];

/** Returns the error to throw for a program that did not start: on a runtime without processes, one that names the runtimes that have them. */
export function startError(program: string, error: unknown): unknown {
  if (!(error instanceof Error && "code" in error && missing.includes(error.code))) return error;
  return new Error(`Cannot start "${program}": this runtime has no processes; expected Deno, Node or Bun`, {
    cause: error,
  });
}
