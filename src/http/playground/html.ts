/**
 * The HTML of the page.
 *
 * @module
 */

/** Returns the document. The nonce is the only thing that lets its script and its style run. */
export function html({ style, script, nonce }: Readonly<Record<"style" | "script" | "nonce", string>>): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Playground</title>
<style nonce="${nonce}">${style}</style>
<body>
<header>
  <h1>Playground</h1>
  <span id="state" role="status"></span>
  <button id="finish" type="button" title="Answers once more, without tools, and ends">Finish</button>
  <button id="stop" type="button">Stop</button>
  <button id="new" type="button">New conversation</button>
</header>
<main aria-label="Conversation">
  <ol id="log" role="log" aria-label="Transcript" tabindex="0"></ol>
  <p class="empty">Send the agent a message.</p>
  <div id="asked" aria-live="assertive"></div>
  <form id="composer">
    <label><span class="hidden">Message</span><textarea id="words" rows="2" autofocus></textarea></label>
    <button id="send">Send</button>
  </form>
</main>
<aside aria-labelledby="run">
  <h2 id="run">Run</h2>
  <ol id="onion" aria-labelledby="run" tabindex="0"></ol>
  <p class="empty">This list shows each point of the run with its time. Create the agent with trace to see its hooks and their decisions.</p>
</aside>
<script nonce="${nonce}">${script}</script>
</html>
`;
}
