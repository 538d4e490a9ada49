/**
 * A model that follows a script: the one double of the tests, and a model for where there is none.
 *
 * @module
 */
import type { FinishReason } from "../protocol/event.ts";
import type { Usage } from "../protocol/message.ts";
import { type Model, ModelError, type ModelEvent, type ModelRequest } from "./model.ts";

/** A call in a script. */
export interface ScriptedCall {
  /** The tool it names. */
  readonly name: string;
  /** A string is the JSON text itself, so that it can be malformed. */
  readonly input: unknown;
  /** Default: `call_1`, `call_2`, ... over the script. */
  readonly id?: string;
}

/** What the model does when it is asked. */
export interface ScriptedStep {
  /** Thought, before the text. */
  readonly reasoning?: string | readonly string[];
  /** Text; an array is streamed as one read for each of its strings. */
  readonly text?: string | readonly string[];
  /** Calls, as `[name, input]` or with an id. */
  readonly calls?: readonly (ScriptedCall | readonly [name: string, input: unknown])[];
  /** Thrown after all of the above, or after `reads`. */
  readonly error?: unknown;
  /** Why it ends. Default: "calls" where it makes any, else "stop". */
  readonly finish?: FinishReason;
  /** Tokens. Default: 1 in, 1 out. */
  readonly usage?: Usage;
  /** Called with the request before anything is streamed; awaited. */
  readonly before?: (request: ModelRequest, signal: AbortSignal) => void | Promise<void>;
  /** Exactly these reads, instead of what the other fields make; a promise among them is waited for. Without a `finish` the stream is cut. */
  readonly reads?: Iterable<readonly ModelEvent[] | Promise<readonly ModelEvent[]>>;
}

/** A text, a step, or a function of the request that gives one. */
export type ScriptedAnswer = string | ScriptedStep | ((request: ModelRequest) => string | ScriptedStep);

/** A model that follows a script, and what it was asked. */
export interface ScriptedModel extends Model {
  /** The requests so far, in order. */
  readonly requests: readonly ModelRequest[];
  /** How many steps have not been asked for. */
  readonly left: number;
  /** Throws when steps were not asked for, or more was asked than there are steps. For the end of a test. */
  done(): void;
}

/**
 * A model that answers with one step after another. A request beyond the last step fails.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const model = scripted("Hello!");
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * model.done();
 * ```
 */
export function scripted(...steps: readonly ScriptedAnswer[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  let calls = 0;

  async function* stream(request: ModelRequest, { signal }: { readonly signal: AbortSignal }) {
    const position = requests.push(request);
    const answer = steps[position - 1];
    if (answer === undefined) {
      throw new ModelError(`Cannot answer request ${position}: the script has ${steps.length} steps`);
    }
    const given = typeof answer === "function" ? answer(request) : answer;
    const step: ScriptedStep = typeof given === "string" ? { text: given } : given;
    await step.before?.(request, signal);
    for (const read of step.reads ?? readsOf(step)) {
      signal.throwIfAborted();
      yield read;
    }
    if (step.error !== undefined) throw step.error;
  }

  function* readsOf(
    { reasoning = [], text = [], calls: made = [], error, finish, usage = { input: 1, output: 1 } }: ScriptedStep,
  ): Iterable<ModelEvent[]> {
    for (const piece of [reasoning].flat()) yield [{ type: "reasoning", text: piece }];
    for (const piece of [text].flat()) yield [{ type: "text", text: piece }];
    if (made.length > 0) yield made.flatMap(eventsOf);
    if (error === undefined) {
      yield [{ type: "finish", reason: finish ?? (made.length > 0 ? "calls" : "stop"), usage }];
    }
  }

  function eventsOf(made: ScriptedCall | readonly [string, unknown]): ModelEvent[] {
    calls++;
    const { name, input, id = `call_${calls}` } = isPair(made) ? { name: made[0], input: made[1] } : made;
    return [
      { type: "call.start", id, name },
      { type: "call.delta", id, text: typeof input === "string" ? input : JSON.stringify(input) },
      { type: "call.end", id },
    ];
  }

  return {
    id: "scripted",
    stream,
    requests,
    get left() {
      return Math.max(0, steps.length - requests.length);
    },
    done() {
      const left = steps.length - requests.length;
      if (left > 0) throw new Error(`Cannot end the script: ${left} of its ${steps.length} steps were not asked for`);
      if (left < 0) {
        throw new Error(`Cannot end the script: it has ${steps.length} steps, and ${requests.length} were asked for`);
      }
    },
  };
}

function isPair(made: ScriptedCall | readonly [string, unknown]): made is readonly [string, unknown] {
  return Array.isArray(made);
}
