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
  /** Ends the calls without a result whose items were removed from the output: a client waits for the end of each. */
  closeRemoved(): string;
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
  /** The calls without a result. */
  const open = new Map<string, BegunCall>();

  function begin(call: ProviderCallPart): string {
    const { output_index } = place();
    const item = builtInItem(call);
    items.push(item);
    const begun = { call, item, output_index };
    calls.set(call.callId, begun);
    open.set(call.callId, begun);
    return frame("output_item.added", { output_index, item });
  }

  function end(result: ProviderResultPart): string {
    const { callId, name } = result;
    const begun = calls.get(callId);
    if (!begun) return begin({ type: "provider_call", callId, name, input: {} }) + end(result); // a result without a call
    return replace(begun, builtInItem(begun.call, result));
  }

  function replace({ call, item, output_index }: BegunCall, ended: OutputItem): string {
    open.delete(call.callId);
    const index = items.indexOf(item); // -1 if the turn began again
    if (index >= 0) items[index] = ended;
    return frame("output_item.done", { output_index, item: ended });
  }

  function closeRemoved(): string {
    const removed = [...open.values()].filter(({ item }) => !items.includes(item));
    // a search has no status "incomplete"
    return removed.map((begun) => {
      const status = begun.item.type === "web_search_call" ? "failed" : "incomplete";
      return replace(begun, { ...begun.item, status });
    }).join("");
  }

  return { begin, end, closeRemoved };
}
