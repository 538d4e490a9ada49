/**
 * Which model the assistant uses: a provider's where there is a key for it, or the embedded one, which follows rules and needs no key and no network.
 *
 * @module
 */
import { callsOf, type Model, type ModelEvent, type ModelRequest } from "@jizai/jizai";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { openai } from "@jizai/jizai/model/openai";
import { decide } from "./rules.ts";

/** Where variables are looked up. */
export interface Environment {
  get(name: string): string | undefined;
}

/** Chooses the model of this process. An address alone, without a key, is enough for a server on this machine, such as Ollama. */
export function chooseModel(env: Environment = Deno.env): Model {
  const vendor = (name: string, model: string) => {
    const [apiKey, baseURL] = [env.get(`${name}_API_KEY`), env.get(`${name}_BASE_URL`)];
    if (!apiKey && !baseURL) return undefined;
    return { model: env.get(`${name}_MODEL`) || model, ...(apiKey && { apiKey }), ...(baseURL && { baseURL }) };
  };
  const overChat = vendor("OPENAI", "gpt-6.1-terra");
  if (overChat) return openai(overChat);
  const overMessages = vendor("ANTHROPIC", "claude-sonnet-5");
  return overMessages ? anthropic(overMessages) : embedded();
}

/** How the embedded model speaks. */
export interface EmbeddedOptions {
  /** Milliseconds between two words. Default: 10. */
  readonly pause?: number;
}

/** A model that follows `rules.ts`: it is no language model, but it calls tools and streams like one. */
export function embedded({ pause = 10 }: EmbeddedOptions = {}): Model {
  return {
    id: "embedded",
    async *stream({ messages }: ModelRequest, { signal }): AsyncGenerator<readonly ModelEvent[]> {
      const step = decide(messages);
      if ("calls" in step) {
        const before = messages.flatMap((message) => message.role === "assistant" ? callsOf(message) : []).length;
        yield step.calls.flatMap(({ name, input }, index): ModelEvent[] => {
          const id = `call_${before + index + 1}`;
          return [
            { type: "call.start", id, name },
            { type: "call.delta", id, text: JSON.stringify(input) },
            { type: "call.end", id },
          ];
        });
        yield [{ type: "finish", reason: "calls" }];
        return;
      }
      for (const word of step.text.match(/\s*\S+/g) ?? []) {
        yield [{ type: "text", text: word }];
        await new Promise((next) => setTimeout(next, pause));
        signal.throwIfAborted();
      }
      yield [{ type: "finish", reason: "stop" }];
    },
  };
}
