/**
 * Rules about commands, compared with the commands that Bash runs. A rule about each of them matches the text, and a rule that allows one program allows no
 * text in which Bash runs another. `deno task platforms -- 7` tries the scripts of the seed 7.
 */
import { assert } from "@std/assert";
import { matchesCall } from "../../middleware/foreign_hooks/claude/permissions.ts";
import { type Chance, seeded, seeds } from "../support/seeded.ts";
import { folder } from "./folder.ts";

/** Parts of scripts. No program of these names exists. */
const parts: readonly [string, ...string[]] = [
  ...[
    "ls",
    "rm",
    "-r",
    "a",
    "E",
    "A=1",
    "A=",
    "x",
    "1",
    "2",
    "-",
    "=",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    "[a]",
    ",",
  ] as const,
  ...[" ", " ", " ", " ", "\t", "\n", "\n", ";", ";", "&", "&&", "|", "||", "|&", "\\\n", "\r"],
  ...["'", "'", '"', '"', "\\", "\\\\", "$", "`", "`", "$'", '$"', "\\x72", "\\'", '\\"', "\\`", "\\$"],
  ...[
    "$(",
    "$(",
    ")",
    ")",
    "(",
    "{",
    "}",
    "{ ",
    "; }",
    "${x:-",
    "${x#",
    "${x",
    "$((",
    "))",
    "((",
    "$x",
    "$1",
    "$[",
    "[[",
  ],
  ...["<", ">", ">>", "2>&1", "&>", "<<E", "<<'E'", "<<-E", "\nE\n", "\n\tE\n", "<<<", "<(", ">(", ">|", "<>"],
  ...[
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "case",
    "in",
    "a)",
    "(a)",
    ";;",
    ";&",
    "esac",
    "for",
    "do",
    "done",
    "function",
  ],
  ...[
    "f()",
    "eval",
    "command",
    "builtin",
    "exec",
    "time",
    "coproc",
    "true",
    "false",
    "echo",
    "{rm,a}",
    "{a..c}",
    "trap",
  ],
];

/** Texts that contain a command. */
const frames: readonly [string, ...string[]] = [
  ...[
    "%",
    "ls; %",
    "ls && %",
    "ls | %",
    "(%)",
    "{ %; }",
    "! %",
    "A=1 %",
    "2>&1 %",
    "% >out",
    "% &",
    "if ls; then %; fi",
  ] as const,
  ...[
    "echo $(%)",
    'echo "$(%)"',
    "echo `%`",
    'echo "`%`"',
    "ls <(%)",
    "case a in a) %;; esac",
    "case a in (b) ls;; *) %;; esac",
  ],
  ...[
    "for i in a; do %; done",
    "f() { %; }; f",
    "function f { %; }; f",
    "ls <<E\n$(%)\nE\n",
    "ls <<'E'\n$(rm)\nE\n%",
    "# rm\n%",
  ],
  ...[
    "echo $(case a in a) %;; esac)",
    "echo ${x:-$(%)}",
    'echo "${x:-$(%)}"',
    "echo $((1 + $(%)))",
    "ls \\\n; %",
    "eval '%'",
  ],
  ...[
    "command %",
    "ls <<E\nE\\\nE\n%\nE\n%",
    "true || ls; %",
    "[[ a == a ]] && %",
    "((1)) && %",
    'echo "a" \'%\' "$(%)"',
  ],
];

function script(chance: Chance): string {
  const { below, one } = chance;
  const random = () => Array.from({ length: 1 + below(12) }, () => one(parts)).join("");
  if (below(3) === 0) return random();
  const command = one([
    "rm a",
    "rm\ta",
    "r''m a",
    '"rm" a',
    "\\rm a",
    "$'\\x72m' a",
    "rm  'a b'",
    "ls a",
    random(),
    random(),
  ]);
  return one(frames).replaceAll("%", () => command);
}

/** Runs scripts in a Bash that finds no program. Returns the words of each command that it looked for, by script. */
async function commandsOf(scripts: readonly string[], path: string): Promise<readonly (readonly string[][])[]> {
  await Deno.writeTextFile(
    `${path}/env`,
    `PATH=/none\ncommand_not_found_handle() { local ran; printf -v ran '%s\\037' "$@"; printf '%s\\036' "$ran" >> "$LOG"; }\n`,
  );
  const all: string[][][] = [];
  for (const [index, text] of scripts.entries()) {
    const log = `${path}/log${index}`; // a command in the background may write later
    await Deno.writeTextFile(log, "");
    const { status } = new Deno.Command("bash", {
      args: ["--norc", "--noprofile", "-c", text],
      cwd: `${path}/work`,
      env: { BASH_ENV: `${path}/env`, LOG: log, PATH: "/usr/bin:/bin" },
      clearEnv: true,
      ...{ stdin: "null", stdout: "null", stderr: "null" } as const,
    }).spawn();
    await status;
    const written = await Deno.readTextFile(log);
    all.push(written.split("\x1e").filter((line) => line !== "").map((line) => line.split("\x1f").slice(0, -1)));
  }
  return all;
}

/** Writes words as a rule about exactly this command. */
function ruleOf(words: readonly string[]): string {
  return words.map((word) => /^[\w=.-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
}

for (const seed of seeds(4)) {
  Deno.test(`a rule about commands finds every command that Bash runs, and allows no other (seed ${seed})`, async () => {
    await using disk = await folder();
    const path = await Deno.realPath(disk.path);
    await Deno.mkdir(`${path}/work`);
    const chance = seeded(seed);
    const scripts = Array.from({ length: 300 }, () => script(chance));
    for (const [index, ran] of (await commandsOf(scripts, path)).entries()) {
      const text = scripts[index] ?? "";
      const call = { name: "Bash", input: { command: text }, folders: ["/"] };
      const about = (ruleContent: string) => ({ toolName: "Bash", ruleContent });
      const context = () => `${JSON.stringify(text)} runs ${JSON.stringify(ran)}`;
      for (const words of ran) {
        if (words.some((word) => word.includes("*"))) continue; // which a rule cannot name
        assert(matchesCall(about(ruleOf(words)), call, "guard"), `${context()}: not denied as ${ruleOf(words)}`);
        const name = words[0] ?? "";
        if (/^\w+$/.test(name)) {
          assert(matchesCall(about(`${name}:*`), call, "filter"), `${context()}: does not match ${name}:*`);
        }
      }
      for (const name of ["ls", "rm", "a", "echo"]) {
        const isOnly = ran.every(([first]) => first === name);
        assert(isOnly || !matchesCall(about(`${name} *`), call, "allow"), `${context()}: allowed as ${name} *`);
      }
    }
  });
}
