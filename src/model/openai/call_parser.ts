/**
 * Calls of a streamed chat completion. Servers tell the pieces of one call from those of another by an index, an id, both or neither, and some repeat ids, names
 * or whole calls.
 *
 * @module
 */
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import { ModelError, type ModelEvent } from "../model.ts";
import { noteEvent } from "../provider_note.ts";
import { objectIn, stringIn } from "../response.ts";

/** A call whose pieces are being streamed. */
interface OpenCall {
  readonly index: unknown;
  /** True if it began with a piece that may also repeat the name of the call before it. If it stays without input, it was no call. */
  readonly isEcho: boolean;
  /** The server's own id, or an empty string. */
  serverId: string;
  /** The id of its events, once it has begun. */
  id: string;
  name: string;
  /** The input so far, and the pieces in which it came. */
  text: string;
  readonly pieces: string[];
  /** Whether the server sent an object as the input. The text may follow one without members. */
  hasObject: boolean;
  /** Further data of the server, which is sent back. */
  extra: unknown;
}

/** A piece of a call. */
interface Piece {
  readonly index: unknown;
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly hasObject: boolean;
}

/** Collects the calls of one response. */
interface CallParser {
  /** Adds the pieces of one delta. `isRepeated` is true for a message that repeats the deltas before it. */
  readonly add: (pieces: readonly UnknownObject[], events: ModelEvent[], isRepeated: boolean) => void;
  /** Returns the events that end the calls. In a response that was cut, the last call and those without input stay open. */
  readonly end: (isWhole: boolean) => readonly ModelEvent[];
}

/** Creates a parser for the calls of one response of `model`. */
export function callParser(model: string): CallParser {
  const calls: OpenCall[] = [];
  const byIndex = new Map<unknown, OpenCall>();

  function add(pieces: readonly UnknownObject[], events: ModelEvent[], isRepeated: boolean): void {
    const touched = new Set<OpenCall>();
    for (const delta of pieces) {
      const piece = pieceOf(delta);
      const repeated = calls.find((call) =>
        !touched.has(call) && isSame(call, piece) &&
        (isRepeated || (piece.text !== "" && call.text !== "" && hasIdOf(call, piece)))
      );
      const call = repeated ?? callOf(piece, touched);
      touched.add(call);
      if (delta.extra_content) call.extra = delta.extra_content;
      if (!repeated) append(call, piece, events);
    }
  }

  /** Returns the call that a piece belongs to: that with its id, with its index, or the last one. */
  function callOf(piece: Piece, touched: ReadonlySet<OpenCall>): OpenCall {
    const { index, id, name } = piece;
    const last = calls.findLast((call) => hasIdOf(call, piece)) ??
      (index === undefined ? calls.at(-1) : byIndex.get(index));
    if (last && (name === "" || (!touched.has(last) && !beginsCall(last, piece)))) return last;
    const isEcho = last?.name === name && !touched.has(last) && !haveOtherIds(last, piece) && isBare(piece);
    const call = {
      index,
      isEcho,
      serverId: id,
      id: "",
      name: "",
      text: "",
      pieces: [],
      hasObject: false,
      extra: undefined,
    };
    calls.push(call);
    if (index !== undefined) byIndex.set(index, call);
    return call;
  }

  /** Adds a piece to its call. The call begins with its first input, because its name is known then. */
  function append(call: OpenCall, { id, name, text, hasObject }: Piece, events: ModelEvent[]): void {
    // an object never continues one that has ended: it repeats the input
    if (name === "" && text.startsWith("{") && call.text.endsWith("}") && jsonOf(text) === jsonOf(call.text)) return;
    call.serverId ||= id;
    call.hasObject ||= hasObject;
    if (call.name === "") call.name = name;
    else if (call.text === "" && name !== call.name) call.name += name;
    call.text += text;
    if (text !== "") call.pieces.push(text);
    if (call.text === "" || call.name === "") return;
    const more = call.id === "" ? call.text : text;
    startCall(call, events);
    if (more !== "") events.push({ type: "call.delta", id: call.id, text: more });
  }

  function startCall(call: OpenCall, events: ModelEvent[]): void {
    if (call.id !== "") return;
    call.id = unusedId(call.serverId || `call_${calls.indexOf(call)}`);
    events.push({ type: "call.start", id: call.id, name: call.name });
  }

  function unusedId(id: string): string {
    return calls.some((call) => call.id === id) ? unusedId(`${id}_`) : id;
  }

  function end(isWhole: boolean): readonly ModelEvent[] {
    const events: ModelEvent[] = [];
    const made = calls.filter(({ serverId, name, text, isEcho }) => text !== "" || (!isEcho && serverId + name !== ""));
    for (const [index, call] of made.entries()) {
      const { name, text, hasObject, extra } = call;
      if (name === "") {
        throw new ModelError(
          `Cannot read the response of ${model}: expected a \`name\` in the \`function\` of each call`,
        );
      }
      startCall(call, events);
      if (extra !== undefined) events.push(noteEvent(model, { call: extra }));
      const isClosed = (text !== "" || hasObject) && index < made.length - 1;
      const input = snapshotOf(call);
      if (isWhole || isClosed) events.push({ type: "call.end", id: call.id, ...(input !== undefined && { input }) });
    }
    return events;
  }

  return { add, end };
}

/** Reads a piece. An id may be a number, and an input an object instead of its text. */
function pieceOf(delta: UnknownObject): Piece {
  const named = objectIn(delta, "function");
  const { arguments: args } = named;
  const input = isObject(args) || Array.isArray(args) ? objectIn(named, "arguments") : undefined;
  const isEmpty = input !== undefined && Object.keys(input).length === 0;
  return {
    index: delta.index ?? undefined,
    id: typeof delta.id === "number" ? `${delta.id}` : stringIn(delta, "id"),
    name: stringIn(named, "name"),
    text: isEmpty ? "" : input ? JSON.stringify(input) : stringIn(named, "arguments"),
    hasObject: input !== undefined,
  };
}

/** Whether a piece with a name begins a call, and does not belong to `call`, which has its id or index. */
function beginsCall(call: OpenCall, piece: Piece): boolean {
  if (call.name === "") return false;
  if (call.text !== "") return call.name !== piece.name || jsonOf(call.text) !== undefined;
  if (haveOtherIds(call, piece) || (call.hasObject && piece.hasObject && !hasIdOf(call, piece))) return true;
  const continuesName = piece.id === "" && call.serverId !== "" && call.index !== undefined;
  return call.name !== piece.name && !continuesName;
}

/** Whether a call has the id of a piece, and an index that does not contradict it. */
function hasIdOf({ serverId, index }: OpenCall, piece: Piece): boolean {
  return piece.id !== "" && piece.id === serverId && (piece.index ?? index) === index;
}

function haveOtherIds(call: OpenCall, { id }: Piece): boolean {
  return id !== "" && call.serverId !== "" && id !== call.serverId;
}

/** Whether a piece has no input. */
function isBare({ text, hasObject }: Piece): boolean {
  return text === "" && !hasObject;
}

/** Whether a piece is the same call as a whole. */
function isSame({ name, text }: OpenCall, piece: Piece): boolean {
  if (name === "" || name !== piece.name) return false;
  const input = jsonOf(text || "{}");
  return input !== undefined && input === jsonOf(piece.text || "{}");
}

/** Returns the input of a call whose pieces each repeat all of the input so far. Undefined if they continue each other. */
function snapshotOf({ text, pieces }: OpenCall): unknown {
  const last = pieces.at(-1) ?? "";
  const isRepeated = pieces.length > 1 && jsonOf(text) === undefined && pieces.every((piece) => last.startsWith(piece));
  const json = isRepeated ? jsonOf(last) : undefined;
  return json === undefined ? undefined : JSON.parse(json);
}

/** Returns the JSON value of a text in one form; undefined if the text is not JSON, or not complete. */
function jsonOf(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}
