/** The code that all adapters for providers share. */
export { provider, requestBody, streamResponse } from "../../../../src/model/provider.ts";
export {
  callEvent,
  logprobsEvents,
  noteEvent,
  readNote,
  refusalEvent,
  resultEvent,
  sourceEvent,
  tokensOf,
} from "../../../../src/model/provider_note.ts";
export { joinFields, providerNotice, splitTools } from "../../../../src/model/provider_tools.ts";
export { checkOptions, optionValue } from "../../../../src/model/request_options.ts";
export { callInput, fileNotice, toolSchema } from "../../../../src/model/request_parts.ts";
export { strictSchema } from "../../../../src/model/strict_schema.ts";
