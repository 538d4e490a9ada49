/**
 * A small full-text index: BM25 over the words of passages, and more for those of a title.
 *
 * @module
 */
import type { Passage, Place } from "./docs.ts";

/** A passage that was found, and how well it fits: more is better. */
export interface Hit {
  readonly passage: Passage;
  readonly score: number;
}

/** How to search. */
export interface SearchOptions {
  /** Where. Default: everywhere. */
  readonly place?: Place | undefined;
  /** The most hits. Default: 3. */
  readonly limit?: number;
}

/** An index of passages. */
export interface Library {
  /** The passages that fit `query` best, the best first. None where none holds enough of its words. */
  search(query: string, options?: SearchOptions): readonly Hit[];
  /** The passage of this id. */
  read(id: string): Passage | undefined;
}

/** The weight of a word of the title, relative to the text. */
const titleBonus = 2;
/** How much of a query, by the weight of its words, a passage must hold. */
const enough = 0.5;
/** How much of the best score a hit must have to be one. */
const near = 0.4;
/** BM25: how soon repetition stops counting, and how much long passages are held back. */
const saturation = 1.2;
const lengthPenalty = 0.75;

interface Indexed {
  readonly passage: Passage;
  readonly title: ReadonlySet<string>;
  /** How often each word is in the text or the title. */
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

/** Indexes `passages`. */
export function library(passages: readonly Passage[]): Library {
  const indexed = passages.map(indexOne);
  const average = indexed.reduce((sum, { length }) => sum + length, 0) / Math.max(1, indexed.length);
  const holders = new Map<string, number>();
  for (const { counts } of indexed) for (const word of counts.keys()) holders.set(word, (holders.get(word) ?? 0) + 1);
  const byId = new Map(passages.map((passage) => [passage.id, passage]));

  /** Returns the weight of a word: rare words weigh more. */
  function weight(word: string): number {
    const n = holders.get(word) ?? 0;
    return Math.log(1 + (indexed.length - n + 0.5) / (n + 0.5));
  }

  function score({ title, counts, length }: Indexed, query: ReadonlySet<string>): number {
    let score = 0;
    let held = 0;
    let whole = 0;
    for (const word of query) {
      const times = counts.get(word) ?? 0;
      const norm = saturation * (1 - lengthPenalty + lengthPenalty * length / average);
      whole += weight(word);
      if (times > 0) held += weight(word);
      score += weight(word) * times * (saturation + 1) / (times + norm);
      if (title.has(word)) score += weight(word) * titleBonus * 2 / (1 + title.size); // more, where it is all that it says
    }
    return held >= enough * whole ? score : 0;
  }

  return {
    read: (id) => byId.get(id),
    search(query, { place, limit = 3 } = {}) {
      const asked = new Set(wordsOf(query));
      const ranked = indexed.filter(({ passage }) => !place || passage.place === place)
        .map((each): Hit => ({ passage: each.passage, score: score(each, asked) }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score);
      return ranked.filter(({ score }) => score >= near * (ranked[0]?.score ?? 0)).slice(0, limit);
    },
  };
}

function indexOne(passage: Passage): Indexed {
  const title = wordsOf(passage.title);
  const words = [...title, ...wordsOf(passage.text.replaceAll(/```ts[\s\S]*?```/g, ""))]; // examples are about anything
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { passage, title: new Set(title), counts, length: words.length };
}

const silent = new Set(
  ("a about all am an and any are as at be been but by can could did do does for from give had has have how i if in into is it " +
    "its let like may me mean means my no not of on one or our please should show so some tell than that the their them " +
    "then there these they this to us want was we were what when where which who whom whose why will with would you your")
    .split(" "),
);

/** The words of a text that can be searched for: lower case, names in camelCase taken apart, endings left off. */
export function wordsOf(text: string): string[] {
  return text.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().match(/[\p{L}\d]+/gu)
    ?.filter((word) => word.length > 1 && !silent.has(word)).map(stem) ?? [];
}

/** The same for `retry`, `retries` and `retrying`: rough, but one way for the passages and for the query. */
function stem(word: string): string {
  if (word.length < 4 || /(ss|us|is)$/.test(word)) return word;
  const whole = word.replace(/ies$/, "y").replace(/s$/, "");
  const base = whole.length > 5 ? whole.replace(/([bdgmnprt])\1ing$/, "$1").replace(/ing$/, "") : whole;
  return base.length > 3 ? base.replace(/e$/, "") : base;
}
