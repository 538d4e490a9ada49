/**
 * The playground: a page for talking to an agent and watching its runs.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import { script, style } from "./bundle.ts";
import { pageData } from "./describe.ts";
import { html } from "./html.ts";
import type { DescribedAgent, PlaygroundOptions, Price } from "./page_data.ts";

export type { DescribedAgent, PlaygroundOptions, Price };

/**
 * Creates the page for the option `page` of `serve()`. It shows the conversation, and the trace of each run as nested brackets; if the agent has `trace`, also
 * what each middleware did. Its user can approve, change and deny calls, answer in place of a tool, send messages to the run, finish it and stop it. With a
 * `log` and `onClientGone: "detach"`, a reloaded page continues where it was.
 *
 * The page is one document. It loads nothing else, except images of answers on which the user clicks. Its content security policy allows only its own script
 * and style. Answers are shown as Markdown without HTML, everything else as text. The page is for developers and has no login, and it names the tools of the
 * agent: leave it out in production, or mount it behind authentication.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { playground } from "@jizai/jizai/playground";
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { trace } from "@jizai/jizai/trace";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const assistant = agent({ model: scripted("Hello!"), trace });
 * const page = playground({ prompts: ["What can you do?"], prices: { scripted: { input: 3, output: 15 } } });
 * const app = serve(assistant, { page, log: memoryLog(), onClientGone: "detach" });
 * assertStringIncludes(await (await app.request("/")).text(), "<title>Playground</title>");
 * ```
 */
export function playground(options: PlaygroundOptions = {}): (agent: DescribedAgent) => Response {
  expectNames("Cannot create playground()", options, ["prompts", "prices"]);
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
