/**
 * The HTML of the page.
 *
 * @module
 */
import type { PageData } from "./page_data.ts";

/** The parts of the document. */
export interface HtmlParts {
  readonly style: string;
  readonly script: string;
  readonly data: PageData;
  /** The nonce of the content security policy, which allows only the script and the style that have it. */
  readonly nonce: string;
}

/** Returns the document. The data is in an attribute of its root. */
export function html({ style, script, data, nonce }: HtmlParts): string {
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
