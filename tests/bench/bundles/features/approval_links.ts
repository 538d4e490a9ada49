/** A served agent whose questions are answered by links. */
import { agent, serve } from "@jizai/jizai";
import { approvalLinks } from "@jizai/jizai/approval_links";
import { Hono } from "hono/tiny";
import { options } from "../assistant.ts";

const keys = [{ id: "1", secret: "a secret of at least thirty-two characters" }];
const links = approvalLinks({ url: "https://example.com/approvals", keys });
const served = serve(agent(options), { onEnd: async (end) => void console.log(await links.questions(end)) });

export default new Hono().route("/approvals", links.pages(served)).route("/", served);
