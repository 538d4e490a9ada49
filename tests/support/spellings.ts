/**
 * Random spellings of the same call: a command, a path or an address that is written in another way.
 *
 * @module
 */
import type { Chance } from "./seeded.ts";

/** Texts that contain a command, which a shell runs. */
const frames: readonly [string, ...string[]] = [
  ...[
    "%",
    "%",
    "%",
    "ls; %",
    "ls && %",
    "false || %",
    "ls | %",
    "(%)",
    "{ %; }",
    "! %",
    "% &",
    "A=1 B='c d' %",
    "2>&1 %",
  ] as const,
  ...[
    "% > out",
    ">out %",
    "if ls; then %; fi",
    "for i in a b; do %; done",
    "while %; do ls; done",
    "case a in b) ls;; a) %;; esac",
  ],
  ...[
    "f() { %; }; f",
    "function f { %; }; f",
    "echo $(%)",
    'echo "it is $(%)"',
    "echo `%`",
    "cat <(%)",
    "cat <<E\n$(%)\nE",
  ],
  ...[
    "cat <<'E'\nnothing $(\nE\n%",
    "# a comment '\n%",
    "echo ${x:-$(%)}",
    "echo $((1 + $(%)))",
    "ls \\\n; %",
    "sudo -u root %",
  ],
  ...[
    "env A=1 %",
    "nohup %",
    "timeout 5 %",
    "time -p %",
    "xargs -0 %",
    "/usr/bin/env %",
    "find . -exec % \\;",
    "exec %",
    "command %",
  ],
];

/** Returns a text in which a shell runs the command with these words. */
export function spellCommand(chance: Chance, words: readonly string[]): string {
  const { below, one } = chance;
  const blank = () => one([" ", " ", "  ", "\t", " \t ", " \\\n "]);
  const command = words.map((word) => spellWord(chance, word)).join(blank());
  if (below(12) === 0) return `${one(["bash -c", "sh -ec", "eval"])} '${words.join("  ")}'`;
  if (below(12) === 0) return `bash <<'E'\n${words.join(" ")}\nE`;
  return one(frames).replaceAll("%", () => below(12) === 0 ? `/bin/${words.join(blank())}` : command);
}

/** Returns a word with random quotes, which a shell removes. */
function spellWord({ below, one }: Chance, word: string): string {
  if (below(3) === 0) return word;
  return Array.from(word, (char) => {
    const code = char.charCodeAt(0).toString(16);
    const escaped = /\w/.test(char) && below(3) === 0 ? `\\\n${char}` : char;
    return one([
      char,
      char,
      char,
      `'${char}'`,
      `"${char}"`,
      `\\${char}`,
      `''${char}`,
      `$'\\x${code}'`,
      `$"${char}"`,
      escaped,
    ]);
  }).join("");
}

/** Returns a path that leads to `path`, which is relative to `cwd`. */
export function spellPath({ below, one }: Chance, path: string, cwd: string): string {
  let spelled = path;
  for (let count = below(4); count > 0; count--) {
    const at = below(spelled.length + 1);
    const separators = [0, ...Array.from(spelled.matchAll(/\//g), ({ index }) => index + 1)];
    const place = separators.findLast((each) => each <= at) ?? 0;
    const detour = one(["./", ".//", "a/../", "a/b/../../", "x/./../", place > 0 ? "/" : "./", "ok/../"]);
    spelled = spelled.slice(0, place) + detour + spelled.slice(place);
  }
  return below(3) === 0 ? `${cwd}/${spelled}` : spelled;
}

/** Returns an address on `host`. */
export function spellAddress({ below, one }: Chance, host: string): string {
  const cased = Array.from(host, (char) => below(3) === 0 ? char.toUpperCase() : char).join("");
  const written = one([
    cased,
    cased,
    cased.replace(/[a-z]/i, (char) => `%${char.charCodeAt(0).toString(16)}`),
    wide(cased),
  ]);
  const scheme = one(["https://", "http://", "HTTPS://", "https:", "", "https:///", "//", " https://"]);
  const user = one(["", "", "ok.com@", "user:ok.com@", "ok.com:80@"]);
  const end = one(["", "/", "/a?b=c#d", ":443/", "?x", "#ok.com", "/@ok.com"]);
  return `${scheme}${user}${written}${one(["", "", "."])}${end}`;
}

/** Returns a text with fullwidth letters. */
function wide(text: string): string {
  return text.replace(/[a-z]/gi, (char) => String.fromCharCode(char.charCodeAt(0) + 0xfee0));
}
