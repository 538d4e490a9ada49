/**
 * The pages of approval links. `GET` shows the question and never decides, because scanners of mails and previews of chats open links. The form of that page
 * decides, with `POST`.
 *
 * @module
 */
import type { Context } from "hono";
import { html } from "hono/html";
import { Hono } from "hono/tiny";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { answer, type Link, standingOf } from "./answering.ts";
import type { ErrorPlace } from "../../core/events.ts";
import { visible } from "../../core/lib/text.ts";
import { errorResponse } from "../error_response.ts";
import type { Server } from "../operation.ts";
import type { Question } from "../../protocol/question.ts";
import { readBytes } from "../request_body.ts";

/** Returns the link that a text is, or the reason why it is none. */
export type ReadLink = (text: string) => Promise<Link | "invalid" | "expired">;

/** The maximum number of bytes of a form. */
const maxForm = 16_384;

/** Returns the app that shows the pages of links, and answers their questions. */
export function pagesOf(server: Server, readLink: ReadLink): Hono {
  const path = "/:jizai_link"; // an app that mounts the pages may have a parameter of a usual name
  const app = new Hono();

  /** Handles the request of a link. An error becomes a page without its message. */
  async function handle(c: Context, respond: (link: Link) => Promise<Response>): Promise<Response> {
    let place: ErrorPlace | undefined;
    try {
      const link = await readLink(c.req.param("jizai_link") ?? "");
      if (typeof link === "string") return problemPage(c, link);
      place = link;
      return await respond(link);
    } catch (error) {
      const method = c.req.method === "POST" ? "POST" : "GET";
      const { status, headers } = errorResponse(error, c, server.options, {
        route: { method, path: "/approvals" },
        ...(place && { place }),
      });
      const retryAfter = headers.get("retry-after");
      if (retryAfter !== null) c.header("retry-after", retryAfter);
      return problemPage(c, "failed", status as ContentfulStatusCode); // it has a body
    }
  }

  app.get(path, (c) =>
    handle(c, async (link) => {
      const standing = await standingOf(server, link);
      return "question" in standing
        ? questionPage(c, { agent: server.runs.agent.name, link, question: standing.question })
        : problemPage(c, standing.state);
    }));
  app.post(path, (c) =>
    handle(c, async (link) => {
      const form = new URLSearchParams(new TextDecoder().decode(await readBytes(c, maxForm)));
      const standing = await answer(c, server, link, form.get("reason")?.trim() ?? "");
      return standing.state === "open" ? donePage(c, link, standing.others) : problemPage(c, standing.state);
    }));
  return app;
}

/** The statuses and the texts of pages that show no question. */
const problems = {
  invalid: [400, "This link is not valid", "It is incomplete, was changed, or belongs to another server."],
  expired: [410, "This link has expired", "It decides nothing any more."],
  closed: [
    409,
    "This question is closed",
    "It was answered before, or the run has ended or gone on without an answer.",
  ],
  changed: [
    409,
    "This question has changed",
    "Nothing was decided by this link. A newer message has the new question.",
  ],
  forgotten: [
    410,
    "This question cannot be shown",
    "The server does not keep it any more. Answer it in the application.",
  ],
  working: [503, "The run is working", "It has not asked again yet, and nothing was decided. Try again in a minute."],
  failed: [
    500,
    "Something went wrong",
    "Open the link again in a minute: it shows whether the question is still open.",
  ],
} as const satisfies Readonly<Record<string, readonly [number, string, string]>>;

/** Returns a page without content of the run. */
function problemPage(c: Context, problem: keyof typeof problems, status?: ContentfulStatusCode): Promise<Response> {
  const [usual, title, text] = problems[problem];
  if (problem === "working") c.header("retry-after", "60");
  return page(c, {
    status: status ?? usual,
    title,
    body: html`
      <h1>${title}</h1>
      <p>${text}</p>
    `,
  });
}

/** Returns the page that confirms an answer. */
function donePage(c: Context, { decision }: Link, others: number): Promise<Response> {
  const title = decision === "approve" ? "Approved" : "Denied";
  const rest = others === 0 ? "The run continues." : `Questions of this run that are still open: ${others}.`;
  return page(c, {
    status: 200,
    title,
    body: html`
      <h1>${title}</h1>
      <p>${rest}</p>
    `,
  });
}

/** The content of the page of a question. */
interface ShownQuestion {
  readonly agent: string;
  readonly link: Link;
  readonly question: Question;
}

/** Returns the page that shows a question and asks for the click that decides. Characters that would hide a part of it are escaped. */
function questionPage(c: Context, { agent, link, question }: ShownQuestion): Promise<Response> {
  const { decision, expires } = link;
  const { path = [], tool = "", input, questions } = question;
  const isDenial = decision === "deny";
  const verb = isDenial ? "Deny" : "Approve";
  const shown = visible(JSON.stringify(input, null, 2) ?? "", "\n");
  const reason = isDenial &&
    html`<label>Reason, which the agent reads (optional)<textarea name="reason" maxlength="1000" rows="3"></textarea></label>`;
  const body = html`
    <h1>${verb} this call?</h1>
    ${questions.map((text) => html`<p class="question">${visible(text, "\n")}</p>`)}
    <dl>
      <dt>Tool</dt>
      <dd><code>${visible(tool)}</code></dd>
      <dt>Asked by</dt>
      <dd>${visible([agent, ...path].join(" → "))}</dd>
      <dt>Input</dt>
      <dd>
        <pre>${shown}</pre>
      </dd>
      <dt>Link expires</dt>
      <dd>${new Date(expires).toISOString().replace(/T(.....).*/, " $1 UTC")}</dd>
    </dl>
    <form method="post">${reason}<button class="${decision}">${verb}</button></form>
  `;
  return page(c, { status: 200, title: `${verb} a call`, body });
}

/** A page: its status, its title, which previews of chats show, and its content. */
interface Page {
  readonly status: ContentfulStatusCode;
  readonly title: string;
  readonly body: ReturnType<typeof html>;
}

/** Returns a page. It loads nothing, runs no script, cannot be framed, and is not cached, indexed or named to other sites. */
async function page(c: Context, { status, title, body }: Page): Promise<Response> {
  const nonce = crypto.randomUUID();
  const document = html`
    <!doctype html>
    <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="robots" content="noindex">
      <title>${title}</title>
      <link rel="icon" href="data:,">
      <style nonce="${nonce}">${style}</style>
      <main>${body}</main>
    </html>
  `;
  return await c.html(document, status, {
    "cache-control": "no-store",
    "content-security-policy": `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; form-action 'self'; ` +
      "base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow, noarchive, nosnippet",
  });
}

/** The style of the pages, in both colour schemes. It contains no character that HTML escapes. */
const style = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { box-sizing: border-box; max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.4rem; }
dt { margin-top: 0.75rem; font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 0; padding: 0.75rem; white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid GrayText; border-radius: 6px; }
.question { white-space: pre-wrap; overflow-wrap: anywhere; }
label, textarea { display: block; box-sizing: border-box; width: 100%; font: inherit; }
button { width: 100%; margin-top: 1.25rem; padding: 0.75rem; font: inherit; font-weight: 600; color: #fff; background: #1a6b34; border: 0; border-radius: 6px; }
button.deny { background: #a3231f; }
`;
