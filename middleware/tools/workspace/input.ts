/**
 * Inputs: what the tools take, small enough to be checked by hand, so that no schema library is needed.
 *
 * @module
 */
import type { Issue, Schema } from "../../../mod.ts";
import { schemaOf } from "../../../src/core/kit.ts";

/** One field of an input. */
export interface Field<T> {
  /** As JSON Schema says it. */
  readonly schema: { readonly [key: string]: unknown };
  /** What is said where a value does not fit. */
  readonly expected: string;
  /** Whether a value is one. */
  readonly fits: (value: unknown) => value is T;
  /** What it is where it is left out; without one it may not be. */
  readonly otherwise?: T;
}

/** A text. */
export function text(description: string): Field<string> {
  return {
    schema: { type: "string", description },
    expected: "expected a text",
    fits: (value) => typeof value === "string",
  };
}

/** A whole number of 1 or more. */
export function count(description: string, otherwise: number): Field<number> {
  return {
    schema: { type: "integer", minimum: 1, description },
    expected: "expected a whole number of 1 or more",
    fits: (value): value is number => Number.isSafeInteger(value) && Number(value) >= 1,
    otherwise,
  };
}

/** Yes or no; no where it is left out. */
export function flag(description: string): Field<boolean> {
  return {
    schema: { type: "boolean", description },
    expected: "expected true or false",
    fits: (value) => typeof value === "boolean",
    otherwise: false,
  };
}

/** What the fields of an input are. */
export type Values<F> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** An object of such fields. Others are ignored. */
export function input<F extends Readonly<Record<string, Field<unknown>>>>(fields: F): Schema<unknown, Values<F>> {
  const all = Object.entries(fields);
  const json = {
    type: "object",
    properties: Object.fromEntries(all.map(([name, { schema }]) => [name, schema])),
    required: all.filter(([, field]) => field.otherwise === undefined).map(([name]) => name),
  };
  return schemaOf(json, (given) => {
    if (typeof given !== "object" || given === null) return { issues: [{ message: "expected an object" }] };
    const values = all.map(([name, { otherwise }]) => [name, valueOf(given, name) ?? otherwise] as const);
    const issues = values.flatMap(([name, value]): Issue[] => {
      const field = fields[name];
      return !field || field.fits(value) ? [] : [{ message: field.expected, path: [name] }];
    });
    return issues.length > 0 ? { issues } : { value: Object.fromEntries(values) as Values<F> }; // each one fits
  });
}

/** A field of an object, where it is its own. */
function valueOf(given: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(given, name)?.value;
}
