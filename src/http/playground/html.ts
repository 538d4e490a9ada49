/**
 * What is on the page.
 *
 * @module
 */

/** The document. Only what carries the nonce counts. */
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
  <ol id="log" role="log" aria-label="What was said" tabindex="0"></ol>
  <p class="empty">Ask the agent something.</p>
  <div id="asked" aria-live="assertive"></div>
  <form id="composer">
    <label><span class="hidden">Message</span><textarea id="words" rows="2" autofocus></textarea></label>
    <button id="send">Send</button>
  </form>
</main>
<aside aria-labelledby="run">
  <h2 id="run">The run</h2>
  <ol id="onion" aria-labelledby="run" tabindex="0"></ol>
  <p class="empty">Each point of the run will be here with what acted at it, what that decided and how long it took. Hooks are told by agents with trace: true.</p>
</aside>
<script nonce="${nonce}">${script}</script>
</html>
`;
}
