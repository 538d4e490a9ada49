/**
 * The changes of a value while it is parsed: new values, and text of the string that grows.
 *
 * @module
 */
import type { Json, OutputChange, OutputPath } from "../../../protocol/part.ts";
import { setMember } from "./value.ts";

/** An object or array that is open. */
export interface Container {
  /** The key of the member that is read; in an array its index. */
  key: string | number;
  /** The value itself, while the piece in which it began is read: its members are set directly, and need no change of their own. */
  fresh: Json[] | { [key: string]: Json } | undefined;
}

/** The value that a parser reads, as far as the changes of a piece need it. It is the base of the parser, because a call to another object costs too much here. */
export class ValueChanges {
  /** The open containers, outermost first. */
  protected open: Container[] = [];
  /** The innermost open container. */
  protected container: Container | undefined;
  /** The new text of the string that is read. */
  protected text = "";
  /** Whether the string began in this piece. */
  protected begun = false;
  /** The path of the string that grows. */
  protected textPath: OutputPath | undefined;
  /** The changes of this piece. */
  protected changes: OutputChange[] = [];

  /** Emits the new text of a string, which ends or goes on in the next piece. */
  protected growText(): void {
    if (this.begun) this.place(this.text);
    else if (this.text !== "") this.changes.push({ path: this.textPath ??= this.path(), text: this.text });
    this.begun = false;
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
    return this.open.map(({ key }) => key);
  }
}
