import { assertEquals } from "@std/assert";
import { allocations, byFolder, selfTimes } from "./cost.ts";

const root = new URL("../../../", import.meta.url).href;

function frame(functionName: string, path?: string, lineNumber = 0) {
  return { functionName, url: path === undefined ? "" : root + path, lineNumber, columnNumber: 0 };
}

const emit = frame("emit", "src/core/events.ts");
const inEvents = { folder: "src/core", file: "src/core/events.ts" };

Deno.test("self time is the time of a function's own samples, whatever called it, without idle time", () => {
  const times = selfTimes({
    nodes: [
      { id: 1, callFrame: emit },
      { id: 2, callFrame: frame("", "src/core/events.ts", 7) },
      { id: 3, callFrame: emit },
      { id: 4, callFrame: frame("(garbage collector)") },
      { id: 5, callFrame: frame("op_encode") },
      { id: 6, callFrame: frame("(idle)") },
    ],
    samples: [1, 2, 3, 4, 5, 6, 1],
    timeDeltas: [100, 50, 100, 400, 30, 9_000, 110],
  });
  assertEquals(times, [
    { name: "(garbage collector)", place: { folder: "garbage collection", file: "" }, self: 400 },
    { name: "emit", place: inEvents, self: 310 },
    { name: "(anonymous)", place: inEvents, self: 50 },
    { name: "op_encode", place: { folder: "native code", file: "" }, self: 30 },
  ]);
  const folders = { "garbage collection": 400, "src/core": 360, "native code": 30 };
  assertEquals(Object.entries(Object.fromEntries(byFolder(times))), Object.entries(folders));
});

Deno.test("allocations are those of a function itself, in every place of the call tree", () => {
  const leaf = { callFrame: emit, selfSize: 96, children: [] };
  const caller = { callFrame: frame("run", "src/core/loop.ts"), selfSize: 0, children: [leaf] };
  const own = { callFrame: emit, selfSize: 8, children: [] };
  const bytes = allocations({ callFrame: frame("(root)"), selfSize: 16, children: [caller, own] });
  assertEquals(bytes, [
    { name: "emit", place: inEvents, self: 104 },
    { name: "(root)", place: { folder: "native code", file: "" }, self: 16 },
  ]);
});
