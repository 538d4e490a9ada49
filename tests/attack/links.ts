/**
 * Attacks on approval links: opened by scanners, pressed twice, at once and late, changed, and taken from other runs. A model of the presses that counted
 * decides which calls may run.
 *
 * @module
 */
import { type Agent, agent, tool } from "@jizai/jizai";
import type { LinkedQuestion } from "@jizai/jizai/approval_links";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { decide, keys, type Linked, linked, linksOf, linksWith, open } from "../support/linked.ts";
import { shared } from "../support/process.ts";
import type { Chance } from "../support/seeded.ts";
import { type Attack, expect } from "./attack.ts";

/** The tables that were dropped, and the decisions of the presses that counted, by table. */
interface Model {
  readonly did: string[];
  readonly counted: Map<string, string>;
}

/** Creates an agent that drops tables, all in one batch. */
function dropper({ did }: Model, tables: readonly string[]): Agent<unknown, unknown> {
  const drop = tool({
    name: "drop",
    description: "Drops a table",
    input: z.object({ table: z.string() }),
    ask: true,
    execute: async ({ table }) => {
      await new Promise((resolve) => setTimeout(resolve, 0));
      did.push(table);
      return "Dropped";
    },
  });
  const calls = tables.map((table) => ["drop", { table }] as const);
  return agent({ model: scripted({ calls }, "Done.", "Done."), tools: [drop] });
}

function tableOf({ input }: LinkedQuestion): string {
  return Object(input).table;
}

const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

/** Changes a link: characters replaced, removed, inserted or moved, and parts of another link. */
function tampered(link: string, other: string, { below, one }: Chance): string {
  const start = link.lastIndexOf("/") + 1;
  const [base, token, foreign] = [link.slice(0, start), link.slice(start), other.slice(other.lastIndexOf("/") + 1)];
  const at = below(token.length);
  const character = characters[below(characters.length)] ?? "";
  const changed = one<string>([
    token.slice(0, at) + character + token.slice(at + 1),
    token.slice(0, at) + token.slice(at + 1),
    token.slice(0, at) + character + token.slice(at),
    token.slice(0, at) + foreign.slice(at),
    foreign.slice(0, at) + token.slice(at),
    `${token}${character}`,
    token.replace("k1", one(["k2", "__proto__", "constructor"])),
    token.split(".").toReversed().join("."),
    btoa(JSON.stringify({ decision: "approve", callId: "call_1" })).replaceAll("=", ""),
  ]);
  return base + (changed === token || changed === foreign ? `${token}A` : changed);
}

/** Presses a link, and notes a press that counts. A second one of the same question must not count. */
async function pressed(
  { counted }: Model,
  app: Linked["app"],
  question: LinkedQuestion,
  chance: Chance,
): Promise<void> {
  const decision = chance.one(["approve", "deny"] as const);
  const [status, heading] = await decide(app, linksOf(question)[decision]);
  const isClosed = status === 409 && heading === "This question is closed";
  expect(status === 200 || isClosed, () => `a link was answered with ${status} ${heading}`);
  if (status !== 200) return;
  const table = tableOf(question);
  expect(!counted.has(table), () => `the question about ${table} was answered twice`);
  counted.set(table, decision);
}

/** One act of a person, a scanner or an attacker. */
async function act(model: Model, apps: readonly [Linked, Linked], known: readonly LinkedQuestion[], chance: Chance) {
  const { below, one } = chance;
  const question = () => known[below(known.length)] ?? expectQuestion();
  const { app } = one(apps);
  await one<() => Promise<unknown>>([
    () => pressed(model, app, question(), chance),
    () => Promise.all([1, 2, 3].map(() => pressed(model, one(apps).app, question(), chance))),
    () => open(app, linksOf(question())[one(["approve", "deny"] as const)], one(["GET", "HEAD", "PUT"])),
    async () => {
      const link = tampered(linksOf(question()).approve, linksOf(question()).deny, chance);
      for (const [status] of [await open(app, link), await decide(app, link)]) {
        expect(status === 400 || status === 404, () => `the changed link ${link} was answered with ${status}`);
      }
    },
  ])();
}

function expectQuestion(): never {
  throw new Error("Cannot attack: there is no question");
}

/** Acts on the links of two runs, over two processes of one store, until each question is answered. */
async function attempt(chance: Chance): Promise<number> {
  const model: Model = { did: [], counted: new Map() };
  const among = shared();
  const tables = Array.from({ length: 1 + chance.below(4) }, (_, index) => `t${index}`);
  const late = linksWith({ now: () => Date.now() - 172_800_000 });
  const apps = [linked(dropper(model, tables), among), linked(dropper(model, tables), among)] as const;
  const settled = () => Promise.all(apps.map(({ served }) => served.settled()));
  const { questions } = await apps[0].start();
  const strange = linked(dropper(model, ["other"]), {}, linksWith({ keys: [{ ...keys[0]!, secret: "x".repeat(32) }] })); // there is one key
  const foreign = [
    (await strange.start()).questions,
    (await linked(dropper(model, ["late"]), among, late).start()).questions,
  ];
  let acts = 0;
  for (; acts < 40 && model.counted.size < tables.length; acts++) {
    const reported = apps.flatMap(({ reports }) => reports.flat());
    await act(model, apps, reported.length > 0 ? reported : questions, chance);
    const [other] = foreign[chance.below(2)] ?? [];
    const [status] = await decide(apps[0].app, linksOf(other).approve);
    expect(status === 400 || status === 410, () => `a foreign or late link was answered with ${status}`);
    if (chance.below(2) === 0) await settled();
  }
  await settled();
  const allowed = tables.filter((table) => model.counted.get(table) === "approve");
  const ran = model.did.toSorted().join();
  expect(ran === allowed.join(), () => `these ran: ${ran}; approved were ${allowed.join()}`);
  return acts;
}

/** Attacks on approval links. */
export const links: Attack = { name: "links", attempt };
