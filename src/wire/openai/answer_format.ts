/**
 * The format of the answer, for requests with a `response_format` or a `text.format`.
 *
 * @module
 */
import type { AnswerFormat } from "../../core/agent/definition.ts";
import { schemaOf } from "../../core/agent/schema.ts";
import { outputFormat } from "../../core/features/output.ts";
import { jsonObject, lazy, object, oneOf, type Shape, string } from "../../protocol/shape.ts";
import { nullish } from "./content.ts";

const kind = /* @__PURE__ */ lazy(() => object({ type: oneOf("text", "json_object", "json_schema") }));
const named = /* @__PURE__ */ lazy(() => object({ name: string, schema: nullish(jsonObject) }));

/** Parses the format of the answer; `nested` is the field that contains the schema and its name, if they have a field of their own. */
export function answerFormat(nested?: string): Shape<AnswerFormat | undefined> {
  return nullish((value, path): AnswerFormat | undefined => {
    const { type } = kind(value, path);
    if (type === "text") return undefined;
    if (type === "json_object") return outputFormat(schemaOf({ type: "object" }));
    const { schema = { type: "object" } } = nested
      ? object<Record<string, ReturnType<typeof named>>>({ [nested]: named })(value, path)[nested] ?? {}
      : named(value, path);
    return outputFormat(schemaOf(schema));
  });
}
