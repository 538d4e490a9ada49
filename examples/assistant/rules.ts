/**
 * The rules of the embedded model, which decide the next step from the transcript. A rule applies to a prompt that its pattern matches: it plans calls until
 * it has their results, and then answers. Questions that no rule knows are looked up in the guides.
 *
 * @module
 */
import { type CallResult, callsOf, type Message, textOf } from "@jizai/jizai";
import { hits } from "./guides.ts";
import { shelves, stock } from "./tools.ts";

/** A call to make: the tool and its input. */
export type PlannedCall = readonly [name: string, input: Readonly<Record<string, unknown>>];

/** The next step: calls, or an answer. */
export type Step = { readonly calls: readonly PlannedCall[]; readonly text?: string } | { readonly text: string };

/** A call that has its result. */
interface Done {
  readonly name: string;
  readonly input: unknown;
  readonly result: CallResult;
}

/** A rule: the prompts that it is for, and what it does next. */
interface Rule {
  readonly pattern: RegExp;
  readonly next: (match: RegExpMatchArray, done: readonly Done[]) => Step;
}

const items = Object.keys(stock);
const pairs = items.flatMap((a, index) => items.slice(index + 1).map((b) => ({ a, b })));

const rules: readonly Rule[] = [
  {
    pattern: /^Propose a gift for (.+)/i, // the prompt of the subagent
    next: ([, whom = ""], done) =>
      done.length === 0
        ? { text: "Let me look.", calls: ["teas", "bowls", "kettles"].map((item) => ["look_up", { item }] as const) }
        : { text: `For ${whom}, I propose a bowl with a tea: 34 euros together.` },
  },
  {
    pattern: /\bgift\b.*?\bfor (.+?)[.?!]*$/i,
    next: once(([, whom = ""]) => ["gift_adviser", { prompt: `Propose a gift for ${whom}` }]),
  },
  {
    pattern: /\brefund\b.*?(\d{4})/i,
    next: once(([, order = ""]) => ["refund", { order, amount: 80 }]),
  },
  {
    pattern: /\b(?:card|paid|payment)\b.*?(\d{4})/i,
    next: once(([, order = ""]) => ["payment", { order }]),
  },
  {
    pattern: /\bdelete\b.*?\bcustomer (\w+)/i,
    next: once(([, customer = ""]) => ["delete_customer", { customer }]),
  },
  {
    pattern: /\b(?:parcel|shipping|ship)\b.*?\bto ([A-Z]\w+)/,
    next: once(([, city = ""]) => ["shipping_cost", { city }]),
  },
  {
    pattern: /\bcompare\b/i,
    next: (_, done) =>
      done.length < pairs.length
        ? { calls: pairs.slice(done.length, done.length + 3).map((pair) => ["compare", pair] as const) }
        : { text: "I have compared all 21 pairs. Hooks cost least, and scarves most." },
  },
  {
    pattern: /\btake stock\b|\bstocktaking\b|\bshelves\b/i,
    next: (_, done) =>
      done.length < shelves
        ? { calls: [["count_shelf", { shelf: done.length + 1 }]] }
        : { text: `I have counted all ${shelves} shelves:\n\n${done.map((each) => `- ${wordsOf(each)}`).join("\n")}` },
  },
  {
    pattern: new RegExp(items.map((item) => `\\b${item.slice(0, -1)}`).join("|"), "i"),
    next: ({ input = "" }, done) =>
      done.length > 0 ? { text: `We have:\n\n${done.map((each) => `- ${wordsOf(each)}`).join("\n")}` } : {
        calls: items.filter((item) => input.toLowerCase().includes(item.slice(0, -1)))
          .map((item) => ["look_up", { item }]),
      },
  },
  { pattern: /\w{4}/, next: lookUpInGuides },
];

/** Decides what to do next. Without tools, it has to finish. */
export function decide(messages: readonly Message[], hasTools = true): Step {
  const at = messages.findLastIndex((message) => message.role === "user" && message.from === undefined);
  const prompt = messages[at];
  const question = prompt?.role === "user" ? textOf(prompt).slice(0, 2_000) : "";
  const done = doneSince(messages.slice(at + 1));
  if (!hasTools) {
    const ran = done.filter(({ result }) => result.status === "ok").length;
    return { text: `I have to stop here: ${ran} calls ran, and then the budget was spent.` };
  }
  for (const { pattern, next } of rules) {
    const match = question.match(pattern);
    if (match) return next(match, done);
  }
  return { text: introduction };
}

/** Returns what a rule does that makes one call and reports its result. */
function once(call: (match: RegExpMatchArray) => PlannedCall): Rule["next"] {
  return (match, done) => done.length === 0 ? { calls: [call(match)] } : { text: done.map(wordsOf).join(" ") };
}

function lookUpInGuides({ input = "" }: RegExpMatchArray, done: readonly Done[]): Step {
  const [found] = done;
  if (!found) return { calls: [["search_guides", { query: input.slice(0, 200) }]] };
  if (found.result.status !== "ok") return { text: `I found nothing about that in the guides. ${introduction}` };
  const [best, ...others] = hits.parse(JSON.parse(textOf(found.result)));
  const more = others.map(({ id, title }) => `[${title}](docs/${id})`).join(", ");
  const source = best && `**[${best.title}](docs/${best.id})**\n\n${opening(best.text)}`;
  return { text: [source, more && `See also: ${more}`].filter(Boolean).join("\n\n") };
}

/** Returns the first paragraphs of a section, up to its first example. */
function opening(text: string): string {
  const [before = "", code] = text.split(/^```/m, 2);
  const example = code === undefined ? "" : `\n\n\`\`\`${code}\`\`\``;
  return before.trim().length > 200 ? before.trim() : before.trim() + example;
}

function wordsOf({ result }: Done): string {
  return result.status === "ok" ? textOf(result) : `That did not work: ${textOf(result)}`;
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

const introduction =
  "I am the assistant of a small shop. I look up the stock, refund orders, ask the carrier, find gifts and take stock. I follow a few " +
  "rules and am not a language model: with `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, a real one plays the same tour. I also search the guides of Jizai.";
