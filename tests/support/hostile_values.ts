/**
 * Values that throw when they are read.
 *
 * @module
 */
import { ToolError } from "@jizai/jizai";

function fail(): never {
  throw new Error("The value cannot be read");
}

/** Returns an object whose field `key` throws when it is read. */
function throwing<T extends object>(value: T, key: string): T {
  return Object.defineProperty(value, key, { enumerable: true, get: fail });
}

const traps = { get: fail, has: fail, getPrototypeOf: fail, ownKeys: fail, getOwnPropertyDescriptor: fail };

/** Creates a value that throws when it is read, by its name. */
export const unreadable: Readonly<Record<string, () => unknown>> = {
  "a proxy": () => new Proxy({}, traps),
  "a proxy of an error": () => new Proxy(new Error("hidden"), traps),
  "a proxy of a function": () => new Proxy(() => {}, traps),
  "a revoked proxy"() {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  "an error without a readable message": () => throwing(new Error("hidden"), "message"),
  "an error without a readable name": () => throwing(new DOMException("hidden", "TimeoutError"), "name"),
  "a ToolError without a readable message": () => throwing(new ToolError("hidden"), "message"),
  "a ToolError whose message is a BigInt": () => Object.assign(new ToolError("hidden"), { message: 1n }),
  "an object that is no text": () => ({ [Symbol.toPrimitive]: fail, toString: fail }),
  "a thenable": () => throwing({}, "then"),
};

/** The fields of a result that a tool may set. */
export const resultFields: readonly [string, ...string[]] = [
  "status",
  "parts",
  "context",
  "person",
  "silent",
  "artifacts",
  "handled",
  "input",
  "rewritten",
];

/** Returns a result with another field, which throws if there is no value for it. */
export function resultWith(key: string, ...value: readonly unknown[]): object {
  const result = { type: "result", status: "ok", parts: [{ type: "text", text: "Seen" }] };
  return value.length === 0 ? throwing(result, key) : { ...result, [key]: value[0] };
}
