/**
 * The model of the assistant: that of a provider if its key is set, or the embedded one, which follows rules and needs no key.
 *
 * @module
 */
import { callsOf, type Model, type ModelEvent, type ModelRequest, user } from "@jizai/jizai";
import { delay, estimateTokens } from "@jizai/jizai/kit";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { decide } from "./rules.ts";

/** A reader of environment variables. */
export interface Environment {
  get(name: string): string | undefined;
}

/** Chooses the model of this process. A server on this machine, such as Ollama, needs an address and no key. */
export function chooseModel(env: Environment = Deno.env): Model {
  const vendor = (name: string, model: string) => {
    const [apiKey, baseURL] = [env.get(`${name}_API_KEY`), env.get(`${name}_BASE_URL`)];
    if (!apiKey && !baseURL) return undefined;
    return { model: env.get(`${name}_MODEL`) || model, ...(apiKey && { apiKey }), ...(baseURL && { baseURL }) };
  };
  const overChat = vendor("OPENAI", "gpt-6.1-terra");
  if (overChat) return openai(overChat);
  const overMessages = vendor("ANTHROPIC", "claude-sonnet-5-5");
  return overMessages ? anthropic(overMessages) : embedded();
}

/** Options of `embedded()`. */
export interface EmbeddedOptions {
  /** Milliseconds between two words. Default: 25. */
  readonly pause?: number;
}

/** Creates a model that follows `rules.ts`. It calls tools and streams text like a language model, and reports an estimate of its tokens. */
export function embedded({ pause = 25 }: EmbeddedOptions = {}): Model {
  return {
    id: "embedded",
    async *stream({ messages, tools }: ModelRequest, { signal }): AsyncGenerator<readonly ModelEvent[]> {
      const { text = "", calls = [] } = { calls: [], ...decide(messages, tools.length > 0) };
      for (const word of text.match(/\s*\S+/g) ?? []) {
        yield [{ type: "text", text: word }];
        await delay(pause, signal);
      }
      const before = messages.flatMap((message) => message.role === "assistant" ? callsOf(message) : []).length;
      yield calls.flatMap(([name, input], index): ModelEvent[] => {
        const id = `call_${before + index + 1}`;
        return [
          { type: "call.start", id, name },
          { type: "call.delta", id, text: JSON.stringify(input) },
          { type: "call.end", id },
        ];
      });
      const written = user(`${text}${JSON.stringify(calls)}`);
      const usage = { input: estimateTokens(messages), output: estimateTokens([written]) };
      yield [{ type: "finish", reason: calls.length > 0 ? "calls" : "stop", usage }];
    },
  };
}
