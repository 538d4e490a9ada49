/**
 * The token usage of one response.
 *
 * @module
 */
import type { Usage } from "../../protocol/message.ts";

/** Returns the usage of a response: that of its run at the end, without the tokens that the run had used before. A run that is lost reports none. */
export function usageSince({ input, output, cached = 0 }: Usage, before: Usage): Required<Usage> {
  const since = (total: number, earlier: number) => Math.max(0, total - earlier);
  return {
    input: since(input, before.input),
    output: since(output, before.output),
    cached: since(cached, before.cached ?? 0),
  };
}
