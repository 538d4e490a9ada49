/**
 * The entries of a session: numbered changes of its transcript, which stores append and never change.
 *
 * @module
 */
import type { NumberedJournalEntry } from "./journal.ts";
import type { Message } from "../protocol/message.ts";

/** An entry of a session. Entries are numbered from 1. */
export type Entry =
  /** A message at the end of the transcript. */
  | { readonly type: "message"; readonly message: Message }
  /** The transcript is again as it was after entry `to`. 0: it is empty. */
  | { readonly type: "back"; readonly to: number }
  /** The transcript begins anew, with the `count` messages that follow: the first `same` and the last `kept` of them repeat those of the transcript before. */
  | { readonly type: "base"; readonly count: number; readonly same: number; readonly kept: number }
  /** A large value that the session refers to by the number of the entry. */
  | { readonly type: "value"; readonly value: unknown };

/** Messages, and the numbers of the entries that store them. They rise. */
export interface NumberedMessages {
  readonly messages: readonly Message[];
  readonly numbers: readonly number[];
}

/** The transcript of a session, as its entries store it. */
export interface StoredTranscript extends NumberedMessages {
  /** The number of the entry from which on the transcript is read: a base, or 1. */
  readonly base: number;
  /** The number of the last entry; 0: there is none. */
  readonly last: number;
  /** The transcript before the base, if this writer has stored the base: a rollback may return to it. */
  readonly earlier?: StoredTranscript | undefined;
}

/** The transcript of a session without entries. */
export const emptyTranscript: StoredTranscript = { messages: [], numbers: [], base: 1, last: 0 };

/** The transcript from one base to the next. */
interface Segment {
  readonly base: number;
  readonly messages: Message[];
  readonly numbers: number[];
  /** For each message, the number at which the history has it: that of an earlier segment if the message repeats it. */
  readonly shown: number[];
  /** The numbers of earlier segments that the history no longer has because of this one. */
  readonly hidden: Set<number>;
  /** Returns the number at which the history has the message at an index, if that message repeats one of the segment before. */
  readonly repeats: (index: number) => { readonly shown: number; readonly moves: boolean } | undefined;
}

function segmentAt(base: number, repeats: Segment["repeats"] = () => undefined): Segment {
  return { base, messages: [], numbers: [], shown: [], hidden: new Set(), repeats };
}

/** Returns the transcripts that entries make: one for each base, of which the last is that of the session. */
function segmentsOf(entries: readonly NumberedJournalEntry[]): readonly Segment[] {
  const segments = [segmentAt(1)];
  for (const [number, entry] of entries) {
    const top = segments.at(-1) as Segment; // the first one is never removed
    if (entry.type === "message") push(top, number, entry.message);
    else if (entry.type === "back") goBackTo(segments, entry.to);
    else if (entry.type === "base") {
      const { same, kept, count } = entry;
      const { shown } = top;
      segments.push(segmentAt(number, (index) => {
        if (index < same) return { shown: shown[index] ?? 0, moves: false };
        return index < count - kept || index >= count
          ? undefined
          : { shown: shown[shown.length - count + index] ?? 0, moves: true };
      }));
    }
  }
  return segments;
}

function push({ base, messages, numbers, shown, hidden, repeats }: Segment, number: number, message: Message): void {
  const repeated = number === base + 1 + numbers.length ? repeats(numbers.length) : undefined; // otherwise a `back` entry is in between
  if (repeated?.moves) hidden.add(repeated.shown);
  shown.push(repeated && !repeated.moves ? repeated.shown : number);
  messages.push(message);
  numbers.push(number);
}

/** Removes what follows an entry. */
function goBackTo(segments: Segment[], to: number): void {
  while (segments.length > 1 && (segments.at(-1)?.base ?? 0) > to) segments.pop();
  const { messages, numbers, shown, hidden } = segments.at(-1) as Segment; // the first one is never removed
  while ((numbers.at(-1) ?? 0) > to) {
    messages.pop();
    numbers.pop();
    hidden.add(shown.pop() ?? 0);
  }
}

/** Returns the transcript that entries make. They begin with a base, or with the first entry. */
export function transcriptOf(entries: readonly NumberedJournalEntry[]): NumberedMessages {
  const { messages, numbers } = segmentsOf(entries).at(-1) as Segment; // there is at least one
  return { messages, numbers };
}

/** The entries that make a new transcript of a stored one. */
interface TranscriptChange {
  readonly entries: readonly Entry[];
  /** The transcript once they are stored. */
  readonly stored: StoredTranscript;
}

/**
 * Returns the entries that make `messages` of what is stored: the messages that are new, after a `back` entry where messages have gone. A compaction begins a base, and so
 * does a change after which an opening would read more than twice what it needs. Messages that are other objects are compared as JSON.
 */
export function changeTo(
  messages: readonly Message[],
  stored: StoredTranscript,
  isCompaction: boolean,
): TranscriptChange {
  if (isCompaction) return basedOn(messages, stored, []);
  const { last } = stored;
  const from = closest(stored, messages);
  const { messages: old, numbers, base } = from;
  const same = countSame(old, messages);
  const returns = from !== stored || same < old.length;
  const back: readonly Entry[] = returns ? [{ type: "back", to: numbers[same - 1] ?? (base === 1 ? 0 : base) }] : [];
  const added = messages.slice(same);
  const first = last + back.length + 1;
  if (returns && first + added.length - base > 2 * messages.length + 16) {
    return basedOn(messages, { ...from, messages: old.slice(0, same), last }, back);
  }
  return {
    entries: [...back, ...added.map((message): Entry => ({ type: "message", message }))],
    stored: {
      messages,
      numbers: (returns ? numbers.slice(0, same) : numbers).concat(added.map((_, index) => first + index)), // much faster than a spread
      base,
      last: first + added.length - 1,
      earlier: from.earlier,
    },
  };
}

/** Returns the transcript that `messages` have most in common with: the stored one, or after a rollback one from before a base. */
function closest(stored: StoredTranscript, messages: readonly Message[]): StoredTranscript {
  let best = stored;
  for (let { earlier } = stored; earlier; { earlier } = earlier) {
    if (countSame(earlier.messages, messages) > countSame(best.messages, messages)) best = earlier;
  }
  return best;
}

/** Returns a change that stores all messages anew, after the `back` entry that removes those that have gone. */
function basedOn(messages: readonly Message[], stored: StoredTranscript, back: readonly Entry[]): TranscriptChange {
  const { messages: old, last } = stored;
  const same = countSame(old, messages);
  const maxSame = Math.min(old.length, messages.length) - same;
  let kept = 0;
  while (kept < maxSame && isSame(old.at(-1 - kept), messages.at(-1 - kept))) kept++;
  const base = last + back.length + 1;
  return {
    entries: [
      ...back,
      { type: "base", count: messages.length, same, kept },
      ...messages.map((message): Entry => ({ type: "message", message })),
    ],
    stored: {
      messages,
      numbers: messages.map((_, index) => base + 1 + index),
      base,
      last: base + messages.length,
      earlier: stored,
    },
  };
}

/** Returns how many messages two transcripts begin with in common. */
export function countSame(old: readonly Message[], messages: readonly Message[]): number {
  const maxSame = Math.min(old.length, messages.length);
  let same = 0;
  while (same < maxSame && (old[same] === messages[same] || isSame(old[same], messages[same]))) same++; // most are the same objects
  return same;
}

function isSame(a: Message | undefined, b: Message | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Returns the messages of a session's history, with their numbers. The history contains the transcript, and of each transcript before a base the messages that the
 * next one does not repeat. No message that a `back` entry has removed is among them. `entries` are all entries of a session, or those before one of them.
 */
export function historyOf(
  entries: readonly NumberedJournalEntry[],
): readonly (readonly [number: number, message: Message])[] {
  const segments = segmentsOf(entries);
  const hidden = new Set(segments.flatMap(({ hidden }) => [...hidden]));
  return segments.flatMap(({ messages, numbers, shown }) =>
    messages.flatMap((message, index) => {
      const number = numbers[index] ?? 0;
      return number === shown[index] && !hidden.has(number) ? [[number, message] as const] : [];
    })
  );
}
