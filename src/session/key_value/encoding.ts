/**
 * The encoding of texts for databases that accept no zero characters and no lone surrogates.
 *
 * @module
 */

/** A whole number as it is stored: databases add to it. */
const number = /^(0|-?[1-9]\d{0,14})$/;

/** Encodes a text. A whole number stays as it is; other text becomes JSON. */
export function encodeValue(value: string): string {
  return number.test(value) ? value : JSON.stringify(value);
}

/** Decodes a text that `encodeValue()` has encoded. */
export function decodeValue(stored: string): string {
  return number.test(stored) ? stored : JSON.parse(stored);
}

/** Encodes a key. Different keys stay different. */
export function encodeKey(key: string): string {
  return JSON.stringify(key).slice(1, -1);
}

/** Returns the sum of a stored counter and `by`. Throws a `TypeError` if the text is not a whole number. */
export function sumOf(key: string, stored: string | undefined, by: number): number {
  if (stored !== undefined && !number.test(stored)) throw notANumber(key);
  return Number(stored ?? 0) + by;
}

/** Returns the error for a counter whose text is not a whole number. */
export function notANumber(key: string): TypeError {
  return new TypeError(`Cannot increment "${key}": its text is not a whole number`);
}
