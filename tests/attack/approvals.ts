/**
 * Attacks with approvals that are late, repeated or of another run, in every dialect.
 *
 * @module
 */
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import type { Chance } from "../support/seeded.ts";
import { type ClientRequest, dialects, payingApp, stopRun } from "../support/paying.ts";
import { post } from "../support/requests.ts";
import { type Attack, expect } from "./attack.ts";

/** An approval of a client, and the amount that it has seen. */
interface Approval extends ClientRequest {
  readonly amount: number;
}

/** Has a person approve payments, and clients send every approval at any time. Fails if a payment runs that its approval does not show, or one runs twice. */
async function payByChance({ below, one }: Chance): Promise<number> {
  let amount = 0;
  const step: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "Done."
      : { calls: [{ id: "call_1", name: "pay", input: { amount: ++amount } }] };
  const { app, paid } = payingApp(scripted(...Array.from({ length: 100 }, () => step)));
  const approvals: Approval[] = [];
  const isPaused = async () => "run" in await (await app.request("/sessions/s")).json();
  const send = async ({ path, body, headers }: ClientRequest) => await (await post(app, path, body, headers)).text();

  async function ask(): Promise<void> {
    const { prompt, approve } = one(Object.values(dialects) as [(typeof dialects)[string]]);
    const response = await send(prompt);
    approvals.push({ ...await approve(response, app), amount });
  }

  async function approve(approval: Approval): Promise<void> {
    const before = paid.length;
    const text = await send(approval);
    const all = JSON.stringify(paid);
    const run = paid.slice(before);
    const what = () => `${JSON.stringify(approval)} paid ${JSON.stringify(run)} of ${all}: ${text}`;
    expect(run.every((each) => each === approval.amount) && new Set(paid).size === paid.length, what);
  }

  await ask();
  const count = 12;
  for (let done = 0; done < count; done++) {
    const before = paid.length;
    const kind = below(4);
    if (kind === 0) await ask();
    else if (kind === 1 && await isPaused()) await stopRun(app, below(2) === 0);
    else {
      await approve(one(approvals as [Approval, ...Approval[]]));
      continue;
    }
    expect(paid.length === before, () => `a payment ran without an approval: ${JSON.stringify(paid)}`);
  }
  return count;
}

/** Sends approvals at any time. */
export const approvals: Attack = { name: "approvals", attempt: payByChance };
