/**
 * Checks that values from application code can be stored and sent as JSON.
 *
 * @module
 */

/** The deepest nesting that is accepted, as for JSON from clients. */
const maxDepth = 100;

/** The parts of the check that not every value needs. */
interface JsonCheck {
  /** True if `toJSON()` is called. Default: true. */
  readonly convert?: boolean;
  /** True if an object whose content JSON leaves out, such as a Map, is refused. Default: false. */
  readonly whole?: boolean;
}

/** Throws a `TypeError` that starts with `operation` if `value` cannot be stored as JSON. */
export function expectJson(operation: string, value: unknown, check: JsonCheck = {}): void {
  const found = obstacle(value, maxDepth, check);
  if (!found) return;
  ignoreRejections(value);
  throw new TypeError(`${operation}: it ${found.why}`, { cause: found.cause });
}

/** A reason why a value is not JSON. */
interface Obstacle {
  readonly why: string;
  readonly cause?: unknown;
}

function obstacle(value: unknown, levels: number, check: JsonCheck): Obstacle | undefined {
  if (typeof value === "bigint") return { why: "has a BigInt" };
  if (typeof value !== "object" || value === null) return undefined;
  if (levels === 0) return { why: `contains itself, or is nested deeper than ${maxDepth} levels` };
  try {
    const { then, toJSON }: { then?: unknown; toJSON?: unknown } = value; // reading a field is twice as fast as `in`
    if (typeof then === "function") return { why: "has a promise or another thenable; await it" };
    if (typeof toJSON === "function") {
      return check.convert === false ? undefined : obstacle(toJSON.call(value), levels - 1, check);
    }
    const fields = Object.values(value);
    if (check.whole && fields.length === 0 && !isEmpty(value) && JSON.stringify(value) === "{}") {
      return { why: `has a value of type ${typeOf(value)}, which is {} as JSON; expected plain values` };
    }
    for (const inner of fields) {
      const found = obstacle(inner, levels - 1, check);
      if (found) return found;
    }
  } catch (cause) {
    return { why: "has a getter or toJSON() that throws", cause };
  }
  return undefined;
}

/** Keeps promises in a value that nothing awaits from ending the process when they reject. */
export function ignoreRejections(value: unknown, seen: Set<unknown> = new Set()): void {
  if (value instanceof Promise) value.catch(() => {});
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  for (const { value: inner } of Object.values(Object.getOwnPropertyDescriptors(value))) ignoreRejections(inner, seen);
}

/** Whether an object without fields has no other content. */
function isEmpty(value: object): boolean {
  return typeOf(value) === "Object" || Array.isArray(value) || ArrayBuffer.isView(value);
}

/** Returns the built-in type of a value, such as "Null", "String" or "Map", and "Object" for objects of other classes. */
export function typeOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}
