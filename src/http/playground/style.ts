/**
 * The style of the page.
 *
 * @module
 */

/** The style sheet. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#fbfaf7, #17181a);
  --raised: light-dark(#fff, #202225);
  --ink: light-dark(#1d1f22, #e8e6e1);
  --faint: light-dark(#5d6167, #a2a6ad);
  --line: light-dark(#d9d6ce, #3a3d42);
  --flame: light-dark(#b3421a, #f0895c);
  --call: light-dark(#1d6a72, #63bcc4);
  --hook: light-dark(#6b5aa8, #a99bea);
  font: 15px/1.5 system-ui, sans-serif;
}
* { box-sizing: border-box; }
body { margin: 0; height: 100dvh; display: grid; grid-template: auto 1fr / minmax(0, 1fr) minmax(0, 1fr); background: var(--ground); color: var(--ink); }
header { grid-column: 1 / -1; display: flex; gap: .5rem; align-items: center; flex-wrap: wrap; padding: .5rem 1rem; border-bottom: 1px solid var(--line); }
h1, h2 { font-size: 1rem; margin: 0; }
#state { color: var(--faint); flex: 1; }
#state::before { content: "· "; }
main, aside { min-height: 0; display: flex; flex-direction: column; }
aside { border-left: 1px solid var(--line); padding: .75rem 0 0; }
aside h2 { padding: 0 1rem .5rem; }
ol { list-style: none; margin: 0; padding: 0 1rem 1rem; }
#log, #onion { flex: 1; overflow: auto; overscroll-behavior: contain; }
#log { padding-top: 1rem; }
.entry { margin-bottom: .75rem; overflow-wrap: anywhere; }
.who { font-size: .8rem; color: var(--faint); }
.text { white-space: pre-wrap; }
.you .text { background: var(--raised); border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .7rem; }
.thought .text, .note .text { color: var(--faint); font-style: italic; }
summary { color: var(--call); cursor: pointer; font-family: ui-monospace, monospace; font-size: .85rem; }
pre { margin: .25rem 0; padding: .5rem; max-height: 16rem; overflow: auto; white-space: pre-wrap; background: var(--raised); border: 1px solid var(--line); border-radius: .3rem; font-size: .8rem; }
pre:empty { display: none; }
textarea { display: block; width: 100%; font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: .3rem; padding: .4rem .6rem; resize: vertical; }
.question { margin: 0 1rem .75rem; padding: .75rem; border: 2px solid var(--flame); border-radius: .5rem; }
.question label { display: block; margin-bottom: .5rem; font-size: .85rem; color: var(--faint); }
.question textarea { font-family: ui-monospace, monospace; color: var(--ink); }
.asked { margin: 0 0 .5rem; font-weight: 600; }
.question .always { margin: .5rem 0 0; }
button { font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: .3rem; padding: .3rem .8rem; margin-right: .4rem; cursor: pointer; min-height: 2.2rem; }
button:disabled { opacity: .45; cursor: default; }
.approve, #send { background: var(--flame); border-color: var(--flame); color: light-dark(#fff, #17181a); }
:focus-visible { outline: 2px solid var(--flame); outline-offset: 2px; }
#composer { display: flex; gap: .5rem; align-items: end; padding: .75rem 1rem; border-top: 1px solid var(--line); }
#composer label { flex: 1; }
#composer button { margin: 0; }
.hidden { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
.span { display: grid; grid-template: auto 6px / minmax(0, 1fr) minmax(0, auto) 5rem; gap: 0 .6rem; padding: .1rem 0 .15rem; font-size: .82rem; }
.name { padding-left: calc(var(--depth) * .9rem); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.did { color: var(--faint); overflow-wrap: anywhere; text-align: right; }
.ms { text-align: right; font-variant-numeric: tabular-nums; color: var(--faint); }
.track { grid-column: 1 / -1; position: relative; background: light-dark(#efece5, #25272b); border-radius: 3px; }
.bar { position: absolute; inset: 0 auto 0 calc(var(--from) * 100%); width: max(3px, calc(var(--long) * 100%)); max-width: calc((1 - var(--from)) * 100% + 3px); border-radius: 3px; background: var(--flame); }
.call > .name { font-weight: 600; }
.call .bar { background: var(--call); }
.hook .name { color: var(--hook); }
.hook .bar { background: var(--hook); }
.empty { display: none; padding: 0 1rem; color: var(--faint); }
ol:empty + .empty { display: block; flex: 1; }
@media (max-width: 50rem) {
  body { height: auto; min-height: 100dvh; grid-template: auto auto auto / minmax(0, 1fr); }
  aside { border: 0; border-top: 1px solid var(--line); }
  #log { min-height: 45dvh; max-height: 70dvh; }
}
`;
