/**
 * The model of the assistant: that of a provider if its key is set, or the embedded one, which follows rules and needs no key.
 *
 * @module
 */
import { callsOf, type Model, type ModelEvent, type ModelRequest } from "@jizai/jizai";
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
  /** Milliseconds between two words. Default: 10. */
  readonly pause?: number;
}

/** Creates a model that follows `rules.ts`. It calls tools and streams text like a language model. */
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
