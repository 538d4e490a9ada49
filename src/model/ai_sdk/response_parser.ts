/**
 * Parses the stream parts of AI SDK models, and converts their errors.
 *
 * @module
 */
import { ModelError, type ModelEvent } from "../model.ts";
import { providerErrors } from "../provider_error.ts";
import { callEvent, resultEvent, sourceEvent } from "../provider_note.ts";
import { idField, numberIn, stringIn } from "../response.ts";
import type { FinishReason } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { Json } from "../../protocol/part.ts";
import { isObject, jsonOrText, type UnknownObject } from "../../protocol/shape.ts";

// Converts errors of the AI SDK, thrown or streamed, to `ModelError`.

/** Converts an error of `model`. `streaming` is true once the response has begun. */
export function modelErrorOf(error: unknown, model: string, streaming: boolean): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof Error && !("isRetryable" in error)) return otherError(error, model, streaming);
  const { statusCode, responseHeaders, isRetryable, data, cause }: UnknownObject = isObject(error) ? error : {};
  const status = typeof statusCode === "number" ? { status: statusCode } : {};
  // with a status of success, the SDK could not read the response
  if (status.status && status.status < 400) return cutError(model, cause);
  const headers = headersOf(responseHeaders);
  if (!status.status && isRetryable !== undefined) headers.set("x-should-retry", String(isRetryable)); // the header servers use for it
  // the error is not set as cause: it contains the whole request and response
  return providerErrors(model, []).fromBody(isObject(data) && data.error ? data : error, { ...status, headers });
}

/** Creates the error of a response that broke off. */
function cutError(model: string, cause?: unknown): ModelError {
  return new ModelError(`Cannot read the response of ${model}: the stream was cut or is invalid`, {
    recoverable: true,
    ...(cause !== undefined && { cause }),
  });
}

/** Converts an error that is not the SDK's. Before the response, platforms throw a TypeError for a connection that breaks. */
function otherError(error: Error, model: string, streaming: boolean): ModelError {
  if (streaming) return cutError(model, error);
  if (!(error instanceof TypeError)) {
    return new ModelError(`Cannot ask ${model}: its provider failed`, { cause: error });
  }
  return new ModelError(`Cannot reach ${model}: the connection failed`, { cause: error, recoverable: true });
}

/** Converts headers from the SDK's record. */
export function headersOf(source: unknown): Headers {
  const fields = Object.entries(isObject(source) ? source : {});
  return new Headers(fields.map(([name, value]) => [name, `${value ?? ""}`]));
}

// The parser of a response: each part of the AI SDK becomes the events of the model.

const reasons = new Map<unknown, FinishReason>([
  ["stop", "stop"],
  ["tool-calls", "calls"],
  ["length", "length"],
  ["content-filter", "filter"],
]);

/** The types of parts without content that no other part contains. */
const silent: ReadonlySet<string> = new Set([
  "stream-start",
  "ping",
  "raw",
  "text-end",
  "reasoning-start",
  "tool-input-end",
  "tool-result", // a preliminary one, which the final one replaces
]);

/** Creates a parser for one response of `model`. It returns the events of a part, and throws the error of an error part. */
export function partParser(model: string): (part: unknown) => readonly ModelEvent[] {
  /** The calls that have begun, and whether their input was streamed. */
  const calls = new Map<string, boolean>();
  /** The end of the last call, if its input is empty, and empty parts after it: SDKs write `{}` also for a call that was cut before its input. */
  let pending: readonly ModelEvent[] = [];
  let metadata: unknown;
  const warned = new Set<string>();
  let responseId: unknown;

  /** Warns of a kind of part that is left out, once. */
  function warn(type: string): readonly ModelEvent[] {
    warned.add(type);
    return [{ type: "warning", message: `The response of ${model} contains a part of type "${type}".` }];
  }

  /** Stores provider metadata in an empty reasoning part, to send it back with the part that follows. */
  function note(metadata: unknown): readonly ModelEvent[] {
    return metadata ? [{ type: "reasoning", text: "", meta: { model, next: metadata as Json } }] : []; // plain data, by contract
  }

  function endReasoning(): readonly ModelEvent[] {
    const options = metadata as Json | undefined; // plain data, by contract
    metadata = undefined;
    return [{ type: "reasoning", text: "", meta: { model, ...(options !== undefined && { options }) } }];
  }

  function call(part: UnknownObject): readonly ModelEvent[] {
    const id = stringIn(part, "toolCallId");
    const input = stringIn(part, "input");
    const startEvents = calls.has(id) ? [] : [{ type: "call.start", id, name: stringIn(part, "toolName") } as const];
    if (!calls.get(id) && /^\s*(\{\s*\})?\s*$/.test(input)) {
      pending = [{ type: "call.end", id }];
      return [...startEvents, ...note(part.providerMetadata)];
    }
    const deltaEvents = calls.get(id) ? [] : [{ type: "call.delta", id, text: input } as const];
    return [...startEvents, ...deltaEvents, ...note(part.providerMetadata), { type: "call.end", id }];
  }

  /** Returns the event of a call that the provider runs. */
  function providerCall({ toolCallId, toolName, input, providerMetadata }: UnknownObject): ModelEvent {
    const fields = { callId: toolCallId, name: toolName, input: jsonOrText(input) };
    return callEvent(fields, noteOf(toolName, providerMetadata));
  }

  function providerResult({ toolCallId, toolName, result, isError, providerMetadata }: UnknownObject): ModelEvent {
    const status = isError ? "error" : "ok";
    const fields = { callId: toolCallId, name: toolName, status, output: result } as const;
    return resultEvent(fields, noteOf(toolName, providerMetadata));
  }

  function noteOf(toolName: unknown, options: unknown): UnknownObject {
    return { model, toolName, ...(options !== undefined && { options }) };
  }

  return (part) => {
    const [end, ...after] = pending;
    pending = [];
    const events = isObject(part) ? eventsOf(part) : [];
    if (!end) return events;
    if (isCut(events.at(-1))) return [...after, ...events];
    const hasContent = pending.length > 0 || events.some((event) => !("text" in event) || event.text !== "");
    if (hasContent) return [end, ...after, ...events];
    pending = [end, ...after, ...events];
    return [];
  };

  function eventsOf(part: UnknownObject): readonly ModelEvent[] {
    const { providerMetadata } = part;
    const type = stringIn(part, "type");
    if (type === "tool-result" && part.toolCallId && !part.preliminary) return [providerResult(part)];
    if (part.providerExecuted) return type === "tool-call" ? [providerCall(part)] : [];
    if (type.startsWith("reasoning-")) metadata = providerMetadata ?? metadata;
    switch (type) {
      case "response-metadata":
        responseId = part.id ?? responseId;
        return [];
      case "text-start":
        return note(providerMetadata);
      case "text-delta":
        return [{ type: "text", text: stringIn(part, "delta") }];
      case "reasoning-delta":
        return [{ type: "reasoning", text: stringIn(part, "delta") }];
      case "reasoning-end":
        return endReasoning();
      case "tool-input-start":
        calls.set(stringIn(part, "id"), false);
        return [{ type: "call.start", id: stringIn(part, "id"), name: stringIn(part, "toolName") }];
      case "tool-input-delta":
        if (!calls.has(stringIn(part, "id"))) return []; // a call of a tool that the provider runs
        calls.set(stringIn(part, "id"), true);
        return [{ type: "call.delta", id: stringIn(part, "id"), text: stringIn(part, "delta") }];
      case "tool-call":
        return call(part);
      case "source":
        return sourceOf(part);
      case "file":
        return fileOf(part);
      case "error":
        throw part.error;
      case "finish":
        return [{ ...finishOf(part, model), ...idField(responseId) }];
      case "tool-approval-request":
        throw new ModelError(
          `Cannot read the response of ${model}: its provider asks before it runs a call, which aiSdk() cannot answer`,
        );
      default:
        return silent.has(type) || warned.has(type) ? [] : warn(type);
    }
  }
}

/** Whether an event ends a response that was cut, maybe within its last call. */
function isCut(event: ModelEvent | undefined): boolean {
  return event?.type === "finish" && event.reason !== "stop" && event.reason !== "calls";
}

/** Returns the event of a source; nothing for one without an address and a title. */
function sourceOf({ url, title, filename }: UnknownObject): readonly ModelEvent[] {
  const event = sourceEvent({ url, title: title ?? filename });
  return url ?? title ?? filename ? [event] : [];
}

/** Returns the event of a generated file, whose data is base64 or bytes: the value itself in v2 and v3, and a field of it in v4. */
function fileOf(part: UnknownObject): readonly ModelEvent[] {
  const { data } = part;
  const mediaType = stringIn(part, "mediaType");
  const value = isObject(data) && !(data instanceof Uint8Array) ? data.data ?? data.url : data;
  if (value instanceof URL) return [{ type: "part", part: { type: "media", mediaType, url: value.href } }];
  if (value instanceof Uint8Array) {
    const binary = Array.from(value, (byte) => String.fromCharCode(byte)).join("");
    return [{ type: "part", part: { type: "media", mediaType, data: btoa(binary) } }];
  }
  if (typeof value !== "string") return [];
  const isUrl = /^https?:/.test(value);
  return [{ type: "part", part: { type: "media", mediaType, ...(isUrl ? { url: value } : { data: value }) } }];
}

function finishOf({ finishReason, usage }: UnknownObject, model: string): Extract<ModelEvent, { type: "finish" }> {
  const { unified: reason, raw }: UnknownObject = isObject(finishReason) ? finishReason : { unified: finishReason };
  if (reason === "error" || reason === "interrupted") throw cutError(model);
  const isMissing = reason === "unknown" || (reason === "other" && raw === undefined);
  if (isMissing && isObject(usage) && !isCounted(usage)) throw cutError(model);
  const unified = raw === "refusal" ? raw : reasons.get(reason) ?? "other";
  return { type: "finish", reason: unified, ...(isObject(usage) && { usage: usageOf(usage) }) };
}

/** Whether the output was counted. Up to v3, a response that was cut ends with neither a reason nor a count. */
function isCounted({ outputTokens }: UnknownObject): boolean {
  return (isObject(outputTokens) ? outputTokens.total : outputTokens) !== undefined;
}

/** Converts token counts: numbers in v2, objects since. */
function usageOf(counts: UnknownObject): Usage {
  const { inputTokens: read, outputTokens: written } = counts;
  const input = isObject(read) ? read : { total: read, cacheRead: counts.cachedInputTokens };
  const output = isObject(written) ? written : { total: written, reasoning: counts.reasoningTokens };
  return addUsage(noUsage, {
    input: numberIn(input, "total"),
    output: numberIn(output, "total"),
    cached: numberIn(input, "cacheRead"),
    cacheWrite: numberIn(input, "cacheWrite"),
    reasoning: numberIn(output, "reasoning"),
  });
}
