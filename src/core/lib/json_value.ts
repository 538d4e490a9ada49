/**
 * Checks that values from application code can be stored and sent as JSON.
 *
 * @module
 */

/** The deepest nesting that is accepted, as for JSON from clients. */
const maxDepth = 100;

/** Throws a `TypeError` that starts with `operation` if `value` cannot be stored as JSON. `toJSON()` is called only if `convert` is true. */
export function expectJson(operation: string, value: unknown, convert = true): void {
  const found = obstacle(value, maxDepth, convert);
  if (found) throw new TypeError(`${operation}: it ${found.why}`, { cause: found.cause });
}

/** A reason why a value is not JSON. */
interface Obstacle {
  readonly why: string;
  readonly cause?: unknown;
}

function obstacle(value: unknown, levels: number, convert: boolean): Obstacle | undefined {
  if (typeof value === "bigint") return { why: "has a BigInt" };
  if (typeof value !== "object" || value === null) return undefined;
  if (levels === 0) return { why: `contains itself, or is nested deeper than ${maxDepth} levels` };
  try {
    const { then, toJSON }: { then?: unknown; toJSON?: unknown } = value; // reading a field is twice as fast as `in`
    if (typeof then === "function") return { why: "has a promise or another thenable; await it" };
    if (typeof toJSON === "function") {
      return convert ? obstacle(toJSON.call(value), levels - 1, convert) : undefined;
    }
    const fields = Object.values(value);
    const type = fields.length === 0 ? typeOf(value) : "Object";
    if (type !== "Object" && JSON.stringify(value) === "{}") {
      return { why: `has a value of type ${type}, which is {} as JSON; expected plain values` };
    }
    for (const inner of fields) {
      const found = obstacle(inner, levels - 1, convert);
      if (found) return found;
    }
  } catch (cause) {
    return { why: "has a getter or toJSON() that throws", cause };
  }
  return undefined;
}

/** Returns the built-in type of an object, such as "Response" or "Map", and "Object" for those of other classes. */
function typeOf(value: object): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}
