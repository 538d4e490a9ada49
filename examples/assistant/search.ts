/**
 * A small full-text index: BM25 over the words of passages, with a bonus for words of the title.
 *
 * @module
 */
import type { Passage, Place } from "./docs.ts";

/** A passage that was found. A higher score fits better. */
export interface Hit {
  readonly passage: Passage;
  readonly score: number;
}

/** Options of `Library.search()`. */
export interface SearchOptions {
  /** The kind of documentation. Default: both. */
  readonly place?: Place | undefined;
  /** The maximum number of hits. Default: 3. */
  readonly limit?: number;
}

/** An index of passages. */
export interface Library {
  /** Returns the passages that fit `query` best, the best first; none if no passage contains enough of its words. */
  search(query: string, options?: SearchOptions): readonly Hit[];
  /** Returns the passage with this id. */
  read(id: string): Passage | undefined;
}

/** The weight of a word of the title, relative to the text. */
const titleBonus = 2;
/** The share of a query, by the weight of its words, that a passage must contain. */
const minimumShare = 0.5;
/** The share of the best score that a hit must have. */
const minimumScore = 0.4;
/** Parameters of BM25, usually called k1 and b: the weight of repetition, and of the length of a passage. */
const saturation = 1.2;
const lengthPenalty = 0.75;

interface Indexed {
  readonly passage: Passage;
  readonly title: ReadonlySet<string>;
  /** The number of times that each word occurs in the text and the title. */
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
    let matched = 0;
    let total = 0;
    for (const word of query) {
      const times = counts.get(word) ?? 0;
      const norm = saturation * (1 - lengthPenalty + lengthPenalty * length / average);
      total += weight(word);
      if (times > 0) matched += weight(word);
      score += weight(word) * times * (saturation + 1) / (times + norm);
      if (title.has(word)) score += weight(word) * titleBonus * 2 / (1 + title.size); // a short title weighs more
    }
    return matched >= minimumShare * total ? score : 0;
  }

  return {
    read: (id) => byId.get(id),
    search(query, { place, limit = 3 } = {}) {
      const words = new Set(wordsOf(query));
      const ranked = indexed.filter(({ passage }) => !place || passage.place === place)
        .map((each): Hit => ({ passage: each.passage, score: score(each, words) }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score);
      return ranked.filter(({ score }) => score >= minimumScore * (ranked[0]?.score ?? 0)).slice(0, limit);
    },
  };
}

function indexOne(passage: Passage): Indexed {
  const title = wordsOf(passage.title);
  const words = [...title, ...wordsOf(passage.text.replaceAll(/```ts[\s\S]*?```/g, ""))]; // code examples contain unrelated words
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { passage, title: new Set(title), counts, length: words.length };
}

const stopWords = new Set(
  ("a about all am an and any are as at be been but by can could did do does for from give had has have how i if in into is it " +
    "its let like may me mean means my no not of on one or our please should show so some tell than that the their them " +
    "then there these they this to us want was we were what when where which who whom whose why will with would you your")
    .split(" "),
);

/** Returns the searchable words of a text: in lower case, with camelCase split and endings removed. */
export function wordsOf(text: string): string[] {
  return text.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().match(/[\p{L}\d]+/gu)
    ?.filter((word) => word.length > 1 && !stopWords.has(word)).map(stem) ?? [];
}

/** Removes endings, so that `retry`, `retries` and `retrying` are one word. Passages and queries use the same rules. */
function stem(word: string): string {
  if (word.length < 4 || /(ss|us|is)$/.test(word)) return word;
  const whole = word.replace(/ies$/, "y").replace(/s$/, "");
  const base = whole.length > 5 ? whole.replace(/([bdgmnprt])\1ing$/, "$1").replace(/ing$/, "") : whole;
  return base.length > 3 ? base.replace(/e$/, "") : base;
}
