/**
 * Reads the entries of a recording. Entries of concurrent sources come in the recorded order.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/json.ts";
import type { RecordedEntry, RecordedInput, RecordedOrder } from "./recording.ts";

/** A source whose entries a run is reading: a response of the model, or an execution of a call. */
export interface Source {
  /** The indexes of the entries that are left. */
  readonly left: number[];
  /** Resolves the waiting read. */
  wake?: (() => void) | undefined;
}

/** Reads the entries of one recording, and repeats the orders of the caller among them. */
export class EntryReader {
  readonly #entries: readonly RecordedEntry[];
  readonly #inOrder: boolean;
  readonly #sources: ReadonlyMap<string, readonly number[]>;
  /** The indexes of the orders that are left. */
  readonly #orders: number[];
  readonly #active = new Set<Source>();
  /** The number of opened sources of each kind. */
  readonly #counts = new Map<string, number>();
  #last: Source | undefined;
  #repeatOrder: (order: RecordedOrder) => void = () => {};

  /** Creates a reader. Without `inOrder`, sources do not wait for each other, and no orders are repeated. */
  constructor(entries: readonly RecordedEntry[], inOrder: boolean) {
    this.#entries = entries;
    this.#inOrder = inOrder;
    const bySource = Map.groupBy(entries.keys(), (index) => entries[index]?.source ?? "");
    this.#orders = inOrder ? bySource.get("caller") ?? [] : [];
    bySource.delete("caller");
    this.#sources = bySource;
  }

  /** Sets the function that repeats the orders of the caller. */
  onOrder(repeat: (order: RecordedOrder) => void): void {
    this.#repeatOrder = repeat;
  }

  /** Opens the next source of a kind: `model`, or the id of a call. Returns undefined if there is none. */
  open(kind: string): Source | undefined {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    const left = this.#sources.get(`${kind}-${count}`);
    if (!left) return undefined;
    this.#counts.set(kind, count);
    return { left: [...left] };
  }

  /** Opens the first unused execution of the same tool with the same input: the ids of calls differ if another model answers. */
  openByInput(name: string, input: unknown): Source | undefined {
    const expected = canonicalJson(input);
    for (const entry of this.#entries) {
      if (entry.type !== "call" || this.#counts.has(entry.call) || entry.name !== name) continue;
      if (canonicalJson(entry.input) === expected) return this.open(entry.call);
    }
    return undefined;
  }

  /** Yields the entries of a source, each in its turn. A source that had not ended when the run ended does not end. */
  async *read(source: Source): AsyncGenerator<RecordedInput> {
    this.#active.add(source);
    try {
      for (;;) {
        await this.#turn(source);
        yield this.#entries[source.left.shift() ?? -1] as RecordedInput; // the caller's orders are no source
      }
    } finally {
      this.#active.delete(source);
      this.#next();
    }
  }

  /** Waits until the next entry of a source is the first of all sources that are being read. */
  async #turn(source: Source): Promise<void> {
    const turn = new Promise<void>((resolve) => source.wake = resolve);
    this.#next();
    await turn;
    // hooks around another source finish first, as they did while the recorded run waited
    if (this.#last !== undefined && this.#last !== source && this.#active.has(this.#last)) await macrotask();
    this.#last = source;
  }

  /** Wakes the source whose entry is next, or repeats the caller's order that is next. */
  #next(): void {
    if (!this.#inOrder) {
      for (const source of this.#active) if (source.left.length > 0) wakeUp(source);
      return;
    }
    for (;;) {
      const first = [...this.#active].sort((a, b) => nextIndex(a) - nextIndex(b))[0];
      const [order = Infinity] = this.#orders;
      if (!first || (order === Infinity && nextIndex(first) === Infinity)) return;
      if (nextIndex(first) < order) return wakeUp(first);
      if (!first.wake) return;
      this.#orders.shift();
      this.#repeatOrder(this.#entries[order] as RecordedOrder); // it has the source "caller"
    }
  }
}

/** Returns the index of the next entry of a source. */
function nextIndex({ left: [index = Infinity] }: Source): number {
  return index;
}

function wakeUp(source: Source): void {
  const { wake } = source;
  source.wake = undefined;
  wake?.();
}

/** Resolves after the work that is ready now. A timer would take milliseconds. */
function macrotask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      port2.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
