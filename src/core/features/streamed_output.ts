/**
 * Streamed structured output: the answer's value, while the model writes it. It is built on an incremental JSON parser.
 *
 * @module
 */
import type { OutputStream } from "../output.ts";
import { type Schema, standardOf } from "../tool.ts";
import { type Event, isLastEvent } from "../../protocol/event.ts";
import type { Json, OutputChange, OutputPath } from "../../protocol/part.ts";
export type { OutputChange, OutputPath } from "../../protocol/part.ts";
export type { DeepPartial, OutputStream } from "../output.ts";

// The tokens of JSON: marks, scalars and escapes.

const escapes: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Returns the position of a character, or the end of the text. */
function indexOf(text: string, character: string, at: number): number {
  const index = text.indexOf(character, at);
  return index < 0 ? text.length : index;
}

/** Whether a character belongs to a number, a boolean or null: a digit, a small letter, `E`, or one of `+-.`. */
function isScalar(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 97 && char <= 122) || char === 69 ||
    (char >= 43 && char <= 46 && char !== 44);
}

/** Parses a number, a boolean or null. Undefined for any other text. */
function scalarOf(token: string): Json | undefined {
  if (token === "true" || token === "false") return token === "true";
  if (token === "null") return null;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(token) ? Number(token) : undefined;
}

/** A decoded escape, and the number of characters that it takes. */
interface Escape {
  readonly text: string;
  readonly length: number;
}

/** Decodes the escape at a position. The escapes of a surrogate pair are read together. */
function readEscape(text: string, at: number): Escape | "incomplete" | "wrong" {
  const letter = text.charAt(at + 1);
  const isHigh = /^u[dD][89abAB]/.test(text.slice(at + 1, at + 4));
  const length = letter === "u" ? isHigh ? 12 : 6 : 2;
  if (text.length - at < length) return "incomplete";
  if (letter !== "u") return { text: escapes[letter] ?? letter, length };
  const [digits = "", first = "", second] =
    /^\\u([\da-fA-F]{4})(?:\\u([\da-fA-F]{4}))?/.exec(text.slice(at, at + length)) ?? [];
  if (digits === "") return "wrong";
  const units = [first, second ?? []].flat().map((hex) => parseInt(hex, 16));
  return { text: String.fromCharCode(...units), length: digits.length };
}

// The partial value of a structured answer, folded from the changes of its events.

type MutableJson = Json[] | { [key: string]: Json };

/** Sets a member, also one named `__proto__`, as `JSON.parse()` does. */
function setMember(container: MutableJson, key: string | number, value: Json): void {
  const members = container as { [key: string | number]: Json }; // an array is indexed by numbers
  if (key !== "__proto__") members[key] = value;
  else Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * A partial value. Folds the changes of `output.delta` events, here or in a client.
 *
 * ```ts
 * import { PartialOutput } from "@jizai/jizai/output";
 * import { assertEquals } from "@std/assert";
 *
 * const output = new PartialOutput();
 * output.add([{ path: [], value: { city: "Kyo" } }]);
 * output.add([{ path: ["city"], text: "to" }]);
 * assertEquals(output.value, { city: "Kyoto" });
 * ```
 */
export class PartialOutput {
  #value: Json | undefined;
  /** The containers on the path of the last change, by depth, unless a reader has received them: these are changed in place, and others are copied first. */
  #copies: MutableJson[] = [];

  /** The value so far. Later changes do not change it. Undefined before the first change. */
  get value(): Json | undefined {
    this.#copies = [];
    return this.#value;
  }

  /** Applies changes. Throws a `TypeError` if a path leads through a value that is neither an object nor an array. */
  add(changes: readonly OutputChange[]): void {
    for (const change of changes) this.#value = this.#changed(this.#value, change, 0);
  }

  /** Returns the value at a depth of the path, changed. */
  #changed(old: Json | undefined, change: OutputChange, depth: number): Json {
    const { path } = change;
    if (depth === path.length) return "value" in change ? change.value : `${old ?? ""}${change.text}`;
    const key = path[depth] ?? "";
    const container = this.#owned(old, path, depth);
    const member = Object.hasOwn(container, key) ? Reflect.get(container, key) : undefined;
    setMember(container, key, this.#changed(member, change, depth + 1));
    return container;
  }

  /** Returns the container itself if it may be changed, or else a copy. */
  #owned(old: Json | undefined, path: OutputChange["path"], depth: number): MutableJson {
    const levelCopy = this.#copies[depth];
    if (levelCopy !== undefined && levelCopy === old) return levelCopy;
    if (typeof old !== "object" || old === null) {
      throw new TypeError(`Cannot change the output at ${JSON.stringify(path)}: expected an object or an array`);
    }
    const copy = (Array.isArray(old) ? [...old] : { ...old }) as MutableJson; // isArray() does not narrow readonly arrays
    this.#copies[depth] = copy;
    return copy;
  }
}

// The changes of a value while it is parsed: new values, and text of the string that grows.

/** An object or array that is open. */
interface Container {
  /** The key of the member that is read; in an array its index. */
  key: string | number;
  /** The value itself, while the piece in which it began is read: its members are set directly, and need no change of their own. */
  fresh: Json[] | { [key: string]: Json } | undefined;
}

/** The value that a parser reads, as far as the changes of a piece need it. It is the base of the parser, because a call to another object costs too much here. */
class ValueChanges {
  /** The open containers, outermost first. */
  protected containers: Container[] = [];
  /** The innermost open container. */
  protected container: Container | undefined;
  /** The new text of the string that is read. */
  protected text = "";
  /** Whether the string began in this piece. */
  protected isNewString = false;
  /** The path of the string that grows. */
  protected textPath: OutputPath | undefined;
  /** The changes of this piece. */
  protected changes: OutputChange[] = [];

  /** Emits the new text of a string, which ends or goes on in the next piece. */
  protected growText(): void {
    if (this.isNewString) this.place(this.text);
    else if (this.text !== "") this.changes.push({ path: this.textPath ??= this.path(), text: this.text });
    this.isNewString = false;
    this.text = "";
  }

  /** Sets a new value at the current path. */
  protected place(value: Json): void {
    this.textPath = undefined;
    const container = this.container;
    const fresh = container?.fresh;
    if (Array.isArray(fresh)) fresh.push(value); // faster than a new index
    else if (container && fresh) setMember(fresh, container.key, value);
    else this.changes.push({ path: this.path(), value });
  }

  protected path(): OutputPath {
    return this.containers.map(({ key }) => key);
  }
}

// Incremental JSON parser: reads a text in pieces, each character once, and returns the changes of its value.

/** The token that is expected or read. `end` ignores what follows the value, and the rest of a text that is not JSON. */
type Mode = "start" | "fence" | "value" | "key" | "keyText" | "colon" | "next" | "text" | "scalar" | "end";

/** Character codes: comparing codes is faster than comparing characters. */
const code = {
  space: 32,
  quote: 34,
  comma: 44,
  colon: 58,
  open: 91,
  close: 93,
  backtick: 96,
  brace: 123,
  unbrace: 125,
};

/**
 * A text in progress. A fenced code block around the value is skipped. A string grows as it arrives; a number, a boolean and null appear once they are
 * complete. A text that is not JSON has no changes from the first wrong character on.
 */
class OutputParser extends ValueChanges {
  #mode: Mode = "start";
  /** The incomplete escape at the end of the last piece. */
  #rest = "";
  /** The key or scalar so far. */
  #token = "";
  /** The position of the next quote and of the next backslash in the piece, if known. */
  #quote = -1;
  #backslash = -1;

  /** Reads the next piece. Returns the changes. */
  add(piece: string): readonly OutputChange[] {
    const text = this.#rest === "" ? piece : this.#rest + piece;
    this.#rest = "";
    this.#quote = indexOf(text, '"', 0);
    this.#backslash = indexOf(text, "\\", 0);
    if (this.textPath && this.#mode === "text" && this.#quote === this.#backslash && text !== "") {
      return [{ path: this.textPath, text }]; // without a quote and a backslash, as most pieces of a long string
    }
    this.changes = [];
    for (let at = 0; at < text.length;) at = this.#read(text, at);
    if (this.#mode === "text") this.growText();
    for (const container of this.containers) container.fresh = undefined;
    return this.changes;
  }

  /** Reads one token, or the part of it that has arrived. Returns the position after it. */
  #read(text: string, at: number): number {
    const mode = this.#mode;
    if (mode === "text" || mode === "keyText") return this.#readString(text, at);
    if (mode === "scalar") return this.#readScalar(text, at);
    const char = text.charCodeAt(at);
    if (char <= code.space && mode !== "fence") return at + 1;
    if (mode === "value" && char !== code.close && char !== code.unbrace) return this.#beginValue(text, char, at);
    if (mode === "key" && char === code.quote) return this.#beginKey(text, at);
    if (mode === "next" && char === code.comma) this.#continue();
    else if (mode === "colon" && char === code.colon) this.#mode = "value";
    else return this.#readRare(text, char, at);
    return at + 1;
  }

  /** Reads the end of a container, what surrounds the value, or a character that is wrong. */
  #readRare(text: string, char: number, at: number): number {
    switch (this.#mode) {
      case "fence":
        if (text.charAt(at) === "\n") this.#mode = "start";
        return at + 1;
      case "start":
        this.#mode = char === code.backtick ? "fence" : "value";
        return char === code.backtick ? at + 1 : at;
      case "end":
        return text.length;
    }
    if (char === code.close || char === code.unbrace) this.#close(char === code.close);
    else this.#mode = "end";
    return at + 1;
  }

  /** Begins a key. One that is complete in this piece, which most are, is read at once. */
  #beginKey(text: string, at: number): number {
    const end = this.#stringEnd(text, at + 1);
    if (end === this.#quote && text.charCodeAt(end + 1) === code.colon && this.container) {
      this.container.key = text.slice(at + 1, end);
      this.#mode = "value";
      return end + 2;
    }
    this.#token = "";
    this.#mode = "keyText";
    return at + 1;
  }

  /** Begins a value. A string that is complete in this piece is read at once, and a scalar from its first character on. */
  #beginValue(text: string, char: number, at: number): number {
    if (char === code.quote) {
      const end = this.#stringEnd(text, at + 1);
      if (end < text.length && end === this.#quote) {
        this.place(text.slice(at + 1, end));
        this.#endValue();
        return end + 1;
      }
      this.#mode = "text";
      this.isNewString = true;
    } else if (char === code.brace || char === code.open) {
      const isArray = char === code.open;
      const fresh: Container["fresh"] = isArray ? [] : {};
      this.place(fresh);
      this.container = { key: isArray ? 0 : "", fresh };
      this.containers.push(this.container);
      this.#mode = isArray ? "value" : "key";
    } else {
      this.#token = "";
      this.#mode = "scalar";
      return at;
    }
    return at + 1;
  }

  /** Begins the next member. */
  #continue(): void {
    const container = this.container;
    this.#mode = "key";
    if (typeof container?.key === "number") {
      container.key++;
      this.#mode = "value";
    }
  }

  #close(isArray: boolean): void {
    const container = this.containers.pop();
    this.container = this.containers.at(-1);
    this.#endValue();
    if ((typeof container?.key === "number") !== isArray) this.#mode = "end";
  }

  #endValue(): void {
    this.#mode = this.container ? "next" : "end";
  }

  #readScalar(text: string, at: number): number {
    let end = at;
    while (end < text.length && isScalar(text.charCodeAt(end))) end++;
    this.#token += text.slice(at, end);
    if (end === text.length) return end;
    const value = scalarOf(this.#token);
    if (value === undefined) this.#mode = "end";
    else {
      this.place(value);
      this.#endValue();
    }
    return end;
  }

  #readString(text: string, at: number): number {
    const end = this.#stringEnd(text, at);
    if (end > at) this.#append(end - at === text.length ? text : text.slice(at, end));
    if (end === text.length) return end;
    if (end === this.#backslash) return this.#readEscape(text, end);
    if (this.#mode === "text") {
      this.growText();
      this.#endValue();
    } else {
      if (this.container) this.container.key = this.#token;
      this.#mode = "colon";
    }
    return end + 1;
  }

  #readEscape(text: string, at: number): number {
    const escape = readEscape(text, at);
    if (typeof escape === "object") {
      this.#append(escape.text);
      return at + escape.length;
    }
    if (escape === "wrong") this.#mode = "end";
    else this.#rest = text.slice(at);
    return text.length;
  }

  /** Returns the position of the next quote or backslash, or the end of the piece. Each is searched once, so that the time stays linear. */
  #stringEnd(text: string, at: number): number {
    if (this.#quote < at) this.#quote = indexOf(text, '"', at);
    if (this.#backslash < at) this.#backslash = indexOf(text, "\\", at);
    return Math.min(this.#quote, this.#backslash);
  }

  #append(text: string): void {
    if (this.#mode === "text") this.text += text;
    else this.#token += text;
  }
}

// Structured output whose value is streamed: `streamed()`.

/** A schema whose values are streamed. */
export interface StreamedSchema<S extends Schema> {
  /** The schema. */
  readonly "~standard": S["~standard"];
  /** The stream of values, for the engine. */
  readonly "~stream": OutputStream;
}

/**
 * Streams the structured output of an agent: `output.delta` events carry the changes of the partial value, and `run.output` iterates over the partial values.
 * They are derived from the text that clients receive, after every hook, and they are not validated. Only the final output is.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { streamed } from "@jizai/jizai/output";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const model = scripted({ text: ['{"city":"Kyo', 'to","sunny":tr', "ue}"] });
 * const forecast = agent({ model, output: streamed(z.object({ city: z.string(), sunny: z.boolean() })) });
 *
 * const run = forecast.run("Weather in Kyoto?");
 * for await (const partial of run.output) show(partial.city);
 * assertEquals((await run.result).output, { city: "Kyoto", sunny: true });
 *
 * function show(_city?: string) {} // draws your page
 * ```
 */
export function streamed<S extends Schema>(schema: S): StreamedSchema<S> {
  return { "~standard": standardOf(schema), "~stream": { derive: deriveChanges, collect: collectValues } };
}

/**
 * Creates a function that returns the `output.delta` event which follows an event, if there is one. A turn that is asked again begins a new value, and so does
 * a text that replaces the streamed one.
 */
function deriveChanges(): (event: Event) => Event | undefined {
  let parser = new OutputParser();
  return (event) => {
    if (event.type.startsWith("model.")) parser = new OutputParser();
    if (event.type !== "text.delta" && event.type !== "model.finished") return undefined;
    const { turn, text = "" } = event;
    const changes = parser.add(text);
    return changes.length > 0 ? { type: "output.delta", turn, changes } : undefined;
  };
}

/** Collects the partial values of one run. */
function collectValues(): ReturnType<OutputStream["collect"]> {
  const output = new PartialOutput();
  let changed = Promise.withResolvers<void>();
  let version = 0;
  let over = false;

  function add(event: Event): void {
    if (event.type === "output.delta") {
      output.add(event.changes);
      version++;
    } else if (isLastEvent(event)) over = true;
    else return;
    changed.resolve();
    changed = Promise.withResolvers();
  }

  async function* values(): AsyncGenerator<unknown> {
    for (let seen = 0;;) {
      if (seen < version) {
        seen = version;
        yield output.value;
      } else if (over) return;
      else await changed.promise;
    }
  }
  return { add, values: { [Symbol.asyncIterator]: values } };
}
