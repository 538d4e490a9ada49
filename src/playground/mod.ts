/**
 * The playground: a page for talking to an agent and watching its runs.
 *
 * @module
 */
import { type AgentDefinition, hasTrace } from "../core/definition.ts";
import { script, style } from "./bundle.ts";
import type { DescribedAgent, PageData, PlaygroundOptions, ProposedPrompt, Switch } from "./page_data.ts";
import type { Price } from "../protocol/message.ts";
import { expectNames } from "../protocol/shape.ts";

// Describes an agent for the page.

/** Returns the data of the page of an agent. */
function pageData(
  agent: DescribedAgent,
  { prompts = [], switches = [], prices = {} }: PlaygroundOptions,
): PageData {
  const { model, toolTable: { definitions } } = agent["~definition"] as AgentDefinition; // agent() made it
  return {
    agent: agent.name,
    runsTools: hasTrace(agent),
    ...(typeof model !== "function" && { model: model.id }),
    tools: definitions.filter(({ provider }) => !provider).map(({ name, description, schema }) => ({
      name,
      description,
      schema,
    })),
    prompts: prompts.map((prompt) => typeof prompt === "string" ? { text: prompt } : prompt),
    switches,
    prices,
  };
}

// The HTML of the page.

/** The parts of the document. */
interface HtmlParts {
  readonly style: string;
  readonly script: string;
  readonly data: PageData;
  /** The nonce of the content security policy, which allows only the script and the style that have it. */
  readonly nonce: string;
}

/** Returns the document. The data is in an attribute of its root. */
function html({ style, script, data, nonce }: HtmlParts): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Playground</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
<body>
<div id="root" data-page="${escaped(JSON.stringify(data))}"></div>
<script nonce="${nonce}">${script}</script>
</html>
`;
}

/** Returns a text as the value of an attribute. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

export type { DescribedAgent, PlaygroundOptions, Price, ProposedPrompt, Switch };

// The playground: the routes of its page.

/**
 * Creates the page for the option `page` of `serve()`. It shows the conversation, and the trace of each run as nested brackets; if the agent has `trace`, also
 * each request and what each middleware did and changed. Its user can approve, change and deny calls, answer in place of a tool, send messages to the run, finish
 * it and stop it. If the agent has `trace`, a tool can be run alone: hooks and the user decide about its call as about one of the model. With
 * `onClientGone: "detach"`, a reloaded page continues where it was.
 *
 * The page is one document. It loads nothing else, except images of answers on which the user clicks. Its content security policy allows only its own script
 * and style. Answers are shown as Markdown without HTML, everything else as text. The page is for developers and has no login, and it names the tools of the
 * agent and their inputs: leave it out in production, or mount it behind authentication.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { playground } from "@jizai/jizai/playground";
 * import { trace } from "@jizai/jizai/trace";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const assistant = agent({ model: scripted("Hello!"), trace });
 * const page = playground({ prompts: ["What can you do?"], prices: { scripted: { input: 3, output: 15 } } });
 * const app = serve(assistant, { page, onClientGone: "detach" });
 * assertStringIncludes(await (await app.request("/")).text(), "<title>Playground</title>");
 * ```
 */
export function playground(options: PlaygroundOptions = {}): (agent: DescribedAgent) => Response {
  expectNames("Cannot create playground()", options, ["prompts", "switches", "prices"]);
  return (agent) => {
    const nonce = crypto.randomUUID();
    return new Response(html({ style, script, data: pageData(agent, options), nonce }), { headers: headersOf(nonce) });
  };
}

function headersOf(nonce: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src https: data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ];
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy.join("; "),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
}
