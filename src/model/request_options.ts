/**
 * Checks the options of a request, so that an adapter never ignores one silently.
 *
 * @module
 */
import { ModelError, type ModelOptions, type ModelRequest } from "./model.ts";

/** Options that an adapter cannot send. */
export interface OptionLimits {
  /** The provider's name of the model. */
  readonly model: string;
  /** The name of the API, for errors. */
  readonly api: string;
  /** The options that the API lacks. */
  readonly unsupported: readonly (keyof ModelOptions)[];
}

/** Throws a {@linkcode ModelError} if a request has an option that the API lacks, or a tool choice that its tools do not allow. */
export function checkOptions({ options, tools }: ModelRequest, { model, api, unsupported }: OptionLimits): void {
  const missing = unsupported.find((name) => options[name] !== undefined);
  if (missing) throw optionError(model, `${api} has no option ${missing}`);
  const { toolChoice } = options;
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.tool)) {
    throw optionError(model, `toolChoice expects a tool of the request, got "${toolChoice.tool}"`);
  }
}

/** Returns the provider's value for an option. Throws a {@linkcode ModelError} that lists the possible ones if there is none. */
export function optionValue<T>(
  model: string,
  name: keyof ModelOptions,
  value: string,
  values: Readonly<Record<string, T>>,
): T {
  const found = Object.hasOwn(values, value) ? values[value] : undefined;
  if (found !== undefined) return found;
  const expected = Object.keys(values).map((each) => `"${each}"`).join(", ");
  throw optionError(model, `${name} expects one of ${expected}, got "${value}"`);
}

/** Creates the error of an option that cannot be sent. */
export function optionError(model: string, reason: string): ModelError {
  return new ModelError(`Cannot ask ${model}: ${reason}`);
}
