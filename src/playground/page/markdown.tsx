/**
 * Markdown as elements. The parser's tokens become elements one by one, so that no HTML is ever parsed: HTML in the text is shown as text.
 *
 * @module
 */
import type { Child } from "hono/jsx";
import { memo, useState } from "hono/jsx/dom";
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";

// Links and images of an answer. An address that could run code is shown as text.

/** A link to a page or a mail address. Any other address is shown beside its text. */
function Link({ href, children }: { readonly href: string; readonly children: Child }) {
  const url = addressOf(href, ["http:", "https:", "mailto:"], location.href); // a path is one of this server
  if (!url) {
    return (
      <>
        {children} ({href})
      </>
    );
  }
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** An image that is loaded on click, so that an answer cannot send anything to a server by being shown. */
function RemoteImage({ href, text }: { readonly href: string; readonly text: string }) {
  const [isShown, show] = useState(false);
  const url = addressOf(href, ["https:", "data:"]);
  if (!url) return <>{text} ({href})</>;
  if (isShown) return <img src={url} alt={text} referrerpolicy="no-referrer" />;
  const { protocol, host } = new URL(url);
  return (
    <button type="button" class="image" onClick={() => show(true)}>
      Show image{text && ` “${text}”`} from {protocol === "data:" ? "this answer" : host}
    </button>
  );
}

/** Returns an absolute address with one of these protocols, or undefined. */
function addressOf(href: string, protocols: readonly string[], base?: string): string | undefined {
  if (!URL.canParse(href, base)) return undefined;
  const url = new URL(href, base);
  return protocols.includes(url.protocol) ? url.href : undefined;
}

// The blocks and the lines of a text.

/** The longest text that is parsed. A longer one is shown as it is. */
const maxLength = 100_000;

/** A text in Markdown. */
export const Markdown = memo(({ text }: { readonly text: string }) => {
  if (text.length > maxLength) return <div class="text plain">{text}</div>;
  return (
    <div class="text markdown">
      <Paragraphs text={text} />
    </div>
  );
});

/** The blocks of a text. While a text grows, only its last block changes, so the others are not drawn again. */
function Paragraphs({ text }: { readonly text: string }) {
  const tokens = Lexer.lex(text);
  const references = Object.keys(tokens.links).length;
  return (
    <>
      {tokens.map((token, index) => <Paragraph key={index} token={token as MarkedToken} references={references} />)}
    </>
  );
}

/** The properties of a block: its token, and the number of link references of the text, which its links may use. */
interface ParagraphProps {
  readonly token: MarkedToken;
  readonly references: number;
}

const Paragraph = memo(
  ({ token }: ParagraphProps) => <Block token={token} />,
  (a, b) => a.token.type === b.token.type && a.token.raw === b.token.raw && a.references === b.references,
);

function Blocks({ tokens = [] }: { readonly tokens: readonly Token[] | undefined }) {
  // without extensions, the parser makes no other tokens
  return <>{tokens.map((token, index) => <Block key={index} token={token as MarkedToken} />)}</>;
}

function Block({ token }: { readonly token: MarkedToken }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <Heading {...token} />;
    case "code":
      return <pre class="code" tabindex={0}><code>{token.text}</code></pre>;
    case "blockquote":
      return (
        <blockquote>
          <Blocks tokens={token.tokens} />
        </blockquote>
      );
    case "list":
      return <List {...token} />;
    case "table":
      return <Table {...token} />;
    case "hr":
      return <hr />;
    case "paragraph":
      return (
        <p>
          <Blocks tokens={token.tokens} />
        </p>
      );
    default:
      return <Inline token={token} />;
  }
}

function Inline({ token }: { readonly token: MarkedToken }) {
  switch (token.type) {
    case "text":
      return "tokens" in token && token.tokens ? <Blocks tokens={token.tokens} /> : <>{unescaped(token.text)}</>;
    case "escape":
      return <>{token.text}</>;
    case "strong":
      return (
        <strong>
          <Blocks tokens={token.tokens} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Blocks tokens={token.tokens} />
        </em>
      );
    case "del":
      return (
        <del>
          <Blocks tokens={token.tokens} />
        </del>
      );
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return (
        <Link href={token.href}>
          <Blocks tokens={token.tokens} />
        </Link>
      );
    case "image":
      return <RemoteImage href={token.href} text={token.text} />;
    case "checkbox":
      return <input type="checkbox" disabled checked={token.checked} />;
    default: // HTML, which stays text
      return <>{token.raw}</>;
  }
}

function Heading({ depth, tokens }: Tokens.Heading) {
  const content = <Blocks tokens={tokens} />;
  if (depth === 1) return <h3>{content}</h3>; // the page itself has the first two levels
  return depth === 2 ? <h4>{content}</h4> : <h5>{content}</h5>;
}

function List({ ordered, start, items }: Tokens.List) {
  const rows = items.map(({ tokens }) => (
    <li>
      <Blocks tokens={tokens} />
    </li>
  ));
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>;
}

function Table({ header, rows }: Tokens.Table) {
  return (
    <div class="table" tabindex={0}>
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }) => (
              <th scope="col">
                <Blocks tokens={tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map(({ tokens }) => (
                <td>
                  <Blocks tokens={tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Replaces the most common character references of HTML. */
function unescaped(text: string): string {
  const characters: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };
  return text.replace(/&(?:#(\d{1,6})|(amp|lt|gt|quot|nbsp));/g, (reference, code, name) => {
    if (name) return characters[name] ?? reference;
    return Number(code) <= 0xffff ? String.fromCharCode(Number(code)) : reference;
  });
}
