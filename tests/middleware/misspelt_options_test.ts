/**
 * Factories refuse an option that they do not have: a misspelt limit or guard would silently not exist.
 */
import { agent } from "@jizai/jizai";
import { client } from "@jizai/jizai/client";
import { forward } from "@jizai/jizai/forward";
import { audit } from "@jizai/jizai/middleware/audit";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { command_hooks } from "@jizai/jizai/middleware/command_hooks";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { delivery } from "@jizai/jizai/middleware/delivery";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { instructions } from "@jizai/jizai/middleware/instructions";
import { logger } from "@jizai/jizai/middleware/logger";
import { stdio } from "@jizai/jizai/middleware/mcp/stdio";
import { openaiModerator } from "@jizai/jizai/middleware/moderation";
import { notes } from "@jizai/jizai/middleware/notes";
import { otel } from "@jizai/jizai/middleware/otel";
import { plan } from "@jizai/jizai/middleware/plan";
import { retry } from "@jizai/jizai/middleware/retry";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { skills } from "@jizai/jizai/middleware/skills";
import { toolSearch } from "@jizai/jizai/middleware/tool_search";
import { transcript } from "@jizai/jizai/middleware/transcript";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { verify } from "@jizai/jizai/middleware/verify";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { aiSdk } from "@jizai/jizai/model/ai_sdk";
import { anthropic } from "@jizai/jizai/model/anthropic";
import { gemini } from "@jizai/jizai/model/gemini";
import { openai } from "@jizai/jizai/model/openai";
import { openaiResponses } from "@jizai/jizai/model/openai_responses";
import { scripted } from "@jizai/jizai/model/scripted";
import { playground } from "@jizai/jizai/playground";
import { providerTool } from "@jizai/jizai/provider_tools";
import { screen } from "@jizai/jizai/screen";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { asTool } from "@jizai/jizai/subagents";
import { webhook } from "@jizai/jizai/webhook";
import { agUi } from "@jizai/jizai/wire/ag_ui";
import { mcpWire } from "@jizai/jizai/wire/mcp";
import { aiSdkMessages, aiSdkObject, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { chatCompletions, responses } from "@jizai/jizai/wire/openai";
import { assertRejects, assertThrows } from "@std/assert";

const helper = agent({ name: "helper", model: scripted() });

const misspelt: readonly (readonly [make: () => unknown, complaint: string])[] = [
  [
    () => retry({ attempt: 5 } as object),
    'Cannot create retry(): there is no option "attempt"; expected one of attempts, when, delay, max, afterText',
  ],
  [() => retry(5 as never), "Cannot create retry(): got Number; expected an object with attempts, "],
  [
    () => truncate({ max: 5 } as object),
    'Cannot create truncate(): there is no option "max"; expected one of limit, head, tail',
  ],
  [() => truncate(500 as never), "Cannot create truncate(): got Number; expected an object with limit, head, tail"],
  [
    () => compaction({ tokens: 5 } as object),
    'Cannot create compaction(): there is no option "tokens"; expected one of at, keep, summarize',
  ],
  [
    () => asTool(helper, { limit: 1 } as object),
    'Cannot create asTool(): there is no option "limit"; expected one of name, description, limits',
  ],
  [
    () => webhook({ url: "https://example.com", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", wat: 1 } as never),
    'Cannot send webhooks: there is no option "wat"; expected one of url, secret, timeout, links, fetch',
  ],
  [
    () => providerTool({ type: "web_search", blockDomains: ["example.com"] } as never),
    'Cannot create provider tool "web_search": there is no option "blockDomains"; expected one of type, name, ask, apis, ' +
    "allowedDomains, blockedDomains, maxUses, location",
  ],
  [
    () => providerTool({ type: "web" } as never),
    'Cannot create provider tool "web": `type` is web; expected web_search, code_execution, file_search, mcp, other',
  ],
];

for (const [make, complaint] of misspelt) {
  Deno.test(`a factory throws: ${complaint}`, () => {
    assertThrows(make, TypeError, complaint);
  });
}

/** Each factory with an option that it does not have. */
const unknown: Readonly<Record<string, (options: never) => unknown>> = {
  agUi,
  mcpWire,
  aiSdk: (options) => aiSdk({ modelId: "m" } as never, options),
  aiSdkMessages,
  aiSdkObject,
  aiSdkUi,
  anthropic,
  audit: (options) => audit(() => {}, options),
  chatCompletions,
  claude_hooks: (options) => claude_hooks({}, options),
  client: (options) => client("", options),
  command_hooks: (options) => command_hooks({}, options),
  copilot_hooks: (options) => copilot_hooks({}, options),
  delivery: (options) => delivery(() => {}, options),
  fallback: (options) => fallback([scripted()], options),
  gemini,
  handoff: (options) => handoff([], options),
  instructions: (options) => instructions(memoryFiles(), options),
  logger,
  notes: (options) => notes({ keyValue: memoryKeyValue(), ...options as object }),
  openai,
  openaiModerator,
  openaiResponses,
  otel: (options) => otel({} as never, options),
  plan,
  playground,
  responses,
  resumeTokens,
  rpc_hooks: (options) => rpc_hooks({}, options),
  screen,
  skills: (options) => skills([], options),
  stdio: (options) => stdio("program", [], options),
  toolSearch,
  transcript,
  verify: (options) => verify(() => undefined, options),
  workspace: (options) => workspace(memoryFiles(), options),
  yoi_hooks: (options) => yoi_hooks([], options),
};

Deno.test("every factory throws for an option that it does not have, and names those that it has", () => {
  const options = { model: undefined, dialekt: "claude" } as never; // undefined is no option
  for (const [name, create] of Object.entries(unknown)) {
    const complaint = `Cannot create ${name}(): there is no option "dialekt"; expected one of `;
    assertThrows(() => create(options), TypeError, complaint);
  }
});

Deno.test("forward() rejects with an option that it does not have", async () => {
  const complaint = 'Cannot forward the request: there is no option "key"; expected one of keys, maxBody';
  await assertRejects(() => forward({} as never, {} as never, {}, { key: [] } as never), TypeError, complaint);
});

Deno.test("the adapters of foreign hooks and logger() throw for a choice that they do not have", () => {
  const cases: readonly (readonly [make: () => unknown, complaint: string])[] = [
    [() => rpc_hooks({}, { wire: "brief" as never }), "rpc_hooks(): `wire` is brief; expected document, head"],
    [
      () => rpc_hooks({}, { kinds: "dots" as never }),
      "rpc_hooks(): `kinds` is dots; expected names, numbers, dotted",
    ],
    [
      () => copilot_hooks({}, { dialect: "nod" as never }),
      "copilot_hooks(): `dialect` is nod; expected document, node",
    ],
    [() => yoi_hooks([], { outward: "union" as never }), "yoi_hooks(): `outward` is union; expected listed, onion"],
    [
      () => rpc_hooks({ wire: "brief" } as object),
      'rpc_hooks(): "wire" is an option; expected it in the second argument',
    ],
    [
      () => copilot_hooks({ dialect: "nod" } as object),
      'copilot_hooks(): "dialect" is an option; expected it in the second argument',
    ],
    [
      () => yoi_hooks({ outward: "onion" } as object),
      'yoi_hooks(): "outward" is an option; expected it in the second argument',
    ],
    [() => logger({ level: "all" as never }), "logger(): `level` is all; expected debug, info, warn, error"],
    [() => logger({ format: "xml" as never }), "logger(): `format` is xml; expected text, json"],
  ];
  for (const [make, complaint] of cases) assertThrows(make, TypeError, `Cannot create ${complaint}`);
  for (const config of [{ dialekt: "claude" }, { dialect: "claude" }, { groups: false }]) {
    assertThrows(() => claude_hooks(config as object), TypeError, "expected a list of matchers");
  }
});
