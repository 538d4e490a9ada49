/**
 * Changes of a structured answer that is streamed. Plain JSON data.
 *
 * @module
 */
import type { Json } from "./part.ts";

/** The way to a value: keys of objects, and indexes of arrays. Empty for the whole answer. */
export type OutputPath = readonly (string | number)[];

/** One change of a partial value: a new value at a path, or text to append to the string at a path. */
export type OutputChange =
  | { readonly path: OutputPath; readonly value: Json }
  | { readonly path: OutputPath; readonly text: string };
