/**
 * A model that follows a script, for tests and examples.
 *
 * @module
 */
import type { FinishReason } from "../protocol/event.ts";
import type { Usage } from "../protocol/message.ts";
import { type Model, ModelError, type ModelEvent, type ModelRequest } from "./model.ts";

/** A call in a script. */
export interface ScriptedCall {
  /** The name of the tool. */
  readonly name: string;
  /** The input. A string is sent as the JSON text itself, so that it can be malformed. */
  readonly input: unknown;
  /** The id of the call. Default: `call_1`, `call_2`, ... over the script. */
  readonly id?: string;
}

/** One response of the model. */
export interface ScriptedStep {
  /** Reasoning before the text. */
  readonly reasoning?: string | readonly string[];
  /** Text. Each string of an array is a read of its own. */
  readonly text?: string | readonly string[];
  /** Calls, as `[name, input]` or as objects. If `finish` says that the response was cut, an input that is a text leaves the last call open. */
  readonly calls?: readonly (ScriptedCall | readonly [name: string, input: unknown])[];
  /** An error to throw after everything else. */
  readonly error?: unknown;
  /** The finish reason. Default: "calls" with calls, else "stop". */
  readonly finish?: FinishReason;
  /** Token counts. Default: 1 input, 1 output. */
  readonly usage?: Usage;
  /** Called with the request and awaited before anything is streamed. */
  readonly before?: (request: ModelRequest, signal: AbortSignal) => void | Promise<void>;
  /** Streams exactly these reads instead of the other fields. Promises among them are awaited. Without a `finish` event the stream is cut. */
  readonly reads?: Iterable<readonly ModelEvent[] | Promise<readonly ModelEvent[]>>;
}

/** A text, a step, or a function that returns one for the request. */
export type ScriptedAnswer = string | ScriptedStep | ((request: ModelRequest) => string | ScriptedStep);

/** A model that follows a script and records its requests. */
export interface ScriptedModel extends Model {
  /** The requests so far, in order. */
  readonly requests: readonly ModelRequest[];
  /** The number of steps that are left. */
  readonly left: number;
  /** Throws unless each step was requested exactly once. Call it at the end of a test. */
  done(): void;
}

/**
 * Creates a model that answers each request with the next step. A request beyond the last step throws a `ModelError`.
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
    const scriptedStep = typeof answer === "function" ? answer(request) : answer;
    const step: ScriptedStep = typeof scriptedStep === "string" ? { text: scriptedStep } : scriptedStep;
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
    const isOpen = typeof inputOf(made.at(-1)) === "string" && finish !== undefined &&
      !/^(stop|calls|empty)$/.test(finish);
    if (made.length > 0) yield made.flatMap(eventsOf).slice(0, isOpen ? -1 : undefined);
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
    server: { provider: "scripted" },
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

function inputOf(made: NonNullable<ScriptedStep["calls"]>[number] | undefined): unknown {
  return made && (isPair(made) ? made[1] : made.input);
}

function isPair(made: ScriptedCall | readonly [string, unknown]): made is readonly [string, unknown] {
  return Array.isArray(made);
}
