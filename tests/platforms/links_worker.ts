/**
 * A Worker whose questions are answered by approval links, which it lists at `/links`.
 *
 * @module
 */
import { agent, type RunEnd, serve } from "@jizai/jizai";
import { approvalLinks, type LinkedQuestion } from "@jizai/jizai/approval_links";
import { scripted } from "@jizai/jizai/model/scripted";
import { Hono } from "hono";
import { drop } from "../support/asking.ts";

const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
const links = approvalLinks({ url: "https://example.com/approvals", keys });
const calls = [["drop", { table: "a" }], ["drop", { table: "b" }]] as const;
const questions: LinkedQuestion[] = [];
const onEnd = async (end: RunEnd) => void questions.push(...await links.questions(end));
const served = serve(agent({ model: scripted({ calls }, "Done."), tools: [drop] }), { onEnd });

export default new Hono()
  .get("/links", (c) => c.json(questions.map(({ links }) => links)))
  .route("/approvals", links.pages(served))
  .route("/", served);
