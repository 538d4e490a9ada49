import { assertEquals } from "@std/assert";
import { bytesByConstructor } from "./heap.ts";

Deno.test("the bytes of a snapshot are summed up by constructor, or by type without one", () => {
  const types = ["hidden", "string", "object", "closure", "native"];
  const strings = ["Map", "some text", "run", "system / Context / scope @111", "system / Context / scope @7", "Blob"];
  const node = (type: string, name: number, size: number) => [types.indexOf(type), name, 99, size, 0];
  const bytes = bytesByConstructor({
    snapshot: { meta: { node_fields: ["type", "name", "id", "self_size", "edge_count"], node_types: [types] } },
    nodes: [
      node("object", 0, 32),
      node("string", 1, 24),
      node("object", 0, 16),
      node("closure", 2, 64),
      node("object", 3, 40),
      node("object", 4, 8),
      node("native", 5, 100),
    ].flat(),
    strings,
  });
  const expected = { Map: 48, "(string)": 24, "(closure)": 64, "system / Context": 48, Blob: 100 };
  assertEquals(Object.fromEntries(bytes), expected);
});
