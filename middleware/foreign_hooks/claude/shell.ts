/**
 * Reads the commands in a text for a shell, as POSIX shells and Bash do, without running any of it. Quotes are removed, and groups, keywords, assignments,
 * redirections, here-documents and substitutions are understood. Text that only a shell can compute is unknown.
 *
 * @module
 */

/** Stands in a word for text that only a shell can compute: a variable, a substitution, the names that a pattern of files stands for. */
export const unknown = "\0";

/** Stands for a blank in a word, such as that of `"a b"`. */
const innerBlank = "\ue000";

/** The deepest nesting of substitutions. */
const maxDepth = 50;
/** The most words, and the most characters, of a command that runs another one. */
const maxWrapped = 200;
const longestWrapped = 4_000;
/** The most texts that commands pass to other shells. */
const maxScripts = 200;

/** A command, without what surrounds it. */
interface ShellCommand {
  /** Its words without their quotes, with one blank between them. */
  readonly text: string;
  /** The same, as it is written. */
  readonly written: string;
}

/** The commands in a text for a shell. */
export interface ShellScript {
  /** Whether all of it could be read. */
  readonly isComplete: boolean;
  /** Whether it is nothing but commands that run one after another or side by side: no assignment, redirection, group, keyword or substitution. */
  readonly isPlain: boolean;
  readonly hasSubstitutions: boolean;
  readonly hasVariables: boolean;
  /** The commands, also those in substitutions. */
  readonly commands: readonly ShellCommand[];
  /** The texts of further commands that these run: those after `sudo` and `xargs`, in the text for `bash -c`, and programs without their folder. */
  readonly reached: readonly string[];
}

/** Reads a text for a shell. Takes linear time. */
export function readShell(text: string): ShellScript {
  const found = new Findings();
  if (text.includes(unknown)) found.isComplete = false;
  new Reader(text, found, 0).readAll();
  return found;
}

/** Returns a command pattern with one blank between its words and without quotes, as `text` of a command is; `*` stays. */
export function foldCommand(pattern: string): string {
  const word = /'[^']*'|"(?:[^"\\]|\\[^])*"|\\[^]|\s+|[^'"\\\s]+|[^]/g;
  return pattern.trim().replace(word, (piece) => {
    if (piece.trim() === "") return " ";
    const inner = /^'.*'$/s.test(piece) ? piece.slice(1, -1) : unescaped(piece);
    return inner.replaceAll(" ", innerBlank);
  });
}

function unescaped(piece: string): string {
  if (piece.length > 1 && piece.startsWith('"')) return piece.slice(1, -1).replace(/\\([$`"\\])/g, "$1");
  return piece.length === 2 && piece.startsWith("\\") ? piece.slice(1) : piece;
}

/** The result of reading, so far. */
class Findings implements ShellScript {
  isComplete = true;
  isPlain = true;
  hasSubstitutions = false;
  hasVariables = false;
  readonly commands: ShellCommand[] = [];
  readonly reached: string[] = [];
  /** The number of texts for other shells. */
  scripts = 0;
}

/** A command that is being read. */
interface Draft {
  /** The position of its first character. */
  readonly start: number;
  readonly words: string[];
  /** The word that is being read. */
  word?: string | undefined;
  /** The length of what is known of that word, if it stands for several words. */
  end?: number | undefined;
  /** The length of that word before its first part in quotes. */
  quotedFrom?: number | undefined;
  /** Whether an assignment or a redirection precedes its words, so that none of them is a keyword. */
  isStarted?: boolean;
  /** The use of the next word, if it is not one of the command: the target of a redirection, or the input of the command. */
  next?: "target" | "input" | undefined;
  /** Its input, if the text contains it. */
  input?: string | undefined;
  /** Whether it is a shell that runs its input. */
  runsInput?: boolean;
}

/** A here-document whose text follows on the next line. */
interface HereDocument {
  readonly delimiter: string;
  readonly isIndented: boolean;
  readonly isQuoted: boolean;
  readonly draft: Draft;
}

/** Words that precede a command. */
const keywords = setOf("! { } if then elif else fi while until do done");
/** Words that begin or end a command of several parts. */
const compounds = setOf("case esac for select function");
/** Programs that run the text after `-c`, or their input. */
const shells = setOf("sh bash dash zsh ksh mksh ash fish rbash");
/** Programs that run another one, which is among their words. */
const wrappers = setOf(
  "builtin busybox chroot chrt command coproc doas env eval exec find firejail flock ionice ltrace nice nohup nsenter parallel pkexec proot runuser script " +
    "setarch setpriv setsid stdbuf strace su sudo systemd-run taskset time timeout toybox trap unbuffer unshare watch xargs",
);
/** Those among them that take a text for a shell, too. */
const evaluators = setOf("env parallel script su trap watch");
/** The characters of `\n` and others in `$'...'`. */
const controls: Readonly<Record<string, string>> = {
  ...{ a: "\x07", b: "\b", e: "\x1b", E: "\x1b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" },
  ...{ "\\": "\\", "'": "'", '"': '"', "?": "?" },
};

function setOf(words: string): ReadonlySet<string> {
  return new Set(words.split(" "));
}

/** Reads one text: all of it, or what is between backquotes. */
class Reader {
  readonly #text: string;
  readonly #found: Findings;
  readonly #depth: number;
  /** Whether the text is one that a command runs. */
  readonly #isInner: boolean;
  readonly #waiting: HereDocument[] = [];
  #at = 0;

  constructor(text: string, found: Findings, depth: number, isInner = false) {
    this.#text = text;
    this.#found = found;
    this.#depth = depth;
    this.#isInner = isInner;
  }

  /** Reads all of the text. */
  readAll(): void {
    if (this.#depth > maxDepth) return this.#giveUp();
    this.#list(this.#depth, false);
    if (this.#at < this.#text.length) this.#giveUp();
  }

  #giveUp(): void {
    this.#found.isComplete = false;
    this.#at = this.#text.length;
  }

  /** Returns the match of a sticky pattern, and goes behind it. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [match] = pattern.exec(this.#text) ?? [];
    this.#at += match?.length ?? 0;
    return match;
  }

  #draft(): Draft {
    return { start: this.#at, words: [] };
  }

  /** Reads commands up to the end of the text, or up to the `)` that closes the list, and goes behind it. */
  #list(depth: number, isClosed: boolean): void {
    if (depth > maxDepth) return this.#giveUp();
    const openGroups: ("(" | "case")[] = [];
    const inherited = this.#waiting.length;
    let draft = this.#draft();
    while (this.#at < this.#text.length) {
      const separator = this.#take(/\n|;|\|\||\|&?|&&|&(?!>)|\(\(?|\)/y);
      if (separator === undefined) {
        this.#part(draft, openGroups, depth);
        continue;
      }
      this.#endCommand(draft, openGroups, separator.length);
      if (separator === "((") this.#arithmetic(depth);
      else if (separator === "(") this.#group(openGroups);
      else if (separator === "\n") this.#hereDocuments();
      else if (separator === ")" && openGroups.at(-1) === "(") openGroups.pop();
      else if (separator === ")" && openGroups.at(-1) !== "case") {
        const isRight = isClosed && openGroups.length === 0 && this.#waiting.length === inherited;
        return isRight ? undefined : this.#giveUp();
      }
      draft = this.#draft();
    }
    this.#endCommand(draft, openGroups, 0);
    if (isClosed || openGroups.length > 0) this.#giveUp();
  }

  #group(openGroups: ("(" | "case")[]): void {
    this.#found.isPlain = false;
    openGroups.push("(");
  }

  /** Reads a part of a command: blanks, a comment, a redirection, or a part of a word. */
  #part(draft: Draft, openGroups: ("(" | "case")[], depth: number): void {
    const blank = this.#take(/(?:[ \t]|\\\n)+/y); // an escaped line break is nothing
    if (blank !== undefined) return /[ \t]/.test(blank) ? this.#endWord(draft, openGroups) : undefined;
    if (draft.word === undefined && this.#take(/#[^\n]*/y) !== undefined) return;
    const redirection = this.#take(/&>>?|<<<|<<-?|<[>&(]?|>[>&|(]?/y);
    if (redirection !== undefined) return this.#redirect(draft, openGroups, redirection, depth);
    const quoted = /^\$?['"]|^\\/.test(this.#text.slice(this.#at, this.#at + 2));
    const isLoose = /[[{]/.test(this.#text.charAt(this.#at));
    if (quoted) draft.quotedFrom ??= draft.word?.length ?? 0;
    if (draft.word === undefined && this.#take(/~/y)) return void (draft.word = unknown); // a folder
    const isName = draft.words.length === 0 && quoted === false && /^[A-Za-z_]\w*$/.test(draft.word ?? "");
    if (isName && this.#text[this.#at] === "[") return this.#giveUp(); // the index of an array, which may contain anything
    draft.word = (draft.word ?? "") + this.#piece(depth);
    if (isLoose && draft.word.endsWith(unknown)) draft.end ??= draft.word.length; // it may be several words
  }

  /** Reads a part of a word: characters that mean themselves, or what is quoted or computed. */
  #piece(depth: number): string {
    const plain = this.#take(/[^\s;&|()<>'"\\$`*?[{]+/y);
    if (plain !== undefined) return plain;
    const char = this.#text.charAt(this.#at++);
    if (char === "'") return blanksIn(this.#until("'"));
    if (char === '"') return blanksIn(this.#doubleQuoted(depth));
    if (char === "\\") return blanksIn(this.#text.charAt(this.#at++) || "\\");
    if (char === "$") return this.#dollar(depth, false);
    if (char === "`") return this.#backquoted(false);
    if (char === "*" || char === "?") return unknown;
    if (char === "[") {
      return /\[[^\s;&|()<>\]]{1,64}\]/y.test(this.#text.slice(this.#at - 1, this.#at + 66)) ? unknown : char;
    }
    if (char === "{") return /^(?:[\s;}]|$)/.test(this.#text.slice(this.#at, this.#at + 1)) ? char : unknown;
    return char;
  }

  /** Returns the text up to `end`, and goes behind it. */
  #until(end: string): string {
    const at = this.#text.indexOf(end, this.#at);
    const text = this.#text.slice(this.#at, at < 0 ? undefined : at);
    if (at < 0) this.#giveUp();
    else this.#at = at + end.length;
    return text;
  }

  #doubleQuoted(depth: number): string {
    let text = "";
    for (let end = this.#text[this.#at]; end !== '"'; end = this.#text[this.#at]) {
      if (end === undefined) {
        this.#giveUp();
        return text;
      }
      text += this.#quotedPiece(depth);
    }
    this.#at++;
    return text;
  }

  /** Reads a part of what is in double quotes, or in a here-document. */
  #quotedPiece(depth: number): string {
    const plain = this.#take(/[^"\\$`]+/y);
    if (plain !== undefined) return plain;
    const char = this.#text.charAt(this.#at++);
    if (char === "$") return this.#dollar(depth, true);
    if (char === "`") return this.#backquoted(true);
    if (char !== "\\") return char;
    const escaped = this.#take(/[$`"\\\n]/y);
    return escaped === "\n" ? "" : escaped ?? char;
  }

  /** Reads what follows a `$`. A line break within a name or an operator is not read. */
  #dollar(depth: number, isQuoted: boolean): string {
    if (depth >= maxDepth || this.#text.startsWith("\\\n", this.#at)) this.#giveUp();
    if (!isQuoted && this.#take(/'/y)) return blanksIn(this.#escapes());
    if (!isQuoted && this.#take(/"/y)) return blanksIn(this.#doubleQuoted(depth));
    if (this.#take(/\(\(/y)) {
      this.#found.hasSubstitutions = true;
      this.#arithmetic(depth);
      return unknown;
    }
    if (this.#take(/\(/y)) return this.#substitution(depth);
    this.#found.hasVariables ||= /[\w{@*#?$!-]/.test(this.#text.charAt(this.#at));
    if (this.#take(/\{/y)) return this.#parameter(depth, isQuoted);
    if (this.#take(/\[/y)) this.#giveUp(); // the old form of arithmetic
    if (this.#take(/\w+|[@*#?$!-]/y) === undefined) return "$";
    if (this.#text.startsWith("\\\n", this.#at)) this.#giveUp();
    return unknown;
  }

  #substitution(depth: number): string {
    this.#found.hasSubstitutions = true;
    this.#found.isPlain = false;
    this.#list(depth + 1, true);
    return unknown;
  }

  /** Reads `$'...'`. */
  #escapes(): string {
    const text = this.#take(/(?:[^'\\]|\\[^])*/y) ?? "";
    if (!this.#take(/'/y)) this.#giveUp();
    return text.replace(
      /\\(x[\da-f]{1,2}|u[\da-f]{1,4}|U[\da-f]{1,8}|[0-7]{1,3}|c[^]|[^])/gi,
      (whole, code: string) => {
        const isByte = /^[x0-7]/.test(code);
        const value = /^[xuU]./.test(code)
          ? parseInt(code.slice(1), 16)
          : /^[0-7]/.test(code)
          ? parseInt(code, 8)
          : undefined;
        if (value === undefined) return code.startsWith("c") ? unknown : controls[code] ?? whole;
        return value > 0 && value <= (isByte ? 0x7f : 0x10ffff) ? String.fromCodePoint(value) : unknown;
      },
    );
  }

  /** Reads `${...}`. What a backslash in it escapes, and what its quotes mean within double quotes, depends on its operator: such a text is not read. */
  #parameter(depth: number, isQuoted: boolean): string {
    if (depth >= maxDepth) this.#giveUp();
    for (let char = this.#text[this.#at]; char !== "}"; char = this.#text[this.#at]) {
      if (char === undefined || char === "\\" || (char === "'" && isQuoted)) {
        this.#giveUp();
        return unknown;
      }
      if (char === "'" || char === '"') this.#piece(depth + 1);
      else this.#quotedPiece(depth + 1);
    }
    this.#at++;
    return unknown;
  }

  /** Reads what is between backquotes, in which a backslash escapes some characters. */
  #backquoted(isQuoted: boolean): string {
    this.#found.hasSubstitutions = true;
    this.#found.isPlain = false;
    const text = this.#take(/(?:[^`\\]|\\[^])*/y) ?? "";
    if (!this.#take(/`/y) || (isQuoted && text.includes('"'))) this.#giveUp();
    const script = text.replace(isQuoted ? /\\([$`"\\])/g : /\\([$`\\])/g, "$1");
    new Reader(script, this.#found, this.#depth + 1, this.#isInner).readAll();
    return unknown;
  }

  /** Reads arithmetic up to its `))`, and the substitutions in it. */
  #arithmetic(depth: number): void {
    this.#found.isPlain = false;
    let nesting = 0;
    while (this.#at < this.#text.length) {
      if (nesting === 0 && this.#take(/\)\)/y)) return;
      const bracket = this.#take(/[()]/y);
      if (bracket === ")" && nesting === 0) break;
      if (bracket !== undefined) nesting += bracket === "(" ? 1 : -1;
      else if (this.#take(/['"\\]/y)) break; // it is none, or has quotes, which only a shell reads
      else if (this.#take(/[^()'"\\$`]+/y) === undefined) this.#quotedPiece(depth + 1);
    }
    this.#giveUp();
  }

  #redirect(draft: Draft, openGroups: ("(" | "case")[], operator: string, depth: number): void {
    this.#found.isPlain = false;
    const isNumber = draft.quotedFrom === undefined && /^\d+$/.test(draft.word ?? "");
    if (isNumber && !operator.startsWith("&")) draft.word = undefined; // of the file
    if (operator.endsWith("(")) {
      draft.word = (draft.word ?? "") + this.#substitution(depth);
      return;
    }
    this.#endWord(draft, openGroups);
    if (draft.next !== undefined) this.#giveUp();
    draft.isStarted = true;
    if (/^<<-?$/.test(operator)) this.#delimiter(draft, operator === "<<-");
    else draft.next = operator === "<<<" ? "input" : "target";
  }

  /** Reads the delimiter of a here-document. */
  #delimiter(draft: Draft, isIndented: boolean): void {
    this.#take(/[ \t]+/y);
    const written = this.#take(/(?:[^ \t\n;&|()<>'"\\`$]|'[^'\n]*'|"[^"\\$`\n]*"|\\[^\n])+/y);
    if (written === undefined || /[^ \t\n;&|()<>]/.test(this.#text.charAt(this.#at))) return this.#giveUp();
    const delimiter = written.replace(/\\([^])|['"]/g, "$1");
    this.#waiting.push({ delimiter, isIndented, isQuoted: /['"\\]/.test(written), draft });
  }

  /** Reads the here-documents that begin on this line. */
  #hereDocuments(): void {
    for (const each of this.#waiting.splice(0)) {
      const body = this.#hereDocument(each);
      const isComputed = !each.isQuoted && /[$`\\]/.test(body);
      if (isComputed) new Reader(body, this.#found, this.#depth + 1, this.#isInner).readQuoted();
      if (each.draft.runsInput) this.#nested(isComputed ? unknown : body);
    }
  }

  #hereDocument({ delimiter, isIndented, isQuoted }: HereDocument): string {
    let body = "";
    while (this.#at < this.#text.length) {
      let line = this.#take(/[^\n]*/y) ?? "";
      this.#at++;
      while (!isQuoted && isContinued(line) && this.#at < this.#text.length) {
        line = line.slice(0, -1) + (this.#take(/[^\n]*/y) ?? "");
        this.#at++;
      }
      if (isIndented) line = line.replace(/^\t+/, "");
      if (line === delimiter) return body;
      body += `${line}\n`;
    }
    return body; // a shell ends it there, too
  }

  /** Reads the substitutions in a here-document. */
  readQuoted(): void {
    while (this.#at < this.#text.length) this.#quotedPiece(this.#depth);
  }

  #endWord(draft: Draft, openGroups: ("(" | "case")[]): void {
    const { quotedFrom, next, end } = draft;
    const word = draft.word?.slice(0, end);
    if (word === undefined) return;
    Object.assign(draft, { word: undefined, quotedFrom: undefined, next: undefined, end: undefined });
    if (next === "target") return;
    if (next === "input") return void (draft.input = word.replaceAll(innerBlank, " "));
    if (draft.words.length === 0 && this.#isPrefix(draft, word, openGroups, quotedFrom)) return;
    draft.words.push(word);
    if (draft.words.length === 2 && draft.words[0] === "function") draft.words.splice(0); // its body follows
  }

  /** Whether a first word is an assignment, or a keyword before a command. */
  #isPrefix(draft: Draft, word: string, openGroups: ("(" | "case")[], quotedFrom = Infinity): boolean {
    const [name] = /^[A-Za-z_][\w\0]*\+?=/.exec(word) ?? [];
    if (name !== undefined && name.length <= quotedFrom) {
      if (name.includes(unknown)) this.#found.isComplete = false; // an element of an array, or a command with a computed name
      this.#found.isPlain = false;
      return draft.isStarted = true;
    }
    if (quotedFrom < Infinity || draft.isStarted || !(keywords.has(word) || compounds.has(word))) return false;
    this.#found.isPlain = false;
    if (word === "case") openGroups.push("case");
    if (word === "esac" && openGroups.at(-1) === "case") openGroups.pop();
    return keywords.has(word);
  }

  /** Ends a command before a separator of `length` characters. */
  #endCommand(draft: Draft, openGroups: ("(" | "case")[], length: number): void {
    this.#endWord(draft, openGroups);
    if (draft.next !== undefined) this.#giveUp();
    const { words, start } = draft;
    if (words.length === 0) return;
    const text = words.join(" ");
    if (this.#isInner) this.#found.reached.push(text);
    else this.#found.commands.push({ text, written: this.#text.slice(start, this.#at - length).trim() });
    this.#reach(draft, text);
  }

  /** Finds what a command runs besides itself. */
  #reach(draft: Draft, text: string): void {
    const { words: [first = "", ...rest] } = draft;
    const { reached } = this.#found;
    if (first.includes("/")) reached.push(text.slice(first.lastIndexOf("/") + 1));
    this.#interpret(draft, 0);
    if (!wrappers.has(nameOf(first)) || (first === "command" && /^-[vV]/.test(rest[0] ?? ""))) return;
    if (rest.length > maxWrapped || text.length > longestWrapped) this.#found.isComplete = false;
    let start = first.length + 1;
    let isAfterCommand = false;
    const isEvaluator = evaluators.has(nameOf(first));
    if (first === "eval") this.#nested(rest.join(" "));
    for (const [index, word] of rest.slice(0, maxWrapped).entries()) {
      const before = rest[index - 1] ?? "";
      const mayBegin = nameOf(first) === "find"
        ? /^-(?:exec|ok)(?:dir)?$/.test(before)
        : !isAfterCommand || !word.startsWith(unknown);
      if (mayBegin) {
        reached.push(text.slice(start));
        if (word.includes("/")) reached.push(text.slice(start + word.lastIndexOf("/") + 1));
        this.#interpret(draft, index + 1);
      }
      if (isEvaluator && /[^\w./:=@%+,~-]/.test(word)) this.#nested(word);
      isAfterCommand ||= !/^(?:-|\d)|=/.test(word) && !before.startsWith("-");
      start += word.length + 1;
    }
  }

  /** Reads what a shell runs: the text after `-c`, or its input. What is in a file is not known. */
  #interpret(draft: Draft, index: number): void {
    const name = nameOf(draft.words[index] ?? "");
    if (!shells.has(name) && name !== "source" && name !== ".") return;
    const rest = draft.words.slice(index + 1, index + 1 + maxWrapped);
    const option = shells.has(name) ? rest.findIndex((word) => /^-[a-z]*c/i.test(word)) : -1;
    const file = rest.includes("-s") ? undefined : rest.find((word) => !/^[-+]./.test(word));
    if (option >= 0) rest.slice(option + 1).forEach((script) => this.#nested(script)); // options may precede it
    else if (file !== undefined) {
      if (file.includes(unknown) || file.startsWith("/dev/") || file === "-") this.#found.reached.push(unknown);
    } else if (draft.input !== undefined) this.#nested(draft.input);
    else if (this.#waiting.some((each) => each.draft === draft)) draft.runsInput = true;
    else this.#found.reached.push(unknown);
  }

  /** Reads a text that a command runs as a script. */
  #nested(script: string): void {
    if (++this.#found.scripts > maxScripts) return void (this.#found.isComplete = false);
    const { isPlain, hasSubstitutions, hasVariables } = this.#found;
    if (script.includes(unknown)) this.#found.reached.push(unknown);
    new Reader(script.replaceAll(innerBlank, " "), this.#found, this.#depth + 1, true).readAll();
    Object.assign(this.#found, { isPlain, hasSubstitutions, hasVariables }); // they are about the outer text
  }
}

/** Whether a line ends with a backslash that is not escaped. */
function isContinued(line: string): boolean {
  let count = 0;
  while (line[line.length - 1 - count] === "\\") count++;
  return count % 2 === 1;
}

function nameOf(word: string): string {
  return word.slice(word.lastIndexOf("/") + 1);
}

/** Returns the text of a quoted part, whose blanks do not separate words. */
function blanksIn(text: string): string {
  return text.replaceAll(" ", innerBlank);
}
