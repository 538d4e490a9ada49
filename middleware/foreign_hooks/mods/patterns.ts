/**
 * The selection of hooks: patterns for the names of events, and matchers for their fields.
 *
 * @module
 */
import { isObject } from "../../../src/core/kit.ts";

/** Plain data: the fields of an event, or an answer. */
export type Data = Readonly<Record<string, unknown>>;

// Patterns: a name, `prefix.*`, `*`, and `!` before a name or a prefix.

/** Whether a pattern selects an event. */
export type Selects = (event: string) => boolean;

const validPattern = /^(\*|!?[\w-]+(\.[\w-]+)*(\.\*)?)$/;

/** Compiles a pattern. Throws a `TypeError` for an invalid one. */
export function selectorOf(pattern: unknown): Selects {
  if (typeof pattern !== "string" || !validPattern.test(pattern)) {
    throw new TypeError(
      `Cannot register a hook: expected the name of an event, "*", "prefix.*" or "!name", got ${shown(pattern)}`,
    );
  }
  if (pattern.startsWith("!")) {
    const excluded = selectorOf(pattern.slice(1));
    return (event) => isInStar(event) && !excluded(event);
  }
  if (pattern === "*") return isInStar;
  if (!pattern.endsWith(".*")) return (event) => event === pattern;
  const prefix = pattern.slice(0, -1);
  return (event) => event.startsWith(prefix);
}

/** `*` selects no telemetry, so that a hook which reports each event does not report its own reports. */
function isInStar(event: string): boolean {
  return !event.startsWith("telemetry.");
}

function shown(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : typeof value;
}

// Matchers: a partial of the fields, all of which must hold.

/** Whether a value matches. */
type Test = (value: unknown) => boolean;

/** The number of objects and arrays that a matcher may nest. */
const maxDepth = 8;

/** Compiles a matcher. Throws a `TypeError` for an invalid one. */
export function matcherOf(matcher: unknown): (e: Data) => boolean {
  if (!isObject(matcher) || isRegExp(matcher)) throw invalidMatcher(`an object, got ${shown(matcher)}`);
  return fieldsTest(matcher, 1);
}

function fieldsTest(matcher: Data, depth: number): (e: Data) => boolean {
  if (depth > maxDepth) throw invalidMatcher(`at most ${maxDepth} levels`);
  const tests = Object.entries(matcher).map(([key, expected]) => [key, testOf(expected, depth)] as const);
  return (e) => tests.every(([key, test]) => test(Object.hasOwn(e, key) ? e[key] : undefined));
}

/** Returns the test of a value. An array matches by one of its elements. */
function testOf(matcher: unknown, depth: number): Test {
  const test = elementTest(matcher, depth);
  return (value) => Array.isArray(value) ? value.some((item) => test(item)) : test(value);
}

function elementTest(matcher: unknown, depth: number): Test {
  if (isRegExp(matcher)) return (value) => isScalar(value) && testsText(matcher, String(value));
  if (Array.isArray(matcher)) {
    if (depth >= maxDepth) throw invalidMatcher(`at most ${maxDepth} levels`);
    const tests = matcher.map((each) => testOf(each, depth + 1));
    return (value) => tests.some((test) => test(value));
  }
  if (isObject(matcher)) {
    const test = fieldsTest(matcher, depth + 1);
    return (value) => isObject(value) && test(value);
  }
  if (typeof matcher === "function" || typeof matcher === "symbol") {
    throw invalidMatcher(`data and regular expressions, got a ${typeof matcher}`);
  }
  return (value) => value === matcher;
}

/** Tests from the start, also with the flags `g` and `y`, which remember a position. */
function testsText(pattern: RegExp, text: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(text);
}

function isScalar(value: unknown): boolean {
  return value !== undefined && typeof value !== "object" && typeof value !== "function";
}

/** Regular expressions of another realm are no instances of this one's class. */
function isRegExp(value: unknown): value is RegExp {
  return Object.prototype.toString.call(value) === "[object RegExp]";
}

function invalidMatcher(expected: string): TypeError {
  return new TypeError(`Cannot register a hook: its matcher must be ${expected}`);
}

// Plain data: what crosses between a module and its host is a copy.

/** The levels of plain data. Inputs of tools have at most 100. */
const maxLevels = 150;

/** Returns a copy of plain data. Throws a `TypeError` for a function, a symbol, or data that is nested too deep, such as a circle. */
export function copyOf(value: unknown, level = 0): unknown {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`expected plain data, got a ${typeof value}`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (level > maxLevels) throw new TypeError("expected plain data, got a circle or too many levels");
  if (Array.isArray(value)) return value.map((item) => copyOf(item, level + 1));
  if (!isPlain(value)) return structuredClone(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item, level + 1)]));
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Freezes plain data to every depth. */
export function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const item of Object.values(value)) freeze(item);
  return Object.freeze(value);
}
