/**
 * Permission rules in the syntax of Claude: they match what a call does, however it is spelled. What cannot be read matches a rule that denies or asks, and
 * no rule that allows.
 */
import { agent, tool } from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { ruled } from "../../support/ruled.ts";
import { seeded, seeds } from "../../support/seeded.ts";
import { spellAddress, spellCommand, spellPath } from "../../support/spellings.ts";

/** Asserts the outcome of each input under a rule. */
async function assertRuled(
  behavior: "allow" | "ask" | "deny",
  rule: string,
  expected: Readonly<Record<string, readonly string[]>>,
  options = {},
) {
  for (const [outcome, inputs] of Object.entries(expected)) {
    const found = await ruled(behavior, rule, inputs, options);
    const wrong = inputs.filter((_, index) => found[index] !== outcome);
    assertEquals(wrong, [], `${behavior} ${rule} is not ${outcome}`);
  }
}

Deno.test("Claude: a rule about a command matches it with other blanks, quotes and escapes", async () => {
  await assertRuled("deny", "Bash(rm:*)", {
    denied: [
      ...[
        "rm",
        "rm -rf x",
        "rm\t-rf x",
        '"rm" -rf x',
        "\\rm -rf x",
        "rm  -rf  x",
        "'rm' x",
        "r''m x",
        "$'\\x72m' x",
        "r\\\nm x",
      ],
      ...[
        "A=1 rm x",
        "ls; rm x",
        "ls && (rm x)",
        "if ls; then rm x; fi",
        "{ rm x; }",
        "! rm x",
        ">out rm x",
        "f() { rm x; }",
      ],
      ...["echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', "cat <(rm x)", "cat <<E\n$(rm x)\nE", "echo ${x:-$(rm x)}"],
      ...[
        "echo $(case a in a) rm x;; esac)",
        "case a in (a) rm x;; esac",
        "for i in a; do rm $i; done",
        "cat <<EO\nE\\\nO\nrm x",
      ],
      ...[
        "/bin/rm x",
        "sudo rm x",
        "env A=1 rm x",
        "xargs rm",
        "timeout 5 rm x",
        "find . -exec rm {} ;",
        "nohup /bin/rm x",
      ],
      ...[
        "bash -c 'rm x'",
        "eval 'rm  x'",
        "eval rm x",
        "bash <<E\nrm x\nE",
        "bash -c -- 'rm x'",
        "bash -c -x 'rm x'",
        "xargs sh -c 'rm x' sh",
        "sh <<< 'rm x'",
        "trap 'rm x' EXIT",
        "coproc rm x",
      ],
    ],
    ok: [
      ...[
        "ls",
        "echo rm",
        "echo 'rm x'",
        "rmdir x",
        "ls # rm x",
        "cat <<'E'\nrm x\nE",
        "git rm",
        "echo $HOME",
        "echo $(date)",
      ],
      ...["ls *.txt", "echo '$(rm x)'", "grep -r 'a; rm x' .", "[ -f x ] && ls", "command -v rm", "find . -name rm"],
    ],
  });
  await assertRuled("deny", 'Bash(git commit -m "a b")', {
    denied: ["git  commit -m 'a b'"],
    ok: ["git commit -m a b"],
  });
  await assertRuled("deny", "Bash(cat secret.txt)", {
    denied: ["cat ./secret.txt", "cat a/..//secret.txt"],
    ok: ["cat a/secret.txt"],
  });
  await assertRuled("ask", "Bash(rm *)", { asked: ["rm", "rm\tx", "$CMD x", "echo `rm x`"], ok: ["ls"] });
});

Deno.test("Claude: a command that cannot be read matches a rule that denies or asks, and no rule that allows", async () => {
  const unclear = [
    ...[
      'echo "open',
      "echo 'open",
      "echo $(open",
      "echo `open",
      "$CMD -rf",
      "`cat cmd` x",
      "$(cat cmd) x",
      "r? x",
      "{rm,-rf,x}",
      "ls )",
    ],
    ...[
      "(ls",
      "echo ${x",
      "cat cmd | sh",
      "bash",
      "source <(cat cmd)",
      'eval "$CMD"',
      'bash -c "$CMD"',
      "ls <<$E\nE",
      "a\0b",
    ],
  ];
  await assertRuled("deny", "Bash(rm *)", { denied: unclear });
  await assertRuled("ask", "Bash(rm *)", { asked: unclear });
  await assertRuled("allow", "Bash(rm *)", { asked: unclear });
});

Deno.test("Claude: a rule that allows a command allows nothing else", async () => {
  await assertRuled("allow", "Bash(git *)", {
    ok: [
      "git",
      "git status",
      "git  log",
      "git log; git diff",
      "git log | git cat && git x",
      "git log $BRANCH",
      "git commit -m 'a; b'",
    ],
    asked: [
      ...[
        "git log; rm x",
        "git log && rm x",
        "git log | sh",
        "git log & rm x",
        "git log\nrm x",
        "git log $(rm x)",
        "git log `rm x`",
      ],
      ...[
        "git log > /etc/passwd",
        "git log < x",
        "A=1 git log",
        "PATH=. git log",
        "(git log)",
        "./git log",
        "/tmp/git log",
        "gitx",
        "'git log'",
      ],
      ...[
        "if git log; then git x; fi",
        "git log <(rm x)",
        "git log <<E\nE",
        "git log 2>&1",
        "# git log",
        "",
        " ",
        "$GIT log",
        "g?t log",
      ],
    ],
  });
  await assertRuled("allow", "Bash(cat ok/*)", {
    ok: ["cat ok/a", "cat ok/a/b"],
    asked: ["cat ok/../secret.txt", "cat ok/a ../secret.txt", "cat ok/..", "cat other"],
  });
  await assertRuled("allow", "Bash(npm run test)", {
    ok: ["npm run test", "npm  run 'test'"],
    asked: ["npm run test x", "npm run"],
  });
});

Deno.test("Claude: a rule about a path matches every path to the same file", async () => {
  await assertRuled("deny", "Read(secret.txt)", {
    denied: [
      ...[
        "secret.txt",
        "./secret.txt",
        ".//secret.txt",
        "a/../secret.txt",
        "a/b/../../secret.txt",
        "/repo/secret.txt",
        "/repo/./a/../secret.txt",
      ],
      ...[
        "../repo/secret.txt",
        "//repo//secret.txt",
        "secret.txt/",
        "a/．．/secret.txt",
        "ｓecret.txt",
        "SECRET.txt",
        "secret%2Etxt",
        "a\\..\\secret.txt",
      ],
    ],
    ok: ["a/secret.txt", "secret.txt.bak", "secret", "../secret.txt", "/secret.txt", "my secret.txt"],
  });
  await assertRuled("deny", `Read(./src/${"**"}/.env)`, {
    denied: ["src/.env", "src/a/b/.env", "src/a/../.env"],
    ok: [".env", "src/x.env", "src/.envrc"],
  });
  await assertRuled("deny", "Read(//etc/*)", {
    denied: ["/etc/passwd", "../etc/passwd", "/etc/../etc/x"],
    ok: ["etc/passwd"],
  });
  await assertRuled("deny", "Read(/src/*)", { denied: ["src/a", "/repo/src/a", "/src/a"], ok: ["a/src/b"] });
  await assertRuled("deny", "Read(~/.ssh/*)", { denied: ["/home/me/.ssh/id", "~/.ssh/id"], ok: ["/home/me/ssh/id"] });
  await assertRuled("deny", "Read(keys)", { denied: ["keys", "keys/id", "./keys//id"], ok: ["keysmith"] });
  await assertRuled("ask", "NotebookEdit(a/*)", { asked: ["a/x", "b/../a/x"], ok: ["a/../x"] });
});

Deno.test("Claude: a rule about a path also holds in another working directory", async () => {
  const files = memoryFiles({ "secret.txt": "s", "ok/a.txt": "a", "sub/b.txt": "b" });
  const outcome = async (behavior: "allow" | "deny", ruleContent: string, ...paths: readonly string[]) => {
    const rules = [{ toolName: "read_file", ruleContent }];
    const updatedPermissions = [{ type: "addRules", rules, behavior, destination: "session" }];
    const first: HookCallback = (input) => ({
      hookSpecificOutput: {
        hookEventName: "PermissionRequest",
        decision: "tool_name" in input && input.tool_name === "Setup"
          ? { behavior: "allow", updatedPermissions }
          : { behavior: "deny", message: "asked" },
      },
    });
    const setup = tool({
      name: "Setup",
      description: "Sets up",
      ask: true,
      input: z.object({}),
      execute: () => "done",
    });
    const { messages } = await agent({
      model: scripted(
        { calls: [["Setup", {}], ["change_directory", { path: "sub" }]] },
        { calls: paths.map((path) => ["read_file", { path }] as const) },
        "Done.",
      ),
      tools: [setup],
      use: [
        claude_hooks({ PermissionRequest: [{ hooks: [first] }] }, { dialect: "claude", cwd: "/repo" }),
        workspace(files),
        ...(behavior === "allow" ? [permissions({ ask: ["read_file"] })] : []),
      ],
    }).run("Go").result;
    const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
    return results.slice(2).map(({ status }) => status);
  };
  assertEquals(await outcome("deny", "//repo/secret.txt", "../secret.txt", "b.txt"), ["denied", "ok"]);
  assertEquals(await outcome("deny", "secret.txt", "../secret.txt", "b.txt"), ["denied", "ok"]);
  // a path may be relative to the working directory or to the root: a rule that denies holds for both
  assertEquals(await outcome("deny", "//repo/sub/*", "b.txt", "../ok/a.txt"), ["denied", "denied"]);
  assertEquals(await outcome("allow", "//repo/ok/*", "../ok/a.txt", "../secret.txt"), ["denied", "denied"]);
});

Deno.test("Claude: a rule that allows a folder never leaves it", async () => {
  await assertRuled("allow", "Read(ok/*)", {
    ok: ["ok/a", "ok/a/b", "./ok//a", "b/../ok/a", "/repo/ok/a", "ok/a/../b"],
    asked: [
      ...[
        "ok/../secret.txt",
        "ok/..",
        "ok",
        "ok/a/../../secret.txt",
        "/ok/a",
        "../ok/a",
        "ok/．．/secret.txt",
        "ok/%2e%2e/secret.txt",
      ],
      ...["ok\\..\\secret.txt", "ok/..\\secret.txt", "ok/\u202e..", "ok/a\0", "OK/a"],
    ],
  });
  await assertRuled("allow", "Read(ok/*/../../*)", { asked: ["ok/a", "secret.txt", "ok/a/../../secret.txt"] });
  await assertRuled("allow", "Read(~/*)", { asked: ["/home/me/a", "~/a"] });
});

Deno.test("Claude: a rule about a domain matches every spelling of the host, and no other", async () => {
  await assertRuled("deny", "WebFetch(domain:evil.com)", {
    denied: [
      ...[
        "https://evil.com",
        "http://evil.com/a",
        "https://evil.com./",
        "https://EVIL.com",
        "https://evil.com:8443/",
        "evil.com/a",
        "//evil.com",
      ],
      ...[
        "https://ok.com@evil.com/",
        "https://ok.com:80@evil.com",
        "https:evil.com",
        "https:///evil.com",
        "https://ev%69l.com",
        "ｅvil.com",
      ],
      ...["https://ev\til.com", "https://evil。com/", "https://ok.com\\@evil.com", "https://", "https://[evil"],
    ],
    ok: [
      "https://ok.com",
      "https://evil.com.ok.com",
      "https://notevil.com",
      "https://ok.com/evil.com",
      "https://evil.com@ok.com",
      "ok.com#evil.com",
    ],
  });
  await assertRuled("deny", "WebFetch(domain:BÜCHER.de.)", {
    denied: ["https://xn--bcher-kva.de/", "https://bücher.de"],
    ok: ["https://bucher.de"],
  });
  await assertRuled("deny", "WebFetch(domain:*.evil.com)", {
    denied: ["https://a.EVIL.com./"],
    ok: ["https://evil.com"],
  });
  await assertRuled("deny", "WebFetch(https://evil.com/*)", {
    denied: ["https://evil.com/a", "HTTPS://EVIL.com:443/./a", "https://evil.com./a", "https://x@evil.com/a"],
    ok: ["https://ok.com/a"],
  });
  await assertRuled("allow", "WebFetch(domain:ok.com)", {
    ok: ["https://ok.com", "https://OK.com./a", "http://ok.com:80/"],
    asked: [
      ...[
        "https://ok.com@evil.com",
        "https://evil.com",
        "https://ok.com.evil.com",
        "https://evil.com/ok.com",
        "https://evil.com#@ok.com",
      ],
      ...["https://ok.com\\@evil.com", "ok.com", "https://user@ok.com", "https://ok .com", "https://\tok.com"],
    ],
  });
});

Deno.test("Claude: a rule is about the field that the tool declares, whatever other fields an input has", async () => {
  const secret = { command: "ls", file_path: "secret.txt", path: "x", url: "x" };
  assertEquals(await ruled("deny", "Read(secret.txt)", [secret, { path: "secret.txt", file_path: "x" }]), [
    "denied",
    "ok",
  ]);
  assertEquals(
    await ruled("allow", "Read(ok/*)", [{ path: "ok/a", command: "ok/a", file_path: "secret.txt" }, { path: "ok/a" }]),
    [
      "asked",
      "asked",
    ],
  );
  assertEquals(await ruled("deny", "Bash(rm *)", [{ file_path: "x", command: "rm x" }]), ["denied"]);
  assertEquals(await ruled("deny", "Bash(rm *)", [{ command: ["rm", "x"] }]), ["denied"]);
  assertEquals(await ruled("deny", "Own(rm *)", ["anything"], { field: "script" }), ["denied"]);
  assertEquals(await ruled("allow", "Own(rm *)", ["rm x"], { field: "script" }), ["asked"]);
});

Deno.test("Claude: a rule about tools may have a wildcard, and be written in one text", async () => {
  const outcome = async (behavior: "allow" | "deny", rule: string, as: string) =>
    (await ruled(behavior, rule, ["x"], { as, field: "query" }))[0];
  assertEquals(await outcome("deny", "*", "Any"), "denied");
  assertEquals(await outcome("deny", "mcp__box__*", "mcp__box__open"), "denied");
  assertEquals(await outcome("deny", "mcp__box", "mcp__box__open"), "denied");
  assertEquals(await outcome("deny", "mcp__bo", "mcp__box__open"), "ok");
  assertEquals(await outcome("deny", "An*", "Any"), "denied");
  assertEquals(await outcome("allow", "An*", "Any"), "asked");
  assertEquals(await outcome("allow", "mcp__box__*", "mcp__box__open"), "ok");
  assertEquals(await outcome("deny", "Any(x)", "Any"), "denied");
  assertEquals(await outcome("deny", "Any(y)", "Any"), "ok");
  assertEquals(await ruled("deny", "Bash(rm:*)", ["rm x", "ls"], { isText: true }), ["denied", "ok"]);
});

Deno.test("Claude: rules are matched in linear time", async () => {
  const long = [
    ...["*rm*-rf*/*", "*a*a*a*b", "a*a*a*a*b"].map((content) => [content, "rm -rf ".repeat(20_000)] as const),
    ...["a".repeat(100_000), "A=1 ".repeat(30_000), "(".repeat(100_000), "$(".repeat(50_000), "`".repeat(100_001)].map((
      text,
    ) => ["rm *", text] as const),
    ...[
      "sudo ".repeat(20_000),
      "\\".repeat(100_001),
      "xargs a/b ".repeat(10_000),
      "$x ".repeat(30_000),
      "[".repeat(100_000),
    ].map((text) => ["rm *", text] as const),
    ["rm *", `cat <<E\n${"a\\\n".repeat(30_000)}`] as const,
  ];
  for (const [content, command] of long) await ruled("deny", `Bash(${content})`, [command]);
  let nested = "x";
  for (let depth = 0; depth < 12; depth++) {
    nested = `xargs ${"bash -c ".repeat(10)} '${nested.replaceAll("'", `'"'"'`).slice(0, 30_000)}'`;
  }
  await ruled("deny", "Bash(rm *)", [nested]);
  await ruled("deny", "Read(*a*b*c)", ["a/../".repeat(20_000), "a".repeat(100_000), "%2e".repeat(30_000)]);
  await ruled("deny", "WebFetch(domain:a.b)", [`https://${"a.".repeat(50_000)}`, `https://${"@".repeat(100_000)}`]);
});

for (const seed of seeds(3)) {
  Deno.test(`Claude: every spelling of a call is denied, and none is allowed by a rule about another (seed ${seed})`, async () => {
    const chance = seeded(seed);
    const many = (spell: () => string) => Array.from({ length: 150 }, spell);
    const commands = many(() => spellCommand(chance, ["rm", "-rf", "x"]));
    const paths = many(() => spellPath(chance, "a/secret.txt", "/repo"));
    const addresses = many(() => spellAddress(chance, "evil.com"));
    await assertRuled("deny", "Bash(rm -rf *)", { denied: commands });
    await assertRuled("deny", "Read(a/secret.txt)", { denied: paths });
    await assertRuled("deny", "WebFetch(domain:evil.com)", { denied: addresses });
    for (const rule of ["Bash(ls *)", "Bash(echo *)"]) await assertRuled("allow", rule, { asked: commands });
    for (const rule of ["Read(ok/*)", "Read(a/b/*)", "Read(x/*)"]) await assertRuled("allow", rule, { asked: paths });
    await assertRuled("allow", "WebFetch(domain:ok.com)", { asked: addresses });
  });
}
