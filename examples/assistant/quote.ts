/**
 * Quotes the blocks of a passage that fit a question best.
 *
 * @module
 */
import { wordsOf } from "./search.ts";

/** The approximate number of characters of a quotation. */
const maxLength = 600;

/** Quotes `text` as Markdown: its first block, and the blocks that fit `question`. */
export function quote(text: string, question: string): string {
  const asked = new Set(wordsOf(question));
  const holds = (line: string) => asked.intersection(new Set(wordsOf(line))).size;
  const blocks = blocksOf(text).map((block, at) => ({ at, text: shorten(block, holds), fit: holds(block) }));
  const [lead, ...rest] = blocks;
  const chosen = new Set([lead]);
  let length = lead?.text.length ?? 0;
  for (const block of rest.filter(({ fit }) => fit > 0).sort((a, b) => b.fit - a.fit || a.at - b.at)) {
    length += block.text.length;
    if (length <= maxLength) chosen.add(block);
  }
  const quoted = blocks.filter((block) => chosen.has(block)).map((block) => block.text).join("\n\n");
  return quoted.replaceAll(/^/gm, "> ").replaceAll(/ +$/gm, "");
}

/** Splits Markdown into paragraphs, tables, lists and fenced code. A block that ends with a colon includes the next one. */
function blocksOf(markdown: string): string[] {
  const blocks: string[][] = [[]];
  let fenced = false;
  for (const line of markdown.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    if (line === "" && !fenced && !blocks.at(-1)?.at(-1)?.endsWith(":")) blocks.push([]);
    else blocks.at(-1)?.push(line);
  }
  return blocks.map((block) => block.join("\n").trim()).filter((block) => block !== "");
}

/** Removes the padding of a table, and the lines of a long table or list that do not fit the question. */
function shorten(block: string, holds: (line: string) => number): string {
  const isTable = block.startsWith("|");
  const text = isTable ? block.replace(/ {2,}/g, " ").replace(/-{4,}/g, "---") : block;
  if (text.length <= maxLength || !/^[|-]/.test(text)) return text;
  const head = isTable ? 2 : 0;
  return text.split("\n").filter((line, at) => at < head || holds(line) > 0).join("\n");
}
