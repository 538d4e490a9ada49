import { assertEquals } from "@std/assert";
import { ceilingOf, compared } from "./guard.ts";

Deno.test("a ceiling is the next multiple of 0.05 KB that leaves 0.05 KB, or the next count", () => {
  const cases = [[1.14, 1.2], [1.16, 1.25], [33.53, 33.6], [0, 0.05]] as const;
  for (const [figure, ceiling] of cases) assertEquals(ceilingOf({ figure, unit: "KB" }), ceiling);
  assertEquals(ceilingOf({ figure: 55, unit: "files" }), 55);
});

Deno.test("a ceiling does not exceed a budget that is met", () => {
  assertEquals(ceilingOf({ figure: 2.99, atMost: 3, unit: "KB" }), 3);
  assertEquals(ceilingOf({ figure: 3.01, atMost: 3, unit: "KB" }), 3.1);
});

Deno.test("the guard lists the figures above their ceilings, and the ceilings that are more than one step too high", () => {
  const list = compared([
    { what: "grown", figure: 2.31, ceiling: 2.25, unit: "KB" },
    { what: "kept", figure: 2.25, ceiling: 2.25, unit: "KB" },
    { what: "a step smaller", figure: 2.16, ceiling: 2.25, unit: "KB" },
    { what: "smaller", figure: 2.09, ceiling: 2.25, unit: "KB" },
    { what: "longer", figure: 56, ceiling: 55, unit: "files" },
  ], "size.ts");
  assertEquals(list.split("\n"), [
    "3 of 5 figures keep their ceilings in size.ts.",
    "Above: make it smaller, or raise the ceiling and commit the reason with it.",
    "  grown: 2.31 KB, 0.06 above 2.25",
    "  longer: 56 files, 1 above 55",
    "Far below: lower the ceiling.",
    "  smaller: 2.09 KB, from 2.25 to 2.15",
  ]);
});
