/**
 * Costs of functions, read from V8's profiles: their self time, and the bytes that they allocate.
 *
 * @module
 */
import { type Place, placeOf } from "../kit/place.ts";

/** A function, and the cost of it alone, without the functions that it calls. */
export interface Cost {
  readonly name: string;
  readonly place: Place;
  readonly self: number;
}

/** A function in a profile. */
interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The part of a CPU profile that is read. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  /** The id of the node that was executed at each sample. */
  readonly samples: readonly number[];
  /** The microseconds between each sample and the one before. */
  readonly timeDeltas: readonly number[];
}

/** A function of a sampling heap profile, and those that it called. */
export interface HeapNode {
  readonly callFrame: CallFrame;
  /** The bytes that it allocated itself. */
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** Returns the microseconds of each function, the most expensive first. Idle time is left out. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): readonly Cost[] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const costs = samples.map((id, index) => ({ frame: frames.get(id), self: timeDeltas[index] ?? 0 }));
  return summed(costs.filter(({ frame }) => frame?.functionName !== "(idle)"));
}

/** Returns the bytes that each function allocated, the most expensive first. */
export function allocations(head: HeapNode): readonly Cost[] {
  const costs: { readonly frame: CallFrame; readonly self: number }[] = [];
  const visit = ({ callFrame, selfSize, children }: HeapNode) => {
    if (selfSize > 0) costs.push({ frame: callFrame, self: selfSize });
    children.forEach(visit);
  };
  visit(head);
  return summed(costs);
}

/** Returns the sum of each folder, the most expensive first. */
export function byFolder(costs: readonly Cost[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { place, self } of costs) sums.set(place.folder, (sums.get(place.folder) ?? 0) + self);
  return new Map([...sums].toSorted(([, a], [, b]) => b - a));
}

/** Adds up the costs of each function, which a profile lists once for each of its callers. */
function summed(costs: readonly { readonly frame: CallFrame | undefined; readonly self: number }[]): readonly Cost[] {
  const sums = new Map<string, { readonly frame: CallFrame; self: number }>();
  for (const { frame, self } of costs) {
    if (!frame) continue;
    const key = JSON.stringify([frame.url, frame.lineNumber, frame.columnNumber, frame.functionName]);
    const sum = sums.get(key) ?? { frame, self: 0 };
    sums.set(key, sum);
    sum.self += self;
  }
  return [...sums.values()].toSorted((a, b) => b.self - a.self).map(({ frame, self }) => {
    return { name: frame.functionName || "(anonymous)", place: placeIn(frame), self };
  });
}

function placeIn({ functionName, url }: CallFrame): Place {
  if (functionName === "(garbage collector)") return { folder: "garbage collection", file: "" };
  return url === "" ? { folder: "native code", file: "" } : placeOf(url);
}
