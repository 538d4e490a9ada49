/**
 * The server of the conformance suite of MCP: an agent, whose tools are those that the suite calls.
 *
 * @module
 */
import { agent, type AnyTool, serve, tool, type ToolExecutionContext, type ToolResult } from "@jizai/jizai";
import { answersOf, askDuring, schemaOf } from "@jizai/jizai/kit";
import { scripted } from "@jizai/jizai/model/scripted";
import { mcpWire } from "@jizai/jizai/wire/mcp";

/** A pixel, and a short silence. */
const [png, wav] = [
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
  "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
];

type Execute = (ctx: ToolExecutionContext) => unknown;

function made(
  name: string,
  execute: Execute,
  schema: { readonly [key: string]: unknown } = { type: "object" },
): AnyTool {
  return tool({ name, description: name, input: schemaOf(schema), execute: (_, ctx) => execute(ctx) });
}

function parts(...parts: ToolResult["parts"]): ToolResult {
  return { type: "result", status: "ok", parts };
}

const image = { type: "media", mediaType: "image/png", data: png } as const;
const audio = { type: "media", mediaType: "audio/wav", data: wav } as const;
const resource = { type: "media", mediaType: "text/plain", data: btoa("A resource") } as const;

/** Asks for one text after another, and returns them. */
function asking(...questions: readonly string[]): Execute {
  return (ctx) => {
    const { saved = [], answers: [answer] = [] } = answersOf(ctx) ?? {};
    const texts = [...saved as readonly string[], ...answer ? [JSON.stringify(Object(answer).input)] : []]; // it was saved below
    const question = questions[texts.length];
    if (question === undefined) return `state-ok ${texts.join(" ")}`;
    const schema = { type: "object", properties: { name: { type: "string" } } };
    throw askDuring(ctx, [{ name: "form", question, schema }], texts);
  };
}

const schema2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" } } } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } } },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const tools = [
  made("test_simple_text", () => "This is a simple text response for testing."),
  made("test_image_content", () => parts(image)),
  made("test_audio_content", () => parts(audio)),
  made("test_embedded_resource", () => parts(resource)),
  made("test_multiple_content_types", () => parts({ type: "text", text: "Many" }, image, resource)),
  made("test_error_handling", () => ({ type: "result", status: "error", parts: [{ type: "text", text: "It fails" }] })),
  made("test_tool_with_progress", async ({ progress }) => {
    for (const each of [0, 50, 100]) {
      progress({ progress: each, total: 100 });
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return "Done.";
  }),
  made("json_schema_2020_12_tool", () => "Done.", schema2020),
  made("test_streaming_elicitation", asking("What is your name?")),
  made("test_logging_tool", () => "Done."),
  made("test_input_required_result_elicitation", asking("What is your name?")),
  made("test_input_required_result_request_state", asking("Please confirm")),
  made("test_input_required_result_tampered_state", asking("Please confirm")),
  made("test_input_required_result_multi_round", asking("What is your name?", "What is your favorite color?")),
];

/** Serves the agent. */
export function conformanceApp() {
  return serve(agent({ model: scripted(), tools }), {
    wires: [mcpWire({ agent: false, tools: tools.map(({ name }) => name) })],
    onError() {},
  });
}
