import { FakeTime } from "@std/testing/time";
import { journalLaws } from "../../src/testing/laws/journal_laws.ts";
import { fileJournal } from "./file_journal.ts";
import { folder } from "./folder.ts";

Deno.test("a journal over a directory of files keeps the laws of journals", async () => {
  await using disk = await folder();
  using time = new FakeTime();
  let count = 0;
  const make = async (options: { expireIn?: number }) => {
    const directory = `${disk.path}/${count++}`;
    await Deno.mkdir(directory);
    return [1, 2].map(() => fileJournal(directory, options));
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms), time: 60_000 });
});
