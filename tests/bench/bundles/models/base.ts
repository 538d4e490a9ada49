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
export {
  callInput,
  checkOptions,
  fileNotice,
  optionValue,
  strictSchema,
  toolSchema,
} from "../../../../src/model/request.ts";
