/**
 * The objects on the heap, from a snapshot.
 *
 * @module
 */
import { getHeapSnapshot } from "node:v8";

/** The part of a heap snapshot that is read. */
export interface HeapSnapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      /** The values of each field, if they are numbered: those of the first field are the types of objects. */
      readonly node_types: readonly [readonly string[], ...unknown[]];
    };
  };
  /** One number for each field of each object. Names are indices of `strings`. */
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

/** Collects garbage, and returns the bytes on the heap by constructor. */
export async function heapByConstructor(): Promise<ReadonlyMap<string, number>> {
  let text = "";
  for await (const chunk of getHeapSnapshot()) text += chunk;
  return bytesByConstructor(JSON.parse(text));
}

/** Returns the bytes of the objects in a snapshot by constructor. The type, in parentheses, stands for a missing constructor. */
export function bytesByConstructor({ snapshot, nodes, strings }: HeapSnapshot): ReadonlyMap<string, number> {
  const { node_fields: fields, node_types: [types] } = snapshot.meta;
  const valueOf = (node: number, field: string) => nodes[node + fields.indexOf(field)] ?? 0;
  const bytes = new Map<string, number>();
  for (let node = 0; node < nodes.length; node += fields.length) {
    const type = types[valueOf(node, "type")] ?? "";
    const name = strings[valueOf(node, "name")] ?? "";
    // "system / Context / scope @111" is the scope of one function
    const key = type === "object" || type === "native" ? name.replace(/ \/ scope @.*/, "") : `(${type})`;
    bytes.set(key, (bytes.get(key) ?? 0) + valueOf(node, "self_size"));
  }
  return bytes;
}
