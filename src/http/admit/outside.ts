/**
 * The content of messages from outside: texts, files, calls and results. All that only this server or its providers write is left out.
 *
 * @module
 */
import type { Message, UserMessage } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../../protocol/part.ts";
import { invalid } from "../../protocol/shape.ts";

/** The authors of the messages that the engine and `compaction()` add, by which they recognise them. */
const reservedAuthors: readonly unknown[] = [
  "compaction",
  "context",
  "input",
  "output",
  "prompt",
  "session",
  "stop",
  "turn",
];

/** Counts the provider notes that are left out. */
interface Dropped {
  notes: number;
}

/** Messages from outside, and the number of provider notes that they had. */
export interface OutsideMessages extends Readonly<Dropped> {
  readonly messages: readonly Message[];
}

/**
 * Returns the messages of a client without their provider notes. Adapters make raw items for a provider of notes, so only those that this server has written
 * count: they are in the stored session. Messages that are empty then, and reserved authors, are left out. Throws a `ShapeError` for the address of a file
 * that a provider would open with the server's own rights.
 */
export function outsideMessages(given: readonly Message[]): OutsideMessages {
  const dropped: Dropped = { notes: 0 };
  const messages = given.flatMap((message, index): readonly Message[] => {
    const path = `messages.${index}`;
    if (message.role === "user") return [userMessageOf(message, path, dropped)];
    if (message.role === "tool") {
      const results = message.results.map((result, index) => ({
        ...result,
        parts: partsOf(result.parts, `${path}.results.${index}.parts`, dropped),
      }));
      return [{ ...message, results }];
    }
    const parts = partsOf(message.parts, `${path}.parts`, dropped);
    return parts.length > 0 ? [{ ...message, parts }] : [];
  });
  return { messages, ...dropped };
}

/** Returns one message of a client in the same way. */
export function outsideMessage(message: UserMessage): UserMessage {
  return userMessageOf(message, "", { notes: 0 });
}

function userMessageOf({ from, ...message }: UserMessage, path: string, dropped: Dropped): UserMessage {
  const author = from !== undefined && !reservedAuthors.includes(from) && { from };
  return { ...message, ...author, parts: partsOf(message.parts, path === "" ? "parts" : `${path}.parts`, dropped) };
}

/** Returns the parts without notes. Reasoning that is nothing but a note is left out. */
function partsOf<P extends AnswerPart | ContentPart>(parts: readonly P[], path: string, dropped: Dropped): P[] {
  return parts.flatMap((part, index): P[] => {
    if (part.type === "media" && part.url !== undefined) checkAddress(part.url, `${path}.${index}.url`);
    if (!("meta" in part) || part.meta === undefined) return [part];
    dropped.notes++;
    const { meta: _, ...rest } = part;
    return part.type === "reasoning" && part.text === "" ? [] : [rest as P]; // the same part, without its optional field
  });
}

/** Throws unless an address is public: a provider opens others, such as `gs:` and its own files, with the server's rights. */
function checkAddress(url: string, path: string): void {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  const isOfProvider = /generativelanguage|(^|\.)storage\.(mtls\.)?cloud\.google\.com\.?$/.test(hostname);
  if (isOfProvider || !/^(https?|data):$/.test(protocol)) throw invalid(path, "a public http, https or data URL");
}
