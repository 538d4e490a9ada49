/**
 * The difference of two values, as pieces of text.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";

// Values as text.

/** Returns a value of a hook's context as text: messages by role, parts as their texts, everything else as JSON. */
export function textOfValue(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return String(value);
  if (isMessage(value)) return `${value.role}: ${wordsOfMessage(value)}`;
  if (
    Array.isArray(value) && (value.length === 0 || value.some((each) => typeof each === "string" || isMessage(each)))
  ) {
    return value.map(textOfValue).join("\n");
  }
  const { parts, ...fields } = Object(value);
  if (!Array.isArray(parts)) return JSON.stringify(value, null, 2);
  const lines = Object.entries(fields).map(([name, each]) => `${name}: ${textOfValue(each)}`);
  return [...lines, wordsOfParts(parts)].join("\n");
}

/** Returns a message as text: its texts, its calls, or its results. */
export function wordsOfMessage(message: Message): string {
  if (message.role === "tool") {
    return message.results.map(({ callId, status, parts }) => `${callId} ${status}: ${wordsOfParts(parts)}`).join("\n");
  }
  return wordsOfParts(message.parts);
}

function wordsOfParts(parts: readonly { readonly type?: string; readonly text?: string }[]): string {
  return parts.map((part) => typeof part.text === "string" ? part.text : JSON.stringify(part)).join("\n");
}

/** Whether a value is a message. Cut values and those of careless hooks only look like one. */
function isMessage(value: unknown): value is Message {
  const { role, parts, results } = Object(value);
  const lists = [parts, results].filter(Array.isArray).flat();
  if (typeof role !== "string" || !(Array.isArray(parts) || Array.isArray(results))) return false;
  return role !== "tool" ? Array.isArray(parts) : lists.every((each) => Array.isArray(Object(each).parts));
}

// Pieces of text.

/** A piece of text that is in both texts, only in the first one, or only in the second one. */
export interface Piece {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** The most words in a table. Longer texts are compared by line, and those with more lines are replaced as a whole. */
const mostTokens = 600;

/** The smallest part of the longer text that must be in both, so that the pieces are readable. */
const alike = 0.3;

/** Returns the difference of two texts: by word, or by line if they are long. Texts that have little in common are one piece each. */
export function differenceOf(before: string, after: string): readonly Piece[] {
  for (const pattern of [/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu, /[^\n]*\n|[^\n]+$/g]) {
    const [old, now] = [before, after].map((text) => text.match(pattern) ?? []);
    if (!old || !now || Math.max(old.length, now.length) > mostTokens) continue;
    const pieces = joined(common(old, now));
    const same = pieces.reduce((sum, { kind, text }) => kind === "same" ? sum + text.trim().length : sum, 0);
    if (same >= alike * Math.min(before.length, after.length)) return pieces;
  }
  return joined([{ kind: "removed", text: before }, { kind: "added", text: after }]);
}

/** Returns the tokens of both lists, by the longest list that they have in common. */
function common(before: readonly string[], after: readonly string[]): readonly Piece[] {
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, now] = [before[i], after[j]];
    if (old !== undefined && old === now) {
      pieces.push({ kind: "same", text: old });
      i++;
      j++;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      pieces.push({ kind: "removed", text: old });
      i++;
    } else {
      pieces.push({ kind: "added", text: now ?? "" });
      j++;
    }
  }
  return pieces;
}

/** Joins the pieces of one kind between two that are the same: what is removed comes before what is added. A character or two between changes belong to both. */
function joined(pieces: readonly Piece[]): readonly Piece[] {
  const result: Piece[] = [];
  const runs: Piece[] = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    if (last?.kind === piece.kind) runs.splice(-1, 1, { ...piece, text: last.text + piece.text });
    else runs.push(piece);
  }
  let [removed, added] = ["", ""];
  const flush = () => {
    if (removed) result.push({ kind: "removed", text: removed });
    if (added) result.push({ kind: "added", text: added });
    [removed, added] = ["", ""];
  };
  for (const [index, { kind, text }] of runs.entries()) {
    const isGap = kind === "same" && /^[^\n]{1,2}$/.test(text) && removed + added !== "" && index < runs.length - 1;
    if (kind === "removed" || isGap) removed += text;
    if (kind === "added" || isGap) added += text;
    if (kind !== "same" || isGap) continue;
    flush();
    result.push({ kind, text });
  }
  flush();
  return result;
}

/** The lines of an unchanged piece that stay beside a change. */
const shownLines = 3;

/** Leaves out the middle of long pieces that are the same. Where nothing changed, nothing is left out. */
export function folded(pieces: readonly Piece[]): readonly Piece[] {
  if (pieces.every(({ kind }) => kind === "same")) return pieces;
  return pieces.map((piece, index) => {
    const lines = piece.text.split("\n");
    const start = index === 0 ? 0 : shownLines;
    const end = index === pieces.length - 1 ? 0 : shownLines;
    const omitted = lines.length - start - end;
    if (piece.kind !== "same" || omitted < shownLines) return piece;
    const kept = [...lines.slice(0, start), `⋯ ${omitted} lines`, ...lines.slice(lines.length - end)];
    return { ...piece, text: kept.join("\n") };
  });
}
