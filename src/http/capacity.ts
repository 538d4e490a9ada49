/**
 * The capacity of a process: how many runs and streams it takes, and how much memory they may hold.
 *
 * @module
 */
import { SharedWork } from "../core/lib/locks.ts";
import { type RequestError, unavailable } from "./error_response.ts";
import type { ServeOptions } from "./options.ts";
import type { Message } from "../protocol/message.ts";
import { expectNames } from "../protocol/shape.ts";

/** The capacity of a process, of which each part has a value. */
export type Capacity = Required<NonNullable<ServeOptions["capacity"]>>;

/** The estimated bytes of a run with an empty transcript. */
const bytesOfRun = 65_536;

/** Returns the checked capacity. Throws a `RangeError` for a number out of range. */
export function expectCapacity(capacity: ServeOptions["capacity"] = {}): Capacity {
  const all = { runs: Infinity, streams: Infinity, bytes: Infinity };
  expectNames("Cannot serve: `capacity`", capacity, Object.keys(all));
  for (const [name, value] of Object.entries(capacity)) {
    if (value >= 1) continue;
    throw new RangeError(`Cannot serve: \`capacity.${name}\` is ${value}; expected a number of 1 or more`);
  }
  return { ...all, ...capacity };
}

/** The bytes that a transcript holds. It grows at its end, so that a message is measured once. */
export class TranscriptSize {
  #last: Message | undefined;
  #count = 0;
  #characters = 0;

  /** Returns the estimated bytes of a run with this transcript. */
  bytesOf(messages: readonly Message[]): number {
    if (messages[this.#count - 1] !== this.#last) this.#count = this.#characters = 0; // it was compacted, or rolled back
    for (const message of messages.slice(this.#count)) this.#characters += JSON.stringify(message).length;
    this.#count = messages.length;
    this.#last = messages.at(-1);
    return bytesOfRun + 2 * this.#characters;
  }
}

/** The requests of a process that wait for the beginning of their run, and the check that there is room for a further one. */
export class Admissions {
  readonly #capacity: Capacity;
  readonly #load: () => CurrentLoad;
  readonly #lease: number;
  readonly #waiting = new Set<SharedWork>();

  /** Checks against `capacity` what the process holds. A request that the platform has ended counts for at most a `lease`. */
  constructor(capacity: Capacity, lease: number, load: () => CurrentLoad) {
    this.#capacity = capacity;
    this.#lease = lease;
    this.#load = load;
  }

  /** True if a run with a stream would be refused. */
  get isFull(): boolean {
    return this.#lack(true) !== undefined;
  }

  /** Throws a `RequestError` if there is no room for a further stream. */
  expectStream(): void {
    const { streams } = this.#capacity;
    if (streams < Infinity && this.#load().streams >= streams) throw full(`${streams} streams`);
  }

  /** Admits a request that begins a run. Returns the function to call once the run lives or has failed. Throws a `RequestError` if there is no room. */
  admit(hasStream: boolean): () => void {
    const lack = this.#lack(hasStream);
    if (lack) throw full(lack);
    const { runs, bytes } = this.#capacity;
    if (runs === Infinity && bytes === Infinity) return () => {};
    const work = new SharedWork(this.#lease);
    this.#waiting.add(work);
    return () => {
      work.end();
      this.#waiting.delete(work);
    };
  }

  /** Returns what the process has too much of for a further run. */
  #lack(hasStream: boolean): string | undefined {
    const { runs, streams, bytes } = this.#capacity;
    if (Math.min(runs, streams, bytes) === Infinity) return undefined;
    const load = this.#load();
    if (hasStream && load.streams >= streams) return `${load.streams} streams`;
    if (runs === Infinity && bytes === Infinity) return undefined;
    for (const work of this.#waiting) if (!work.lives) this.#waiting.delete(work);
    const count = load.runs + this.#waiting.size;
    if (count >= runs) return `${count} runs`;
    const isLarge = bytes < Infinity && load.bytes() + this.#waiting.size * bytesOfRun >= bytes;
    return isLarge ? "as many runs as fit into its memory" : undefined;
  }
}

/** The runs and streams of a process at a time. */
export interface CurrentLoad {
  /** The runs that live. */
  readonly runs: number;
  /** The responses that send events. */
  readonly streams: number;
  /** Returns the estimated bytes of the runs. */
  bytes(): number;
}

function full(load: string): RequestError {
  return unavailable("capacity", `the server has ${load}; try again later`);
}
