/**
 * The playground: a page to talk with an agent, and to see what it does.
 *
 * @module
 */
import { drawQuestion } from "./ask.ts";
import { elementsOf } from "./elements.ts";
import { html } from "./html.ts";
import { listen } from "./listen.ts";
import { look } from "./look.ts";
import { drawOnion } from "./onion.ts";
import { page, type Parts } from "./page.ts";
import { style } from "./style.ts";
import { drawTalk } from "./talk.ts";

/**
 * Makes a page for `serve()`: on the left the conversation, on the right the run as an onion in time, with what each middleware did where the agent has
 * `trace`. Whoever sees it can approve, change and deny calls, answer in their place, steer the run, finish and stop it. With a `log`, and with
 * `onClientGone: "detach"`, a page that is loaded again goes on where it was.
 *
 * It is one document that loads nothing and shows nothing but text. It is for you and not for your users: it knows no login, so leave it out in production,
 * or mount it behind one.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { playground } from "@jizai/jizai/playground";
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const assistant = agent({ model: scripted("Hello!"), trace: true });
 * const app = serve(assistant, { page: playground(), log: memoryLog(), onClientGone: "detach" });
 * assertStringIncludes(await (await app.request("/")).text(), "<title>Playground</title>");
 * ```
 */
export function playground(): () => Response {
  const script = scriptOf({ look, listen, elementsOf, drawTalk, drawOnion, drawQuestion });
  return () => {
    const nonce = crypto.randomUUID();
    return new Response(html({ style, script, nonce }), { headers: headersOf(nonce) });
  };
}

/** The page's functions, as the text that they are; bundlers may have them name themselves with `__name`. */
function scriptOf(parts: Parts): string {
  const named = Object.entries(parts).map(([name, part]) => `${name}: ${part}`);
  return `const __name = (whole) => whole;\n(${page})({ ${named.join(",\n")} });`;
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
