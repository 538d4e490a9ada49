/**
 * Incremental JSON parser: reads a text in pieces, each character once, and returns the changes of its value.
 *
 * @module
 */
import type { Json } from "../../../protocol/message.ts";
import type { OutputChange, OutputPath } from "../../../protocol/output.ts";
import { setMember } from "./value.ts";

/** An object or array that is open. */
interface Container {
  readonly isArray: boolean;
  /** The key or index of the member that is read. */
  key: string | number;
  /** The value itself, while the piece in which it began is read: its members are set directly, and need no change of their own. */
  fresh: Json[] | { [key: string]: Json } | undefined;
}

/** The token that is expected or read. `failed` ignores the rest of a text that is not JSON. */
type Mode = "start" | "fence" | "value" | "key" | "keyText" | "colon" | "next" | "text" | "scalar" | "end" | "failed";

const escapes: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Character codes: comparing codes is faster than comparing characters. */
const code = {
  space: 32,
  quote: 34,
  comma: 44,
  colon: 58,
  open: 91,
  backslash: 92,
  close: 93,
  brace: 123,
  unbrace: 125,
};

/**
 * A text in progress. A fenced code block around the value is skipped. A string grows as it arrives; a number, a boolean and null appear once they are
 * complete. A text that is not JSON has no changes from the first wrong character on.
 */
export class OutputParser {
  #mode: Mode = "start";
  #open: Container[] = [];
  /** The innermost open container. */
  #container: Container | undefined;
  /** The incomplete escape at the end of the last piece. */
  #rest = "";
  /** The key or scalar so far. */
  #token = "";
  /** The new text of the string that is read, and whether the string began in this piece. */
  #text = "";
  #begun = false;
  /** The path of the string that grows. */
  #textPath: OutputPath | undefined;
  /** The position of the next quote and of the next backslash in the piece, if known. */
  #quote = -1;
  #backslash = -1;
  #changes: OutputChange[] = [];

  /** Reads the next piece. Returns the changes. */
  add(piece: string): readonly OutputChange[] {
    if (this.#textPath && this.#isPlain(piece)) return [{ path: this.#textPath, text: piece }];
    const text = this.#rest + piece;
    this.#rest = "";
    this.#quote = this.#backslash = -1;
    this.#changes = [];
    for (let at = 0; at < text.length;) at = this.#read(text, at);
    if (this.#mode === "text") this.#growText();
    for (const container of this.#open) container.fresh = undefined;
    return this.#changes;
  }

  /** Whether a piece, which is most of a long string, has nothing but text of the string that grows. */
  #isPlain(piece: string): boolean {
    return this.#mode === "text" && this.#rest === "" && piece !== "" && !piece.includes('"') && !piece.includes("\\");
  }

  /** Reads one token, or the part of it that has arrived. Returns the position after it. */
  #read(text: string, at: number): number {
    switch (this.#mode) {
      case "text":
      case "keyText":
        return this.#readString(text, at);
      case "scalar":
        return this.#readScalar(text, at);
      case "fence":
        if (text.charAt(at) === "\n") this.#mode = "start";
        return at + 1;
      case "end":
      case "failed":
        return text.length;
    }
    const char = text.charCodeAt(at);
    return char <= code.space ? at + 1 : this.#readMark(text, char, at);
  }

  /** Reads one character between strings and scalars. */
  #readMark(text: string, char: number, at: number): number {
    const mode = this.#mode;
    if (char === code.close || char === code.unbrace) this.#close(char === code.close);
    else if (mode === "value") return this.#beginValue(text, char, at);
    else if (mode === "key" && char === code.quote) return this.#beginKey(text, at);
    else if (mode === "colon" && char === code.colon) this.#mode = "value";
    else if (mode === "next" && char === code.comma) this.#continue();
    else if (mode === "start") {
      this.#mode = char === 96 ? "fence" : "value"; // a backtick
      return char === 96 ? at + 1 : at;
    } else this.#mode = "failed";
    return at + 1;
  }

  /** Begins a key. One that is complete in this piece, which most are, is read at once. */
  #beginKey(text: string, at: number): number {
    const end = this.#stringEnd(text, at + 1);
    if (end === this.#quote && text.charCodeAt(end + 1) === code.colon && this.#container) {
      this.#container.key = text.slice(at + 1, end);
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
        this.#place(text.slice(at + 1, end));
        this.#endValue();
        return end + 1;
      }
      this.#mode = "text";
      this.#begun = true;
    } else if (char === code.brace || char === code.open) {
      const isArray = char === code.open;
      const fresh: Container["fresh"] = isArray ? [] : {};
      this.#place(fresh);
      this.#container = { isArray, key: isArray ? 0 : "", fresh };
      this.#open.push(this.#container);
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
    const container = this.#container;
    if (typeof container?.key === "number") container.key++;
    this.#mode = container?.isArray ? "value" : "key";
  }

  #close(isArray: boolean): void {
    const container = this.#open.pop();
    this.#container = this.#open.at(-1);
    this.#endValue();
    if (container?.isArray !== isArray) this.#mode = "failed";
  }

  #endValue(): void {
    this.#mode = this.#container ? "next" : "end";
  }

  #readScalar(text: string, at: number): number {
    let end = at;
    while (end < text.length && isScalar(text.charCodeAt(end))) end++;
    this.#token += text.slice(at, end);
    if (end === text.length) return end;
    const value = scalarOf(this.#token);
    if (value === undefined) this.#mode = "failed";
    else {
      this.#place(value);
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
      this.#endText();
      this.#endValue();
    } else {
      if (this.#container) this.#container.key = this.#token;
      this.#mode = "colon";
    }
    return end + 1;
  }

  /** Reads an escape. The escapes of a surrogate pair are read together. */
  #readEscape(text: string, at: number): number {
    const letter = text.charAt(at + 1);
    const isHigh = /^u[dD][89abAB]/.test(text.slice(at + 1, at + 4));
    const length = letter === "u" ? isHigh ? 12 : 6 : 2;
    if (text.length - at < length) {
      this.#rest = text.slice(at);
      return text.length;
    }
    if (letter !== "u") {
      this.#append(escapes[letter] ?? letter);
      return at + 2;
    }
    const [digits = "", first = "", second] =
      /^\\u([\da-fA-F]{4})(?:\\u([\da-fA-F]{4}))?/.exec(text.slice(at, at + length)) ?? [];
    if (digits === "") {
      this.#mode = "failed";
      return text.length;
    }
    this.#append(String.fromCharCode(...[first, second ?? []].flat().map((hex) => parseInt(hex, 16))));
    return at + digits.length;
  }

  /** Returns the position of the next quote or backslash, or the end of the piece. Each is searched once, so that the time stays linear. */
  #stringEnd(text: string, at: number): number {
    if (this.#quote < at) this.#quote = indexOf(text, '"', at);
    if (this.#backslash < at) this.#backslash = indexOf(text, "\\", at);
    return Math.min(this.#quote, this.#backslash);
  }

  #append(text: string): void {
    if (this.#mode === "text") this.#text += text;
    else this.#token += text;
  }

  /** Emits the new text of a string that goes on in the next piece. Such a string begins as an empty one. */
  #growText(): void {
    if (this.#begun) this.#place("");
    this.#begun = false;
    if (this.#text !== "") this.#changes.push({ path: this.#textPath ??= this.#path(), text: this.#text });
    this.#text = "";
  }

  #endText(): void {
    if (!this.#begun) return this.#growText();
    this.#begun = false;
    this.#place(this.#text);
    this.#text = "";
  }

  /** Sets a new value at the current path. */
  #place(value: Json): void {
    this.#textPath = undefined;
    const container = this.#container;
    if (container?.fresh) setMember(container.fresh, container.key, value);
    else this.#changes.push({ path: this.#path(), value });
  }

  #path(): OutputPath {
    return this.#open.map(({ key }) => key);
  }
}

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
