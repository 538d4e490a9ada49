/**
 * Which model the assistant uses: for now the embedded one, which follows rules, needs no key and no network.
 *
 * @module
 */
import { callsOf, type Model, type ModelEvent, type ModelRequest } from "@jizai/jizai";
import { decide } from "./rules.ts";

/** Chooses the model of this process. */
export function chooseModel(): Model {
  const key = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].find((name) => Deno.env.get(name));
  // A provider's model is returned here, once there is an adapter to make one.
  if (key) {
    console.log(`${key} is set, but provider adapters are not part of this version: the embedded model answers.`);
  }
  return embedded();
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
