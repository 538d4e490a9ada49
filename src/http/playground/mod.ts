/**
 * The playground: a page for talking to an agent and watching its runs.
 *
 * @module
 */
import { connectionOf } from "./connection.ts";
import { drawConversation } from "./conversation_view.ts";
import { elementsOf } from "./elements.ts";
import { entryUpdates } from "./entries.ts";
import { html } from "./html.ts";
import { page, type Parts } from "./page.ts";
import { drawQuestion } from "./question_view.ts";
import { readFrames } from "./read_frames.ts";
import { drawRun } from "./run_view.ts";
import { spanUpdates } from "./spans.ts";
import { style } from "./style.ts";
import { viewReducer } from "./view_reducer.ts";

/**
 * Creates the page for the option `page` of `serve()`. It shows the conversation, and the run as an onion over time; if the agent has `trace`, also what each
 * middleware did. Its user can approve, change and deny calls, answer in place of a tool, send messages to the run, finish it and stop it. With a `log` and
 * `onClientGone: "detach"`, a reloaded page continues where it was.
 *
 * The page is one document. It loads nothing else, its content security policy allows only its own script and style, and it shows all content as text. It is
 * for developers and has no login: leave it out in production, or mount it behind authentication.
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
 * const app = serve(assistant, { page: playground(), log: memoryLog(), onClientGone: "detach" });
 * assertStringIncludes(await (await app.request("/")).text(), "<title>Playground</title>");
 * ```
 */
export function playground(): () => Response {
  const script = scriptOf({
    connectionOf,
    drawConversation,
    drawQuestion,
    drawRun,
    elementsOf,
    entryUpdates,
    readFrames,
    spanUpdates,
    viewReducer,
  });
  return () => {
    const nonce = crypto.randomUUID();
    return new Response(html({ style, script, nonce }), { headers: headersOf(nonce) });
  };
}

/** Returns the page's functions as source text. Some bundlers wrap functions in a call of `__name`, which the page therefore defines. */
function scriptOf(parts: Parts): string {
  const sources = Object.entries(parts).map(([name, part]) => `${name}: ${part}`);
  return `const __name = (whole) => whole;\n(${page})({ ${sources.join(",\n")} });`;
}

function headersOf(nonce: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "connect-src 'self'",
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
