/**
 * Incremental JSON parser: reads a text in pieces, each character once, and returns the changes of its value.
 *
 * @module
 */
import type { OutputChange } from "../../../protocol/part.ts";
import { type Container, ValueChanges } from "./changes.ts";
import { indexOf, isScalar, readEscape, scalarOf } from "./tokens.ts";

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
export class OutputParser extends ValueChanges {
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
    for (const container of this.open) container.fresh = undefined;
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
      this.begun = true;
    } else if (char === code.brace || char === code.open) {
      const isArray = char === code.open;
      const fresh: Container["fresh"] = isArray ? [] : {};
      this.place(fresh);
      this.container = { key: isArray ? 0 : "", fresh };
      this.open.push(this.container);
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
    const container = this.open.pop();
    this.container = this.open.at(-1);
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
