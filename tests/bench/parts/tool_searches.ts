/**
 * The cost of a turn for an agent with 500 tools behind a search.
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import type { Measure } from "../kit/measure.ts";
import { medians } from "../kit/stopwatch.ts";

const turns = 20;
const tools = Array.from({ length: 500 }, (_, index) => {
  const input = z.object({ query: z.string().optional() });
  return tool({ name: `tool_${index}`, description: `Does task number ${index}`, input, execute: () => "Done." });
});
const search = toolSearch({ keep: ["tool_0"] });
const script = Array.from({ length: turns }, () => ({ calls: [["tool_0", {}]] }) as const);

/** Takes turns with 500 tools behind a search, and with one tool and no search. */
export async function toolSearchMeasures(): Promise<readonly Measure[]> {
  const run = (options: object) => async () => {
    const model = scripted(...script, "Done.");
    await agent({ model, tools: tools.slice(0, 1), ...options }).run({ prompt: "Go", limits: { turns: turns + 1 } })
      .result;
  };
  const time = await medians({ one: run({}), searched: run({ tools, use: [search] }) }, { rounds: 60, warmUp: 20 });
  const figure = (time.searched - time.one) / turns / 1_000;
  return [{ what: "500 tools behind tool_search, per turn", figure, atMost: 1, unit: "ms" }];
}
