/**
 * The structured output as AG-UI state: JSON Patch operations on its member `output`.
 *
 * @module
 */
import type { OutputChange, OutputPath } from "../../protocol/output.ts";

/** Converts the changes of the structured output to JSON Patch operations. */
export interface OutputState {
  /** Adds changes. Returns the operations to send. */
  add(changes: readonly OutputChange[]): readonly object[];
  /** Returns the operations for the text that is held back. */
  flush(): readonly object[];
}

/**
 * Creates the state of one agent. JSON Patch cannot append to a string, so a growing string is sent again each time it has grown by an eighth, and once it is
 * complete: the number of bytes stays linear in its length.
 */
export function outputState(): OutputState {
  let path = "";
  let text = "";
  let sent = "";

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
    if ("value" in change) return [...before, { op: "add", path, value: change.value }];
    text += change.text;
    return text.length - sent.length > sent.length / 8 ? [...before, ...flush()] : before;
  }

  return { add: (changes) => changes.flatMap(operations), flush };
}

function pointerOf(path: OutputPath): string {
  return ["output", ...path].map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
