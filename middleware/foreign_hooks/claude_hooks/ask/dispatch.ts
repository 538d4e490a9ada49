/**
 * Running the hooks of an event: in parallel or in sequence, each with its own copy of the input, signal and deadline.
 *
 * @module
 */
import { anySignal, startTimer } from "../../../../src/core/kit.ts";
import { callWithin, lateAfter } from "../../kit/deadline.ts";
import { isObject } from "../../kit/fields.ts";
import type { Definition } from "../config/config.ts";
import type { Dialect } from "../config/dialect.ts";
import type { HookInput } from "../config/input.ts";
import type { Work } from "./background.ts";
import { backgroundWork, readAnswer, type ReadOutput } from "./read.ts";

/** The outcome of one hook. */
export interface Outcome extends ReadOutput {
  readonly definition?: Definition;
  /** The work of a hook that continues in the background and will answer later. */
  readonly work?: Work | undefined;
  readonly failed?: { readonly error: unknown };
  /** The order of arrival, from 0. */
  readonly given: number;
}

/** Options of a dispatch. */
export interface DispatchOptions {
  readonly toolUseId: string | undefined;
  readonly signal: AbortSignal;
  /** An upper bound of every timeout, in milliseconds. Default: none. */
  readonly most?: number | undefined;
  readonly dialect: Dialect;
}

/** Runs hooks and returns one outcome per hook, in their order. Never rejects. */
export async function dispatch(
  definitions: readonly Definition[],
  input: HookInput,
  options: DispatchOptions,
): Promise<readonly Outcome[]> {
  let given = 0;
  const ask = async (definition: Definition, input: HookInput): Promise<Outcome> => {
    try {
      const { returned, work } = await call(definition, structuredClone(input), options);
      const read = readAnswer(returned, input, options.dialect);
      return { ...read, definition, given: given++, work };
    } catch (error) {
      return { failed: { error }, invalid: [], definition, given: given++ };
    }
  };
  if (!definitions.some(({ sequential }) => sequential)) {
    return await Promise.all(definitions.map((definition) => ask(definition, input)));
  }
  const outcomes: Outcome[] = [];
  let current = input;
  for (const definition of definitions) {
    const outcome = await ask(definition, current);
    current = changed(current, outcome);
    outcomes.push(mergeInput(outcome, current));
  }
  return outcomes;
}

/** Milliseconds that a hook has to settle after its signal aborted. */
const grace = 50;

async function call(
  { hook, timeout }: Definition,
  input: HookInput,
  options: DispatchOptions,
): Promise<{ readonly returned: unknown; readonly work: Work | undefined }> {
  const { toolUseId, signal, most = Infinity } = options;
  const background = new AbortController();
  const returned = await callWithin(Math.min(timeout, most), signal, (signal) => {
    const own = anySignal([signal, background.signal]);
    return hook(input as never, toolUseId, { signal: own }); // a hook receives only the inputs of its own event
  }, grace);
  const work = backgroundWork(returned);
  if (work || !isObject(returned) || returned.async !== true) return { returned, work };
  const { asyncTimeout } = returned;
  return { returned, work: typeof asyncTimeout === "number" ? expiry(background, asyncTimeout) : undefined };
}

/** Aborts the signal of a callback that continues in the background after `ms` milliseconds, unless the run ends before. */
function expiry(background: AbortController, ms: number): Work {
  const { promise: done, resolve } = Promise.withResolvers<undefined>();
  const timer = startTimer(() => {
    background.abort(lateAfter(ms));
    resolve(undefined);
  }, ms);
  const stop = () => {
    clearTimeout(timer);
    resolve(undefined);
  };
  return { done, stop, isDetached: true };
}

/** Returns the input of the next hook in a sequence. */
function changed(input: HookInput, { output }: Outcome): HookInput {
  const { updatedInput, additionalContext } = output?.specific ?? {};
  if (input.hook_event_name === "PreToolUse" && updatedInput) {
    const before = input.tool_input;
    return { ...input, tool_input: isObject(before) ? { ...before, ...updatedInput } : updatedInput };
  }
  if (input.hook_event_name === "UserPromptSubmit" && additionalContext) {
    return { ...input, prompt: `${input.prompt}\n\n${additionalContext}` };
  }
  return input;
}

/** Replaces the updated input of an outcome by the input that all hooks so far have made. */
function mergeInput(outcome: Outcome, current: HookInput): Outcome {
  const { output } = outcome;
  if (current.hook_event_name !== "PreToolUse" || !output?.specific.updatedInput) return outcome;
  const updatedInput = current.tool_input as Record<string, unknown>; // `changed` merged an object into it
  return { ...outcome, output: { ...output, specific: { ...output.specific, updatedInput } } };
}
