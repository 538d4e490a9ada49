export class AssertionError extends Error {
  constructor(message: string, options?: ErrorOptions);
}

export function assert(expr: unknown, msg?: string): asserts expr;
export function assertAlmostEquals(actual: number, expected: number, tolerance?: number, msg?: string): void;
export function assertEquals<T>(actual: T, expected: T, msg?: string): void;
export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T>;
export function assertGreater<T>(actual: T, expected: T, msg?: string): void;
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void;
export function assertInstanceOf<T>(
  actual: unknown,
  expectedType: abstract new (...args: never[]) => T,
  msg?: string,
): asserts actual is T;
export function assertLess<T>(actual: T, expected: T, msg?: string): void;
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void;
export function assertMatch(actual: string, expected: RegExp, msg?: string): void;
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void;
export function assertStrictEquals<T>(actual: unknown, expected: T, msg?: string): asserts actual is T;
export function assertStringIncludes(actual: string, expected: string, msg?: string): void;
export function fail(msg?: string): never;
export function unreachable(reason?: string): never;

export function assertRejects(fn: () => PromiseLike<unknown>, msg?: string): Promise<unknown>;
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  ErrorClass: abstract new (...args: never[]) => E,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;

export function assertThrows(fn: () => unknown, msg?: string): unknown;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  ErrorClass: abstract new (...args: never[]) => E,
  msgIncludes?: string,
  msg?: string,
): E;
