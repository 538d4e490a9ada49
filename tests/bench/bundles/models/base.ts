/** The code that all adapters for providers share. */
export { provider, requestBody, streamResponse } from "../../../../src/model/provider.ts";
export { noteEvent, readNote } from "../../../../src/model/provider_note.ts";
export { callInput, fileNotice, toolSchema } from "../../../../src/model/request_parts.ts";
export { strictSchema } from "../../../../src/model/strict_schema.ts";
