/**
 * The rules of the embedded model, which decide the next step from the transcript.
 *
 * 1. A question: search the READMEs for the person's words and the docblocks for the project's words; calculate an expression. All in one turn.
 * 2. Hits: read the two best in one turn.
 * 3. Otherwise: answer with quotations and their sources.
 *
 * @module
 */
import { type CallResult, callsOf, type Message, textOf } from "@jizai/jizai";
import type { Place } from "./docs.ts";
import { quote } from "./quote.ts";
import { wordsOf } from "./search.ts";
import { hits } from "./tools.ts";

/** A call to make. */
export interface PlannedCall {
  readonly name: "search_docs" | "read_doc" | "calculate";
  readonly input: Readonly<Record<string, string>>;
}

/** The next step: calls, or an answer. */
export type Step = { readonly calls: readonly PlannedCall[] } | { readonly text: string };

/** The maximum length of a prompt, and of a search query. */
const maxPrompt = 2_000;
const maxQuery = 200;

/** Decides what to do next. */
export function decide(messages: readonly Message[]): Step {
  const at = messages.findLastIndex((message) => message.role === "user" && message.from === undefined);
  const prompt = messages[at];
  const question = prompt?.role === "user" ? textOf(prompt).slice(0, maxPrompt) : "";
  const done = doneSince(messages.slice(at + 1));
  if (done.length === 0) return firstStep(question);
  const found = foundIn(done);
  const unread = found.slice(0, 2).filter(({ id }) => !done.some(({ input }) => field(input, "id") === id));
  if (unread.length > 0) return { calls: unread.map(({ id }) => ({ name: "read_doc", input: { id } })) };
  return { text: answer(question, done, found) };
}

function firstStep(question: string): Step {
  const expression = expressionIn(question);
  const words = searchable(question.replace(expression ?? "", " "));
  const calls: PlannedCall[] = [];
  if (expression) calls.push({ name: "calculate", input: { expression } });
  if (words.length > 0) calls.push(search(words, "guide"), search(words.map(translate), "code"));
  return calls.length > 0 ? { calls } : { text: introduction };
}

function search(words: readonly string[], place: Place): PlannedCall {
  return { name: "search_docs", input: { query: [...new Set(words)].join(" ").slice(0, maxQuery), place } };
}

/** Finds arithmetic in a sentence: from the first number or parenthesis to the last, with an operator between. */
function expressionIn(question: string): string | undefined {
  const [found] = question.match(/[-(\d][-+*/%^().\d\s]*[)\d]/g)?.filter((text) => /[\d)]\s*[-+*/%^]/.test(text)) ?? [];
  return found?.trim();
}

/** Returns the words to search for, without greetings and words such as "calculate". */
function searchable(question: string): string[] {
  const words = question.toLowerCase().match(/[\p{L}\d_]+/gu) ?? [];
  const ignored = /^(hi|hello|hey|thanks?|help|calculate|compute|result|much|plus|also)$/;
  return words.filter((word) => wordsOf(word).length > 0 && !ignored.test(word));
}

/** Maps words that people use to the words of this project. */
const ourWords = new Map([
  ...synonyms("slow hang deadline", "timeout"),
  ...synonyms("fail failing flaky again", "retry"),
  ...synonyms("secret password mask hide leak", "redact"),
  ...synonyms("confirm confirmation permit permission forbid block person human", "approval"),
  ...synonyms("cap budget maximum quota", "limits"),
  ...synonyms("log debug print", "logger"),
  ...synonyms("plugin extension interceptor callback", "middleware"),
  ...synonyms("lock mutex alone", "serial"),
  ...synonyms("deploy host hosting cloudflare edge server http", "serve"),
  ...synonyms("conversation history continue", "session"),
  ...synonyms("mock fake stub", "scripted"),
  ...synonyms("function action", "tool"),
  ...synonyms("cancel abort", "stop"),
]);

function synonyms(theirs: string, ours: string): [string, string][] {
  return wordsOf(theirs).map((word) => [word, ours]);
}

function translate(word: string): string {
  return ourWords.get(wordsOf(word)[0] ?? "") ?? word;
}

/** A call that has its result. */
interface Done {
  readonly name: string;
  readonly input: unknown;
  readonly result: CallResult;
}

function doneSince(messages: readonly Message[]): Done[] {
  const calls = messages.flatMap((message) => message.role === "assistant" ? callsOf(message) : []);
  const results = new Map(
    messages.flatMap((message) => message.role === "tool" ? message.results : []).map((each) => [each.callId, each]),
  );
  return calls.flatMap(({ id, name, input }) => {
    const result = results.get(id);
    return result ? [{ name, input, result }] : [];
  });
}

interface Found {
  readonly id: string;
  readonly title: string;
}

/** Returns the hits of all searches: the best hit of each search first. */
function foundIn(done: readonly Done[]): Found[] {
  const lists = done.filter(({ name, result }) => name === "search_docs" && result.status === "ok")
    .map(({ result }) => hits.parse(JSON.parse(textOf(result))));
  const ranks = Array.from({ length: Math.max(0, ...lists.map((list) => list.length)) }, (_, rank) => rank);
  return ranks.flatMap((rank) => lists.flatMap((list) => list[rank] ?? []));
}

function answer(question: string, done: readonly Done[], found: readonly Found[]): string {
  const sums = done.filter(({ name }) => name === "calculate").map(describeSum);
  const read = done.filter(({ name, result }) => name === "read_doc" && result.status === "ok");
  const searched = done.some(({ name }) => name === "search_docs");
  const passages = read.map(({ input, result }) => {
    const { id, title } = found.find(({ id }) => id === field(input, "id")) ?? { id: "", title: "" };
    return `**${title}** (${id})\n\n${quote(textOf(result), question)}`;
  });
  const more = found.slice(read.length).map(({ id }) => id);
  return [
    ...sums,
    ...(searched && read.length === 0 ? [nothing] : passages),
    ...(more.length > 0 && read.length > 0 ? [`See also: ${more.join(", ")}`] : []),
  ].join("\n\n");
}

function describeSum({ input, result }: Done): string {
  const expression = field(input, "expression");
  const text = textOf(result);
  if (result.status === "ok") return `${expression} = ${text}`;
  return result.status === "error" ? text : `I did not calculate ${expression}: ${text}`;
}

function field(input: unknown, name: string): string | undefined {
  const value = typeof input === "object" && input !== null ? Reflect.get(input, name) : undefined;
  return typeof value === "string" ? value : undefined;
}

const introduction =
  "I answer questions about this project from its README and its docblocks, and I calculate. Ask me how to write a middleware, or what 12 * (3 + 4) is.";

const nothing =
  "I found nothing about that in the READMEs and the docblocks of this project, which are all I know: I follow a few rules and am not a language model.";
