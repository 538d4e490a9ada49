/**
 * Objects as Go reads them.
 *
 * @module
 */
import * as z from "zod";

/** Whether a value has fields. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object of `shape`, as Go reads one: names count in any case, what is null is not said, and what nobody knows is left out. */
export function struct<S extends z.core.$ZodShape>(shape: S): z.ZodType<z.output<z.ZodObject<S>>> {
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

/** A text; empty where it is not said. */
export const text: z.ZodDefault<z.ZodString> = z.string().default("");

/** Yes or no; no where it is not said. */
export const flag: z.ZodDefault<z.ZodBoolean> = z.boolean().default(false);

/** Texts; none where they are not said. */
export const texts: z.ZodDefault<z.ZodArray<z.ZodString>> = z.array(z.string()).default([]);

/** Any fields; none where they are not said. */
export const fields: z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodUnknown>> = z.record(z.string(), z.unknown())
  .default({});
