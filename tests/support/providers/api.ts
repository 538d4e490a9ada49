/**
 * A provider's API as the tests of all adapters see it, and values that its requests share.
 *
 * @module
 */
import type { Model, ModelEvent } from "@jizai/jizai";
import type { ProviderOptions } from "@jizai/jizai/model/openai";

/** A key that no error may contain. */
export const key = "sk-secret-0123456789";

/** The input schema of {@linkcode weather}. */
export const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A tool definition whose schema names its draft. */
export const weather = { name: "weather", description: "Current weather", schema: { $schema: "draft", ...schema } };

/** A provider's API. */
export interface ProviderApi {
  /** The name of the adapter. */
  readonly name: string;
  /** Creates a model that is reached over it. */
  readonly model: (options?: Partial<ProviderOptions>) => Model;
  /** The path of its requests. */
  readonly path: string;
  /** The query of its requests. Default: none. */
  readonly query?: string;
  /** A response in the documented form: reasoning, text and two parallel calls. */
  readonly stream: string;
  /** The events of `stream`. */
  readonly events: readonly ModelEvent[];
  /** Matches the place in `stream` from which the response counts as finished. */
  readonly finished: RegExp;
  /** Whether the response ends with the stream instead of a last frame. Default: false. */
  readonly endsWithoutFrame?: boolean;
  /** A response of these texts, one frame each. */
  readonly textStream: (...texts: readonly string[]) => string;
  /** A response that calls `weather` with these arguments as JSON text, if the API sends text. */
  readonly callStream?: (input: string) => string;
  /** A frame that reports an overload. */
  readonly overloadedFrame: string;
  /** The message of its error. Default: "Overloaded". */
  readonly overloadedMessage?: string;
  /** Finds the temperature in the body of a request. */
  // deno-lint-ignore no-explicit-any -- each API has a body of its own
  readonly temperatureIn: (body: any) => unknown;
  /** Finds the input of the call in the body of the request that sends it back. */
  // deno-lint-ignore no-explicit-any -- each API has a body of its own
  readonly inputIn: (body: any) => unknown;
}
