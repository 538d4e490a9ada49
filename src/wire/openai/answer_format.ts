/**
 * The format of the answer, for requests with a `response_format` or a `text.format`.
 *
 * @module
 */
import type { AnswerFormat } from "../../core/definition.ts";
import { schemaOf } from "../../core/tool.ts";
import { outputFormat } from "../../core/output.ts";
import { jsonObject, object, oneOf, type Shape, string, type UnknownObject } from "../../protocol/shape.ts";
import { nullish } from "./content.ts";

/** Parses the format of the answer; `nested` is the field that contains the schema and its name, if they have a field of their own. */
export function answerFormat(nested?: string): Shape<AnswerFormat | undefined> {
  const kind = object({ type: oneOf("text", "json_object", "json_schema") });
  const named = object({ name: string, schema: nullish(jsonObject) });
  const schemaIn = (format: UnknownObject, path: string) =>
    nested === undefined ? named(format, path) : named(format[nested], `${path}.${nested}`);
  return nullish((value, path): AnswerFormat | undefined => {
    const { type } = kind(value, path);
    if (type === "text") return undefined;
    const { schema = { type: "object" } } = type === "json_object" ? {} : schemaIn(Object(value), path);
    return outputFormat(schemaOf(schema));
  });
}
