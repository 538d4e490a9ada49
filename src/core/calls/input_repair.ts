/**
 * Repairs of inputs: a nested value that the model wrote as a JSON string, and null for an optional field.
 *
 * @module
 */
import type { Issue, Schema, Validation } from "../agent/schema.ts";

/** The number of repairs in a row: a value in a JSON string may need one of its own. */
const maxRounds = 5;

/**
 * Returns the input with the repairs without which the schema rejects it, if it accepts the repaired input; else the same input. Only the values that the schema
 * names in its issues change. Returns a promise only for an asynchronous schema. Never throws and never rejects: the parser of the input reports a failure of the schema.
 */
export function repairInput(schema: Schema, input: unknown): unknown {
  if (!mayBeRepaired(input, 0)) return input;
  const attempt = (candidate: unknown, rounds: number): unknown => {
    const read = ({ issues }: Validation<unknown>): unknown => {
      if (!issues) return candidate;
      const repaired = rounds > 0 ? issues.reduce(repairAt, candidate) : candidate;
      return repaired === candidate ? input : attempt(repaired, rounds - 1);
    };
    const validated = schema["~standard"].validate(candidate);
    return "then" in validated ? Promise.resolve(validated).then(read).catch(() => input) : read(validated);
  };
  try {
    return attempt(input, maxRounds);
  } catch {
    return input;
  }
}

/** True if a value contains null, or a text that may be JSON. Most inputs do not, and are validated only once. */
function mayBeRepaired(value: unknown, depth: number): boolean {
  if (value === null) return depth > 0;
  if (typeof value === "string") return /^\s*[[{]/.test(value);
  return typeof value === "object" && depth < 100 &&
    Object.values(value).some((each) => mayBeRepaired(each, depth + 1));
}

/** Stands for a field that is left out. */
const omitted = Symbol("omitted");

function repairAt(input: unknown, { path = [] }: Issue): unknown {
  const repaired = replaceAt(input, path.map((key) => typeof key === "object" ? key.key : key));
  return repaired === omitted ? input : repaired;
}

/** Returns a copy in which the value at a path is repaired, or the same value if there is nothing to repair. */
function replaceAt(value: unknown, [key, ...rest]: readonly PropertyKey[]): unknown {
  if (key === undefined) return repaired(value);
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  const entries = new Map<PropertyKey, unknown>(Object.entries(value));
  const inner = entries.get(String(key));
  const replaced = replaceAt(inner, rest);
  if (replaced === inner || (replaced === omitted && Array.isArray(value))) return value;
  if (replaced === omitted) entries.delete(String(key));
  else entries.set(String(key), replaced);
  return Array.isArray(value) ? [...entries.values()] : Object.fromEntries(entries);
}

function repaired(value: unknown): unknown {
  if (value === null) return omitted;
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
