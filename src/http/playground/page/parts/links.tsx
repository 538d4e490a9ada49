/**
 * Links and images of an answer. An address that could run code is shown as text.
 *
 * @module
 */
import { useState } from "hono/jsx/dom";
import type { Child } from "hono/jsx";

/** A link to a page or a mail address. Any other address is shown beside its text. */
export function Link({ href, children }: { readonly href: string; readonly children: Child }) {
  const url = addressOf(href, ["http:", "https:", "mailto:"]);
  if (!url) {
    return (
      <>
        {children} ({href})
      </>
    );
  }
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** An image that is loaded on click, so that an answer cannot send anything to a server by being shown. */
export function RemoteImage({ href, text }: { readonly href: string; readonly text: string }) {
  const [isShown, show] = useState(false);
  const url = addressOf(href, ["https:", "data:"]);
  if (!url) return <>{text} ({href})</>;
  if (isShown) return <img src={url} alt={text} referrerpolicy="no-referrer" />;
  const { protocol, host } = new URL(url);
  return (
    <button type="button" class="image" onClick={() => show(true)}>
      Show image{text && ` “${text}”`} from {protocol === "data:" ? "this answer" : host}
    </button>
  );
}

/** Returns an absolute address with one of these protocols, or undefined. */
function addressOf(href: string, protocols: readonly string[]): string | undefined {
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return protocols.includes(url.protocol) ? url.href : undefined;
}
