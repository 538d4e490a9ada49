/**
 * Prints every error, warning and refusal of the library with its code and its place, sorted by text.
 *
 * ```sh
 * deno task messages
 * ```
 *
 * @module
 */
import { messagesOf } from "./support/messages.ts";
import { read } from "./support/source.ts";

const messages = (await read("src", "middleware")).flatMap(messagesOf);
for (
  const { kind, code, text, place } of messages.sort((a, b) =>
    a.kind.localeCompare(b.kind) || (a.text < b.text ? -1 : 1)
  )
) {
  console.log(`${[kind, code].filter((word) => word !== "").join(" ")}\n  ${text}\n  ${place}`);
}
