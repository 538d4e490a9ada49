/**
 * A calculator for numbers, `+ - * / % ^` and parentheses. It parses the expression and never evaluates code.
 *
 * ```text
 * sum     = product { ("+" | "-") product }
 * product = sign { ("*" | "/" | "%") sign }
 * sign    = ["-"] power
 * power   = atom ["^" sign]          from the right: 2^3^2 is 2^(3^2), and -2^2 is -(2^2)
 * atom    = number | "(" sum ")"
 * ```
 *
 * @module
 */

/** Calculates `expression`. Throws a `SyntaxError` with the position, counted from 1, or a `RangeError` if there is no finite value. */
export function evaluate(expression: string): number {
  const reader = read(expression);
  const value = sum(reader);
  if (reader.token.text !== "") throw unexpected(reader, "an operator");
  if (!Number.isFinite(value)) throw new RangeError(`Cannot calculate ${expression}: the result is too large`);
  return Number(value.toPrecision(15)); // rounds, so that 0.1 + 0.2 is 0.3
}

interface Token {
  readonly text: string;
  /** The position in the expression, from 1. */
  readonly at: number;
}

/** A reader of an expression. `token` is the next token; at the end its text is empty. */
interface Reader {
  readonly expression: string;
  readonly token: Token;
  /** Moves past the token, and returns its text. */
  take(): string;
}

function read(expression: string): Reader {
  const tokens = tokensOf(expression);
  const end: Token = { text: "", at: expression.length + 1 };
  let next = 0;
  return {
    expression,
    get token() {
      return tokens[next] ?? end;
    },
    take: () => tokens[next++]?.text ?? "",
  };
}

function tokensOf(expression: string): Token[] {
  return [...expression.matchAll(/\d+(?:\.\d+)?|\S/g)].map(({ 0: text, index }) => ({ text, at: index + 1 }));
}

function sum(reader: Reader): number {
  let value = product(reader);
  while (oneOf("+-", reader)) value = apply(reader.take(), value, product(reader), reader);
  return value;
}

function product(reader: Reader): number {
  let value = sign(reader);
  while (oneOf("*/%", reader)) value = apply(reader.take(), value, sign(reader), reader);
  return value;
}

function sign(reader: Reader): number {
  if (!oneOf("-", reader)) return power(reader);
  reader.take();
  return -sign(reader);
}

function power(reader: Reader): number {
  const base = atom(reader);
  return oneOf("^", reader) ? apply(reader.take(), base, sign(reader), reader) : base;
}

function atom(reader: Reader): number {
  const { token } = reader;
  if (/^\d/.test(token.text)) return Number(reader.take());
  if (token.text !== "(") throw unexpected(reader, 'a number or "("');
  reader.take();
  const value = sum(reader);
  if (reader.token.text !== ")") throw unexpected(reader, `")" for the "(" at ${token.at}`);
  reader.take();
  return value;
}

function apply(operator: string, a: number, b: number, { expression }: Reader): number {
  if ("/%".includes(operator) && b === 0) throw new RangeError(`Cannot calculate ${expression}: division by zero`);
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "%":
      return a % b;
    default:
      return a ** b;
  }
}

function oneOf(operators: string, { token }: Reader): boolean {
  return token.text !== "" && operators.includes(token.text);
}

function unexpected({ expression, token: { text, at } }: Reader, wanted: string): SyntaxError {
  const found = text === "" ? "the end" : `"${text}" at ${at}`;
  return new SyntaxError(`Cannot read ${expression}: expected ${wanted}, found ${found}`);
}
