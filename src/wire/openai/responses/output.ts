/**
 * The output of a response: its items, and the numbers of its events.
 *
 * @module
 */
import { frameOf } from "../../frames.ts";

/** An item of the output. */
export interface OutputItem {
  /** The kind of the item. */
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The place of an item, as events name it. */
export interface ItemPlace {
  readonly item_id: string;
  readonly output_index: number;
}

/** The output of one response. */
export interface ResponseOutput {
  /** The items that have ended, and the calls that the provider runs, in their order. */
  readonly items: OutputItem[];
  /** Returns the place of a new item. */
  place(): ItemPlace;
  /** Returns the next sequence number. */
  sequence(): number;
  /** Encodes an event with the next sequence number. Its type is `response.` and `type`. */
  frame(type: string, fields: object): string;
}

/** Creates the output of one response; `idPrefix` begins the ids of its items. */
export function responseOutput(idPrefix: () => string): ResponseOutput {
  let places = 0;
  let sequence = 0;
  return {
    items: [],
    place() {
      const output_index = places++;
      return { item_id: `${idPrefix()}_${output_index}`, output_index };
    },
    sequence: () => sequence++,
    frame: (type, fields) => frameOf({ type: `response.${type}`, sequence_number: sequence++, ...fields }),
  };
}
