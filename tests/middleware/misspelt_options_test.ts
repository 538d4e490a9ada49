/**
 * Factories refuse an option that they do not have: a misspelt limit or guard would silently not exist.
 */
import { agent } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { retry } from "@jizai/jizai/middleware/retry";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { scripted } from "@jizai/jizai/model/scripted";
import { providerTool } from "@jizai/jizai/provider_tools";
import { asTool } from "@jizai/jizai/subagents";
import { webhook } from "@jizai/jizai/webhook";
import { assertThrows } from "@std/assert";

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
    'Cannot send webhooks: there is no option "wat"; expected one of url, secret, timeout, fetch',
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
