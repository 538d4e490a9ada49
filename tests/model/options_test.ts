import { ModelError, type ModelOptions, type ToolDefinition } from "@jizai/jizai";
import { aiSdk } from "@jizai/jizai/model/ai_sdk";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { assertEquals } from "@std/assert";
import { weather } from "../support/providers/api.ts";
import { errorOf, readAll, recordRequests } from "../support/providers/sse.ts";

type Adapter = "openai" | "compatible" | "responses" | "anthropic" | "gemini" | "gemini25" | "aiSdk" | "aiSdkV3";
type Fields = Readonly<Record<string, unknown>>;

/** Returns the body that a request becomes, without the fields that it has without options. */
async function bodyFor(adapter: Adapter, options: ModelOptions, tools: readonly ToolDefinition[] = [weather]) {
  const before = await sentFor(adapter, {}, tools);
  const after = Object.entries(await sentFor(adapter, options, tools));
  return Object.fromEntries(after.filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
}

async function sentFor(adapter: Adapter, options: ModelOptions, tools: readonly ToolDefinition[]): Promise<Fields> {
  const { sent, fetch } = recordRequests("data: {}\n\n");
  let call: Fields = {};
  const sdk = (specificationVersion: string) =>
    aiSdk({
      specificationVersion,
      modelId: "m",
      doStream({ abortSignal: _, ...rest }) {
        call = rest;
        return Promise.resolve({ stream: ReadableStream.from([]) });
      },
    });
  const models = {
    openai: () => openai({ model: "m", fetch }),
    compatible: () => openai({ model: "m", fetch, baseURL: "http://localhost:11434/v1" }),
    responses: () => openaiResponses({ model: "m", fetch }),
    anthropic: () => anthropic({ model: "m", fetch, cache: false }),
    gemini: () => gemini({ model: "gemini-3-flash", fetch }),
    gemini25: () => gemini({ model: "gemini-2.5-flash", fetch }),
    aiSdk: () => sdk("v4"),
    aiSdkV3: () => sdk("v3"),
  };
  await readAll(models[adapter](), { options, tools, instructions: "Be kind." });
  return sent[0]?.body ?? call;
}

/** Tests that each adapter sends the body, or throws the error, that follows "Cannot ask m: ". */
function mapsOption(
  name: string,
  options: ModelOptions,
  expected: Readonly<Partial<Record<Adapter, Fields | string>>>,
) {
  Deno.test(`each adapter sends ${name} or throws`, async () => {
    for (const [key, value] of Object.entries(expected)) {
      const adapter = key as Adapter; // a key of `expected`
      if (typeof value !== "string") assertEquals([adapter, await bodyFor(adapter, options)], [adapter, value]);
      else {
        const error = await errorOf(bodyFor(adapter, options));
        if (!(error instanceof ModelError)) throw error;
        const { message, recoverable, code } = error;
        assertEquals([message.replace(/^Cannot ask \S+: /, ""), recoverable, code], [value, false, "internal"]);
      }
    }
  });
}

mapsOption("toolChoice auto", { toolChoice: "auto" }, {
  openai: { tool_choice: "auto" },
  responses: { tool_choice: "auto" },
  anthropic: { tool_choice: { type: "auto" } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "AUTO" } } },
  aiSdk: { toolChoice: { type: "auto" } },
});

mapsOption("toolChoice none", { toolChoice: "none" }, {
  openai: { tool_choice: "none" },
  responses: { tool_choice: "none" },
  anthropic: { tool_choice: { type: "none" } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "NONE" } } },
  aiSdk: { toolChoice: { type: "none" } },
});

mapsOption("toolChoice required", { toolChoice: "required" }, {
  openai: { tool_choice: "required" },
  responses: { tool_choice: "required" },
  anthropic: { tool_choice: { type: "any" } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "ANY" } } },
  aiSdk: { toolChoice: { type: "required" } },
});

mapsOption("one tool as toolChoice", { toolChoice: { tool: "weather" } }, {
  openai: { tool_choice: { type: "function", function: { name: "weather" } } },
  responses: { tool_choice: { type: "function", name: "weather" } },
  anthropic: { tool_choice: { type: "tool", name: "weather" } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] } } },
  aiSdk: { toolChoice: { type: "tool", toolName: "weather" } },
});

const unknownTool = 'toolChoice expects a tool of the request, got "rest"';
mapsOption("an unknown tool as toolChoice", { toolChoice: { tool: "rest" } }, {
  openai: unknownTool,
  responses: unknownTool,
  anthropic: unknownTool,
  gemini: unknownTool,
  aiSdk: unknownTool,
});

mapsOption("parallelCalls", { parallelCalls: false }, {
  openai: { parallel_tool_calls: false },
  responses: { parallel_tool_calls: false },
  anthropic: { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
  gemini: "the Gemini API cannot turn off parallel calls",
  aiSdk: "the AI SDK (v4) has no option parallelCalls",
});

mapsOption("parallelCalls and toolChoice", { parallelCalls: true, toolChoice: "required" }, {
  openai: { tool_choice: "required", parallel_tool_calls: true },
  anthropic: { tool_choice: { type: "any", disable_parallel_tool_use: false } },
  gemini: { toolConfig: { functionCallingConfig: { mode: "ANY" } } },
});

mapsOption("stop", { stop: ["END"] }, {
  openai: { stop: ["END"] },
  compatible: { stop: ["END"] },
  responses: "the Responses API has no option stop",
  anthropic: { stop_sequences: ["END"] },
  gemini: { generationConfig: { stopSequences: ["END"] } },
  aiSdk: { stopSequences: ["END"] },
});

mapsOption("seed", { seed: 0 }, {
  openai: { seed: 0 },
  responses: "the Responses API has no option seed",
  anthropic: "the messages API has no option seed",
  gemini: { generationConfig: { seed: 0 } },
  aiSdk: { seed: 0 },
});

mapsOption("effort", { effort: "high" }, {
  openai: { reasoning_effort: "high" },
  compatible: { reasoning_effort: "high" },
  responses: { reasoning: { effort: "high" } },
  anthropic: { output_config: { effort: "high" } },
  gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "HIGH" } } },
  gemini25: { generationConfig: { thinkingConfig: { thinkingBudget: 24_576 } } },
  aiSdk: { reasoning: "high" },
  aiSdkV3: "the AI SDK (v3) has no option effort",
});

mapsOption("effort none", { effort: "none" }, {
  openai: { reasoning_effort: "none" },
  responses: { reasoning: { effort: "none" } },
  anthropic: { thinking: { type: "disabled" } },
  gemini: 'effort expects one of "minimal", "low", "medium", "high", got "none"',
  gemini25: { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  aiSdk: { reasoning: "none" },
});

mapsOption("a level of effort that some providers lack", { effort: "minimal" }, {
  anthropic: 'effort expects one of "none", "low", "medium", "high", "xhigh", "max", got "minimal"',
  gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "MINIMAL" } } },
});

const system = [{ type: "text", text: "Be kind." }];
mapsOption("cache short", { cache: "short" }, {
  openai: {},
  compatible: "a compatible server has no option cache",
  responses: {},
  anthropic: { system: [{ ...system[0], cache_control: { type: "ephemeral" } }] },
  gemini: {},
  aiSdk: "the AI SDK (v4) has no option cache",
});

mapsOption("cache long", { cache: "long" }, {
  openai: { prompt_cache_retention: "24h" },
  responses: { prompt_cache_retention: "24h" },
  anthropic: { system: [{ ...system[0], cache_control: { type: "ephemeral", ttl: "1h" } }] },
  gemini: 'cache expects one of "short", got "long"',
});

mapsOption("cache none", { cache: "none" }, {
  openai: 'cache expects one of "short", "long", got "none"',
  responses: 'cache expects one of "short", "long", got "none"',
  anthropic: {},
  gemini: 'cache expects one of "short", got "none"',
});

Deno.test("no adapter sends a choice of tools without tools", async () => {
  for (const adapter of ["openai", "anthropic", "gemini", "aiSdk"] as const) {
    assertEquals(await bodyFor(adapter, { toolChoice: "none" }, []), {});
  }
});
