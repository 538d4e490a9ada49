/**
 * The rest of a JSON text whose beginning was sent before the value was known.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";

/** Creates a counter of brackets. It takes a text in pieces, and returns the number of brackets that are open after each. */
export function depthCounter(): (piece: string) => number {
  let depth = 0;
  let isString = false;
  let isEscaped = false;
  return (piece) => {
    for (const char of piece) {
      if (isEscaped) isEscaped = false;
      else if (isString) {
        isEscaped = char === "\\";
        isString = char !== '"';
      } else if (char === '"') isString = true;
      else if (char === "{" || char === "[") depth++;
      else if (char === "}" || char === "]") depth--;
    }
    return depth;
  };
}

/**
 * Returns the text that completes `sent` to the value of the JSON text `answer`: `held`, if it does, or one that repeats the members of the object. Returns
 * undefined if no text does.
 */
export function continuationOf(sent: string, held: string, answer: string): string | undefined {
  const value = parsed(answer);
  if (value === undefined) return answer.startsWith(sent) ? answer.slice(sent.length) : undefined;
  const target = canonicalJson(value);
  const completes = (rest: string) => canonicalJson(parsed(sent + rest)) === target;
  const whole = JSON.stringify(value);
  if (completes(held)) return held;
  if (whole.startsWith(sent)) return whole.slice(sent.length);
  const closing = closingOf(sent);
  const inner = closing.slice(0, -1);
  for (const ending of endings(value)) {
    const begun = parsed(sent + ending + closing);
    if (begun === undefined) continue;
    const missing = Array.isArray(value) && Array.isArray(begun) ? value.slice(begun.length) : value;
    const members = JSON.stringify(missing).slice(1);
    const rest = [`${ending}${inner},${members}`, `${ending}${inner}${members}`].find(completes);
    if (rest !== undefined) return rest;
  }
  return undefined;
}

/** Returns the value of a JSON text; undefined for another text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the brackets that close those which `text` leaves open. */
function closingOf(text: string): string {
  let closing = "";
  for (const [bracket] of text.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, "").matchAll(/[[\]{}]/g)) {
    if (bracket === "{") closing = `}${closing}`;
    else if (bracket === "[") closing = `]${closing}`;
    else closing = closing.slice(1);
  }
  return closing;
}

/** The ends of a text that breaks off within a string, also within an escape. */
const stringEnds = ["", "\\", "0", "00", "000", "0000"].map((escape) => `${escape}"`);

/** Returns texts that may complete the last key or value of a text. Those of a value come first, so that `value` replaces it. */
function endings(value: unknown): readonly string[] {
  const names = Object.keys(Object(value)).map((name) => JSON.stringify(name)); // an own name completes the key of a member
  const keys = names.flatMap((name) => Array.from(name, (_, index) => name.slice(index)));
  const literals = ["true", "false", "null"].flatMap((word) => Array.from(word, (_, index) => word.slice(index)));
  return ["", ...stringEnds, ...literals, "0", ...[...keys, ...stringEnds, ""].map((end) => `${end}:null`), '"":null'];
}
