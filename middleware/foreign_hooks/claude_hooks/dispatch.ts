/**
 * How hooks are asked: all at once or one after another, each with a copy, a signal and a time of its own.
 *
 * @module
 */
import { cancellationOf, startTimer, withGracePeriod } from "../../../src/core/kit.ts";
import type { Work } from "./background.ts";
import type { Definition } from "./config.ts";
import type { HookEvent, HookInput } from "./input.ts";
import { goesOn, going, type Output, read } from "./output.ts";

/** What asking one hook came to. */
export interface Outcome {
  /** What it said, read; nothing where that is no opinion. */
  readonly output?: Output | undefined;
  /** What of it is wrong. */
  readonly wrong: readonly string[];
  /** What it will come to, where it goes on by itself. */
  readonly going?: Work | undefined;
  /** What it threw, or that it was too late. */
  readonly failed?: { readonly error: unknown };
  /** Whether a failure of it blocks. */
  readonly blocks: boolean;
  /** Its place among the answers, from 0. */
  readonly given: number;
}

/** How hooks are asked. */
export interface Asking {
  readonly toolUseId: string | undefined;
  /** Aborts when nobody waits for the answers any more. */
  readonly signal: AbortSignal;
  /** The most milliseconds that one hook may take, whatever it says of itself. Default: no limit. */
  readonly most?: number | undefined;
}

/** Asks `definitions`; gives what each of them came to, in their order. Never rejects. */
export async function dispatch(
  definitions: readonly Definition[],
  input: HookInput,
  asking: Asking,
): Promise<readonly Outcome[]> {
  let given = 0;
  const ask = async (definition: Definition, input: HookInput): Promise<Outcome> => {
    const { blocks } = definition;
    try {
      const returned = await call(definition, structuredClone(input), asking);
      const work = goesOn(returned) ? returned[going] : undefined;
      return { ...read(returned, input.hook_event_name), blocks, given: given++, going: work };
    } catch (error) {
      return { failed: { error }, wrong: [], blocks, given: given++ };
    }
  };
  if (!definitions.some(({ sequential }) => sequential)) {
    return await Promise.all(definitions.map((definition) => ask(definition, input)));
  }
  const outcomes: Outcome[] = [];
  let told = input;
  for (const definition of definitions) {
    const outcome = await ask(definition, told);
    told = changed(told, outcome);
    outcomes.push(merged(outcome, told));
  }
  return outcomes;
}

/** Milliseconds that a hook has to stop in. */
const patience = 50;

/** Asks one hook. Rejects where it fails, is too late, or nobody waits for it any more. */
async function call(
  { hook, timeout }: Definition,
  input: HookInput,
  { toolUseId, signal, most = Infinity }: Asking,
): Promise<unknown> {
  signal.throwIfAborted(); // those before it may have taken until then
  const late = new AbortController();
  const own = AbortSignal.any([signal, late.signal]);
  const time = Math.min(timeout, most);
  const timer = startTimer(() => late.abort(new DOMException(`Not done after ${time} ms`, "TimeoutError")), time);
  try {
    const answer = Promise.try(hook, input as never, toolUseId, { signal: own }); // each is asked about its own event alone
    const returned = await withGracePeriod(answer, cancellationOf(own), patience, () => {}); // whoever asked is told why it is not waited for
    own.throwIfAborted();
    return returned;
  } catch (error) {
    throw own.aborted ? own.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** What the next hook is told after this one. */
function changed(input: HookInput, { output }: Outcome): HookInput {
  const { updatedInput, additionalContext } = output?.specific ?? {};
  if (input.hook_event_name === "PreToolUse" && updatedInput) {
    const before = input.tool_input;
    return { ...input, tool_input: typeof before === "object" ? { ...before, ...updatedInput } : updatedInput };
  }
  if (input.hook_event_name === "UserPromptSubmit" && additionalContext) {
    return { ...input, prompt: `${input.prompt}\n\n${additionalContext}` };
  }
  return input;
}

/** An outcome whose new input is that of all hooks so far. */
function merged(outcome: Outcome, told: HookInput): Outcome {
  const { output } = outcome;
  if (told.hook_event_name !== "PreToolUse" || !output?.specific.updatedInput) return outcome;
  const updatedInput = told.tool_input as Record<string, unknown>; // what `changed` made of it
  return { ...outcome, output: { ...output, specific: { ...output.specific, updatedInput } } };
}

/** Events at which a hook that fails may block, where it was said to. */
export const guarded: readonly HookEvent[] = [
  "PreToolUse",
  "PermissionRequest",
  "UserPromptSubmit",
  "UserPromptExpansion",
  "PreCompact",
  "WorktreeCreate",
];
