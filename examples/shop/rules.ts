/**
 * The shop's model: it follows a few rules and needs no key. It calls tools and streams text like a language model.
 *
 * @module
 */
import { type Call, callsOf, type Message, type Model, type ModelEvent, textOf } from "@jizai/jizai";
import { delay, estimateTokens } from "@jizai/jizai/kit";

/** The answer if there is nothing to do. */
const introduction =
  "This shop has lanterns, kettles and hooks. I count the stock, deliver items and order more. An order needs your approval. " +
  "Ask me to count the lanterns and the kettles, to deliver 2 hooks, or to order 3 lanterns; or all of it in one sentence.";

/** Creates a model that follows the rules. It waits `pace` milliseconds between two words. */
export function ruleBased(pace: number): Model {
  return {
    id: "rule-based",
    async *stream({ messages }, { signal }): AsyncGenerator<readonly ModelEvent[]> {
      const calls = requestedCalls(messages);
      for (const { id, name, input } of calls) {
        yield [
          { type: "call.start", id, name },
          { type: "call.delta", id, text: JSON.stringify(input) },
          { type: "call.end", id },
        ];
      }
      const words = calls.length > 0 ? [] : answerText(messages).match(/\s*\S+/g) ?? [];
      for (const text of words) {
        yield [{ type: "text", text }];
        await delay(pace, signal);
      }
      const written: Message = { role: "assistant", parts: [{ type: "text", text: words.join("") }] };
      const usage = { input: estimateTokens(messages), output: estimateTokens([written]) };
      yield [{ type: "finish", reason: calls.length > 0 ? "calls" : "stop", usage }];
    },
  };
}

/** Returns the calls that the last prompt asks for; none once they have been made. */
function requestedCalls(messages: readonly Message[]): Call[] {
  const last = messages.at(-1);
  if (last?.role !== "user") return [];
  const earlier = messages.flatMap((message) => message.role === "assistant" ? callsOf(message) : []).length;
  const words = textOf(last).toLowerCase().matchAll(
    /\b(count|deliver|order)\b|(?:(\d+) )?\b(lantern|kettle|hook)s?\b/g,
  );
  const calls: Call[] = [];
  let name = "count";
  for (const [, verb, amount, noun] of words) {
    if (verb) name = verb;
    if (!noun) continue;
    const item = `${noun}s`;
    const input = name === "count" ? { item } : { item, amount: Number(amount ?? 1) };
    calls.push({ id: `call_${earlier + calls.length + 1}`, name, input });
  }
  return calls;
}

/** Returns the results of the calls of the last response. */
function answerText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  return last?.role === "tool" ? last.results.map(textOf).join(" ") : introduction;
}
