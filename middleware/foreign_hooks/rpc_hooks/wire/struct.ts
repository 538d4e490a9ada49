/**
 * Schemas that read JSON as Go does.
 *
 * @module
 */
import * as z from "zod";
import { isObject } from "../../kit/fields.ts";

/** Accepts an object as Go reads it: the case of names is ignored, null is absent, unknown fields are ignored. */
export function struct<S extends z.core.$ZodShape>(shape: S): z.core.$ZodType<z.output<z.ZodObject<S>>> {
  const names = new Map(Object.keys(shape).map((name) => [name.toLowerCase(), name]));
  return z.preprocess((value) => {
    if (!isObject(value)) return value ?? {};
    return Object.fromEntries(
      Object.entries(value).flatMap(([given, field]) => {
        const name = names.get(given.toLowerCase());
        return name === undefined || field === null ? [] : [[name, field]];
      }),
    );
  }, z.object(shape));
}

/** A string; empty if absent. */
export const text: z.ZodDefault<z.ZodString> = z.string().default("");
/** A boolean; false if absent. */
export const flag: z.ZodDefault<z.ZodBoolean> = z.boolean().default(false);
/** Strings; none if absent. */
export const texts: z.ZodDefault<z.ZodArray<z.ZodString>> = z.array(z.string()).default([]);
/** Any fields; none if absent. */
export const fields: z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodUnknown>> = z.record(z.string(), z.unknown())
  .default({});
