/**
 * Logs in SQLite behind a network.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import { type Addition, type DeltaOptions, deltasEveryDefault, type Log, type LogPage } from "../log.ts";
import { followers } from "../followers.ts";
import { collectLines, piecesOf, textOfLines } from "../pieces.ts";
import { records } from "../record/records_of.ts";
import { pieceLength } from "../sql/storage.ts";
import { type BatchOptions, type ExecuteBatch, type Statement, sweeper } from "./batch.ts";

/** Options of logs. */
export interface BatchLogOptions extends BatchOptions, DeltaOptions {
  /** Milliseconds between two looks for events of other processes. Events of this process arrive at once. Default: 200. */
  readonly pollEvery?: number;
}

/** Creates a log in a database that has the schema. Each operation is one batch. */
export function batchLog(
  execute: ExecuteBatch,
  { expireIn = Infinity, pollEvery = 200, deltasEvery = deltasEveryDefault }: BatchLogOptions,
): Log {
  const following = followers({ read, longest: pollEvery });
  const sweep = sweeper(expireIn, ["jizai_log_piece", "jizai_log"], "run");

  /** Returns the statements that append: those of expired pieces, then the end of the record, then the pieces, which depend on it. */
  function appendStatements(run: string, { after, lines, ended }: Addition): Statement[] {
    const writer = crypto.randomUUID();
    const now = Date.now();
    const last = after + lines.length;
    const pieces = piecesOf(textOfLines(lines), pieceLength);
    return [
      [dropExpired, run, run, now],
      [putHead, run, last, ended ? 1 : 0, expiry(expireIn), writer, after, now],
      ...pieces.map((text, part): Statement => [putPiece, run, after + 1, part, text, run, writer]),
    ];
  }

  async function read(run: string, after: number): Promise<LogPage | undefined> {
    const [rows = []] = await execute([[page, after, run, after + 1, run, after + 1, run, Date.now()]]);
    const [head] = rows;
    if (!head) return undefined;
    const collector = collectLines(after);
    for (const { first, part, text } of rows) {
      if (text !== null && !collector.add({ first: Number(first), part: Number(part), text: String(text) })) break;
    }
    return { ...collector.lines(), last: Number(head.last), ended: head.ended === 1 };
  }

  return {
    records,
    deltasEvery,
    ...(expireIn < Infinity && { renewIn: expireIn / 2 }),
    async append(run, addition) {
      const [, head = []] = await execute([...appendStatements(run, addition), ...sweep()]);
      if (head.length > 0) following.add(run, addition);
      return head.length > 0;
    },
    read,
    tail: following.tail,
    async delete(run) {
      await execute(["jizai_log_piece", "jizai_log"].map((table) => [`DELETE FROM ${table} WHERE run = ?`, run]));
      following.remove(run);
    },
  };
}

const dropExpired = `DELETE FROM jizai_log_piece WHERE run = ? AND
  EXISTS (SELECT 1 FROM jizai_log WHERE run = ? AND expires <= ?)`;

/** Begins a record, or moves its end if it is where the writer expects it. */
const putHead = `INSERT INTO jizai_log (run, last, ended, expires, writer) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (run) DO UPDATE
    SET last = excluded.last, ended = excluded.ended, expires = excluded.expires, writer = excluded.writer
    WHERE jizai_log.expires <= ?7 OR jizai_log.last = ?6
  RETURNING last`;

const putPiece = `INSERT INTO jizai_log_piece (run, first, part, text) SELECT ?, ?, ?, ?
  WHERE EXISTS (SELECT 1 FROM jizai_log WHERE run = ? AND writer = ?)`;

/** Reads the end of a record and the next 50 additions, from the one that contains the next event. */
const page = `SELECT head.last, head.ended, piece.first, piece.part, piece.text
  FROM jizai_log head LEFT JOIN jizai_log_piece piece ON piece.run = head.run AND head.last > ? AND piece.first >= coalesce(
    (SELECT max(first) FROM jizai_log_piece WHERE run = ? AND first <= ?), 0
  ) AND piece.first <= coalesce((
    SELECT max(first) FROM (SELECT DISTINCT first FROM jizai_log_piece WHERE run = ? AND first > ? ORDER BY first LIMIT 49)
  ), 9007199254740991)
  WHERE head.run = ? AND (head.expires IS NULL OR head.expires > ?) ORDER BY piece.first, piece.part`;
