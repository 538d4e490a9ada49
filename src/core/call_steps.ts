/**
 * Journaled steps: parts of a tool that run once, although the call may be executed more often. The record of the call keeps their values.
 *
 * @module
 */
import type { OpenCall } from "./call.ts";
import { End } from "./interrupt.ts";
import { expectSameAsJson, plainCopy } from "./lib/json.ts";
import type { ExecuteContext } from "./points.ts";
import type { CallRecord, CallStep } from "./position.ts";
import type { ToolExecutionContext } from "./tool.ts";

/** Returns the function `step` for one execution of a tool. */
export function stepOf({ idempotencyKey, signal, tool }: ExecuteContext, call: OpenCall): ToolExecutionContext["step"] {
  const names = new Set<string>();

  async function runOnce<T>(name: string, work: (step: { readonly key: string }) => T | Promise<T>): Promise<T> {
    const operation = `Cannot run step ${JSON.stringify(name)} of ${tool.name}`;
    if (typeof name !== "string" || name === "" || typeof work !== "function") {
      throw new TypeError(`${operation}: expected a name and a function`);
    }
    if (names.has(name)) {
      throw new TypeError(`${operation}: the call has a step of this name; expected another one, such as "${name}-2"`);
    }
    signal.throwIfAborted();
    names.add(name);
    try {
      const run = () => work({ key: `${idempotencyKey}:${name}` });
      return await call.steps.run({ operation, name, run, repeats: tool.idempotent === true }) as T; // the same step had this value
    } catch (error) {
      names.delete(name);
      throw error;
    }
  }

  return function step(name, work) {
    const done = runOnce(name, work);
    done.catch(() => {}); // a step that the tool does not await must not end the process
    return done;
  };
}

/** A step to run. */
interface StepToRun {
  /** The beginning of its errors. */
  readonly operation: string;
  readonly name: string;
  readonly run: () => unknown;
  /** True if the call runs again after a crash also without steps. */
  readonly repeats: boolean;
}

/** The number of characters of a complete group: later saves refer to it, and do not repeat it. */
const wholeGroup = 1_000;

/** The steps of a call, over all executions of its tool. */
export class CallSteps {
  readonly #call: OpenCall;
  #saved: CallRecord["steps"];
  /** The steps in progress, by name. They go on after an execution that has run out of time. */
  readonly #running = new Map<string, Promise<unknown>>();
  /** Resolves once the record tells that the tool uses steps. */
  #announced: Promise<void> | undefined;

  constructor(call: OpenCall) {
    this.#call = call;
    this.#saved = call.record.steps;
  }

  /** The steps as the record of the call has them. */
  get saved(): CallRecord["steps"] {
    return this.#saved;
  }

  /** Returns the value of a step: the stored one, or that of the step once it has run and is stored. */
  async run(step: StepToRun): Promise<unknown> {
    const { operation, name, repeats } = step;
    this.#expectOpen(operation);
    if (!repeats && !this.#saved) this.#announced = this.#save(operation, []);
    await this.#announced;
    const running = this.#running.get(name);
    if (running) return await running;
    const stored = this.#saved?.flat().find((saved) => saved.name === name);
    if (stored) return plainCopy(operation, stored.value);
    const value = this.#begin(step).finally(() => this.#running.delete(name));
    this.#running.set(name, value);
    return await value;
  }

  async #begin({ operation, name, run }: StepToRun): Promise<unknown> {
    this.#expectOpen(operation);
    const value = await run();
    expectSameAsJson(`Cannot store the value of step ${JSON.stringify(name)}`, value);
    this.#expectOpen(operation);
    const copy = plainCopy(operation, value);
    await this.#save(operation, addStep(this.#saved ?? [], copy === undefined ? { name } : { name, value: copy }));
    return value;
  }

  async #save(operation: string, steps: NonNullable<CallRecord["steps"]>): Promise<void> {
    this.#saved = steps;
    await this.#call.saveSteps();
    this.#expectOpen(operation); // also if the save has failed
  }

  /** Throws if the value of a step could not be stored. */
  #expectOpen(operation: string): void {
    const { phase, scope: { engine } } = this.#call;
    if (engine.isEnding) engine.exit.check(); // throws the reason
    if (phase.at === "running") {
      if (engine.loop.detached) throw new End("the run is over"); // another process has it
      return;
    }
    const error = new TypeError(`${operation}: the call has ended; expected the tool to await its steps`);
    engine.events.report(error); // nothing may wait for the step
    throw error;
  }
}

/** Returns groups with one more step. */
function addStep(groups: NonNullable<CallRecord["steps"]>, step: CallStep): NonNullable<CallRecord["steps"]> {
  const last = groups.at(-1);
  return last && JSON.stringify(last).length < wholeGroup
    ? [...groups.slice(0, -1), [...last, step]]
    : [...groups, [step]];
}
