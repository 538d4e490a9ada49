/**
 * The structured output as AG-UI state: JSON Patch operations on its member `output`.
 *
 * @module
 */
import type { OutputChange, OutputPath } from "../../protocol/part.ts";

/** Encodes the changes of the structured output as JSON Patch operations. */
export interface OutputState {
  /** Adds changes. Encodes the operations to send; nothing if there are none. */
  add(changes: readonly OutputChange[]): string;
  /** Encodes the operation for the text that is held back; nothing if there is none. */
  flush(): string;
  /** Encodes the removal of the member, because the model begins again; nothing if there is none. */
  discard(): string;
}

/**
 * Creates the state of one agent, whose events `frame` encodes. JSON Patch cannot append to a string, so a growing string is sent again each time it has grown by an eighth, and once it is
 * complete: the number of bytes stays linear in its length.
 */
export function outputState(frame: (type: string, fields: object) => string): OutputState {
  let path = "";
  let text = "";
  let sent = "";
  let hasOutput = false;

  function flush(): object[] {
    if (text === sent) return [];
    sent = text;
    return [{ op: "replace", path, value: text }];
  }

  function operations(change: OutputChange): object[] {
    const pointer = pointerOf(change.path);
    const before = pointer === path && "text" in change ? [] : flush();
    if (pointer !== path || "value" in change) text = sent = ""; // a growing string begins as an empty one
    path = pointer;
    hasOutput = true;
    if ("value" in change) return [...before, { op: "add", path, value: change.value }];
    text += change.text;
    return text.length - sent.length > sent.length / 8 ? [...before, ...flush()] : before;
  }

  function encode(delta: readonly object[]): string {
    return delta.length > 0 ? frame("STATE_DELTA", { delta }) : "";
  }

  function discard(): string {
    if (!hasOutput) return "";
    path = text = sent = "";
    hasOutput = false;
    return encode([{ op: "remove", path: pointerOf([]) }]);
  }

  return { discard, add: (changes) => encode(changes.flatMap(operations)), flush: () => encode(flush()) };
}

function pointerOf(path: OutputPath): string {
  return ["output", ...path].map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
