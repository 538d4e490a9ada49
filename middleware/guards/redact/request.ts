/**
 * Masks the requests to the model.
 *
 * @module
 */
import type { ModelRequest } from "../../../mod.ts";
import type { Mask } from "./mask.ts";
import type { MaskMessages } from "./messages.ts";
import { maskEach, maskFields, maskName } from "./values.ts";

/** Returns a function that masks the messages, the instructions and the tools of a request. Returns the same request if nothing changes. */
export function requestMask(
  mask: Mask,
  maskMessages: MaskMessages,
): (request: ModelRequest) => ModelRequest {
  const knownTools = new WeakMap<object, ModelRequest["tools"]>();
  return (request) => {
    const messages = maskMessages(request.messages);
    const tools = knownTools.get(request.tools) ?? maskEach(request.tools, (tool) => maskTool(tool, mask));
    knownTools.set(request.tools, tools).set(tools, tools);
    const instructions = mask.whole(request.instructions);
    const clean = instructions === request.instructions && messages === request.messages && tools === request.tools;
    return clean ? request : { ...request, messages, instructions, tools };
  };
}

function maskTool<T extends ModelRequest["tools"][number]>(tool: T, mask: Mask): T {
  const name = maskName(tool.name, mask);
  const masked = maskFields(tool, ["description", "schema"], mask);
  return name === tool.name ? masked : { ...masked, name };
}
