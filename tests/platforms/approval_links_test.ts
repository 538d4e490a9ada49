import type { QuestionLinks } from "@jizai/jizai/approval_links";
import { assertEquals } from "@std/assert";
import { decide, open } from "../support/linked.ts";
import { eventsOf, first, post } from "../support/requests.ts";
import { eventually } from "./eventually.ts";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

Deno.test("in workerd, approval links show their questions, and decide once", async () => {
  await using disk = await folder();
  await using worker = await served(await bundled("tests/platforms/links_worker.ts"), {}, disk.path);
  const { session } = first("run.started", await eventsOf(post(worker, "/runs", { prompt: "Go" })));
  const [one, two] = await eventually(async () => {
    const links: readonly QuestionLinks[] = await (await worker.request("/links")).json();
    return links.length === 2 ? links : undefined;
  });
  const { approve = "", deny = "" } = one ?? {};
  assertEquals((await open(worker, approve)).slice(0, 2), [200, "Approve this call?"]);
  const answers = await Promise.all([decide(worker, approve), decide(worker, two?.deny ?? "")]);
  assertEquals(answers, [[200, "Approved"], [200, "Denied"]]);
  assertEquals(await decide(worker, deny), [409, "This question is closed"]);
  const messages = await eventually(async () => {
    const { run, messages } = await (await worker.request(`/sessions/${session}`)).json();
    return run ? undefined : messages;
  });
  const results = messages.flatMap(
    ({ results = [] }: { readonly results?: readonly { readonly status: string }[] }) => {
      return results.map(({ status }) => status);
    },
  );
  assertEquals(results, ["ok", "denied"]);
});
