/**
 * The messages of the library: errors, warnings and answers, as its modules write them.
 *
 * @module
 */
import { placeOf, type Source, walk } from "./source.ts";

/** A message. `{}` stands for a value in it. */
export interface Message {
  /** The place, such as `src/core/run.ts:12`. */
  readonly place: string;
  /** The class of an error, the helper of an answer, such as `denied()`, or "message". */
  readonly kind: string;
  /** The code; empty without one. */
  readonly code: string;
  readonly text: string;
  /** Whether the error has a cause, whose message completes its own. */
  readonly caused: boolean;
}

/** The helpers that answer in place of the inner layers. Their first argument is a text for the model or the client. */
const answers = /^(ask|cancelled|declined|denied|deny|failed|refused|skipped)$/;

/** Returns the messages of a module in their order. Texts that the module only passes on are left out. */
export function messagesOf(source: Source): readonly Message[] {
  const found = new Map<number, Message>();

  function add(kind: string, nodes: readonly Deno.lint.Node[]): void {
    const texts = nodes.flatMap(textsIn);
    const code = texts.find(([text]) => /^[a-z]+([.-][a-z]+)*$/.test(text))?.[0] ?? "";
    const caused = nodes.some(({ range }) => /\bcause\b/.test(source.text.slice(...range)));
    for (const [text, node] of texts) {
      const [start] = node.range;
      if (text.includes(" ") && !found.has(start)) {
        found.set(start, { place: placeOf(source, node), kind, code, text, caused });
      }
    }
  }

  /** Adds a text that reports a failed operation and belongs to no error. An error is visited before its text. */
  function addError(node: Deno.lint.Node): void {
    if (textsIn(node)[0]?.[0].startsWith("Cannot ")) add("message", [node]);
  }

  walk(source, {
    NewExpression({ callee, arguments: given }) {
      if (callee.type === "Identifier" && callee.name.endsWith("Error")) add(callee.name, given);
    },
    CallExpression({ callee, arguments: given }) {
      const name = source.text.slice(...callee.range);
      if (answers.test(name)) add(`${name}()`, given.slice(0, 1));
      if (/(^|\.)warn/.test(name)) add("message", given);
    },
    Property({ key, value }) {
      if (key.type === "Identifier" && key.name === "message") add("message", [value]);
    },
    Literal: addError,
    TemplateLiteral: addError,
  });
  return [...found.values()];
}

/** Returns the texts that an expression may have, each with its node. `{}` stands for a value. */
function textsIn(node: Deno.lint.Node): (readonly [text: string, node: Deno.lint.Node])[] {
  switch (node.type) {
    case "Literal":
      return typeof node.value === "string" ? [[node.value, node]] : [];
    case "TemplateLiteral":
      return [[node.quasis.map(({ cooked }) => cooked).join("{}"), node]];
    case "ConditionalExpression":
      return [...textsIn(node.consequent), ...textsIn(node.alternate)];
    case "BinaryExpression":
    case "LogicalExpression":
      return [...textsIn(node.left as Deno.lint.Node), ...textsIn(node.right)]; // a private name is no text
    default:
      return [];
  }
}
