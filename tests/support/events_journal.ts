/**
 * Journals whose appends of events a test watches, delays or fails, and the events that they have.
 *
 * @module
 */
import type { Store } from "@jizai/jizai";
import type { Append, Appended, Journal } from "@jizai/jizai/session/durable";
import { placeOf } from "../../src/core/journal.ts";
import type { Framed } from "./requests.ts";

/** An append with events. */
export type EventsAppend = Append & Required<Pick<Append, "events">>;

/** A journal, and the appends with events that it was asked for. */
export interface EventsJournal {
  readonly journal: Journal;
  readonly appends: readonly EventsAppend[];
  /** Resolves after `count` of those appends have begun. */
  begun(count: number): Promise<void>;
}

/** Returns the journal of a store, with `watch` in place of each append with events. */
export function watchedEvents(
  { journal }: Pick<Store, "journal">,
  watch: (key: string, append: EventsAppend) => Promise<Appended | undefined> = (key, append) =>
    journal.append(key, append),
): EventsJournal {
  const appends: EventsAppend[] = [];
  const gates = new Map<number, PromiseWithResolvers<void>>();
  const gateOf = (count: number) => gates.getOrInsertComputed(count, () => Promise.withResolvers<void>());
  return {
    appends,
    begun: (count) => gateOf(count).promise,
    journal: {
      ...journal,
      append(key, append) {
        const { events } = append;
        if (!events || events.lines.length === 0) return journal.append(key, append);
        const withEvents = { ...append, events };
        gateOf(appends.push(withEvents)).resolve();
        return watch(key, withEvents);
      },
    },
  };
}

/** Returns the types of the events of an append. */
export function typesIn(append: Append | undefined): string[] {
  return (append?.events?.lines ?? []).map((line) => JSON.parse(line).type);
}

/** Returns the events of a run that are stored, with their numbers. */
export async function recordOf({ journal }: Pick<Store, "journal">, run: string): Promise<Framed[]> {
  const { key, run: number } = placeOf(run) ?? { key: "", run: 0 };
  const { lines = [], first = 1 } = await journal.read(key, number, 0) ?? {};
  return lines.map((line, index) => ({ ...JSON.parse(line), id: first + index }));
}

/** Returns the journal of a store, whose appends fail while `isDown` returns true. */
export function failingAppends(
  { journal }: Pick<Store, "journal">,
  isDown: (key: string, append: Append) => boolean,
): Journal {
  return {
    ...journal,
    append: (key, append) =>
      isDown(key, append) ? Promise.reject(new Error("The store is down")) : journal.append(key, append),
  };
}
