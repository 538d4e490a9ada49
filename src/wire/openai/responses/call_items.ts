/**
 * The items of calls that the provider of the model runs.
 *
 * @module
 */
import type { ProviderCallPart, ProviderResultPart } from "../../../protocol/part.ts";
import { builtInItem } from "./built_in_item.ts";
import type { OutputItem, ResponseOutput } from "./output.ts";

/** Encodes the calls of one response. */
export interface CallItems {
  /** Encodes a call, and adds its item to the output. */
  begin(call: ProviderCallPart): string;
  /** Encodes the result of a call, and replaces its item. */
  end(result: ProviderResultPart): string;
}

/** A call and its item. */
interface BegunCall {
  readonly call: ProviderCallPart;
  readonly item: OutputItem;
  readonly output_index: number;
}

/** Creates the encoder of the calls of `output`. */
export function callItems({ items, place, frame }: ResponseOutput): CallItems {
  const calls = new Map<string, BegunCall>();

  function begin(call: ProviderCallPart): string {
    const { output_index } = place();
    const item = builtInItem(call);
    items.push(item);
    calls.set(call.callId, { call, item, output_index });
    return frame("output_item.added", { output_index, item });
  }

  function end(result: ProviderResultPart): string {
    const { callId, name } = result;
    const begun = calls.get(callId);
    if (!begun) return begin({ type: "provider_call", callId, name, input: {} }) + end(result); // a result without a call
    const { call, item, output_index } = begun;
    const ended = builtInItem(call, result);
    const index = items.indexOf(item); // -1 if the turn began again
    if (index >= 0) items[index] = ended;
    return frame("output_item.done", { output_index, item: ended });
  }

  return { begin, end };
}
