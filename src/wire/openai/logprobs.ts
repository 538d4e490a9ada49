/**
 * Log probabilities in OpenAI's form.
 *
 * @module
 */
import type { TokenLogprob } from "../../protocol/part.ts";

/** Encodes tokens, with their bytes. */
export function encodeTokens(tokens: readonly TokenLogprob[]): readonly object[] {
  const encoder = new TextEncoder();
  return tokens.map(({ token, logprob, top = [] }) => ({
    token,
    logprob,
    bytes: [...encoder.encode(token)],
    top_logprobs: top.map(({ token, logprob }) => ({ token, logprob, bytes: [...encoder.encode(token)] })),
  }));
}
