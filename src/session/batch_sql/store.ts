/**
 * Sessions in SQLite behind a network.
 *
 * @module
 */
import { expiry } from "../expiry.ts";
import { durable } from "../durable/mod.ts";
import type { Session } from "../../core/persistence/session.ts";
import type { Store } from "../../core/persistence/store.ts";
import { leaseEndOf, piecesOf, sessionOf, textOfSession } from "../pieces.ts";
import { pieceLength } from "../sql/storage.ts";
import { type BatchOptions, type ExecuteBatch, type Statement, sweeper } from "./batch.ts";

/** Creates a store in a database that has the schema. Each operation is one batch. */
export function batchStore(execute: ExecuteBatch, { expireIn = Infinity }: BatchOptions): Store {
  const sweep = sweeper(expireIn, ["jizai_session_piece", "jizai_session"], "id");

  /** Executes one statement. */
  async function query(...statement: Statement) {
    const [rows = []] = await execute([statement]);
    return rows;
  }

  /** Returns the statements that save a session. All but the first depend on its success. */
  function saveStatements(session: Session): Statement[] {
    const { id, version } = session;
    const writer = crypto.randomUUID();
    const lease = leaseEndOf(session);
    const head = [expiry(expireIn, lease), lease, writer, id] as const;
    const pieces = piecesOf(textOfSession(session), pieceLength);
    return [
      version === 0 ? [insert, ...head, Date.now()] : [update, ...head, version, Date.now()],
      ...pieces.map((text, part): Statement => [putPiece, id, part, text, id, writer]),
      [cutPieces, id, pieces.length, id, writer],
    ];
  }

  return durable({
    async load(id) {
      const rows = await query(select, id, Date.now());
      const [head] = rows;
      const text = rows.map(({ text }) => text).join("");
      return head && sessionOf(text, Number(head.version), head.lease === null ? null : Number(head.lease));
    },
    async save(session) {
      const [saved = []] = await execute([...saveStatements(session), ...sweep()]);
      return saved.length > 0 ? session.version + 1 : undefined;
    },
    async delete(id) {
      await execute(["jizai_session_piece", "jizai_session"].map((table) => [`DELETE FROM ${table} WHERE id = ?`, id]));
    },
    async list({ after = "", limit = 100 } = {}) {
      const rows = await query(list, after, Date.now(), limit);
      return rows.map(({ id }) => String(id));
    },
    async pending(before, limit) {
      const rows = await query(pending, before, Date.now(), limit);
      return rows.map(({ id }) => String(id));
    },
    async touch(session, until) {
      const { id, version } = session;
      const expires = expiry(expireIn, until);
      const rows = await query(move, Math.trunc(until), expires, id, version, leaseEndOf(session), Date.now());
      return rows.length > 0;
    },
  });
}

const select = `SELECT version, lease, text FROM jizai_session JOIN jizai_session_piece USING (id)
  WHERE id = ? AND (expires IS NULL OR expires > ?) ORDER BY part`;

/** Inserts a session unless there is one that has not expired. */
const insert = `INSERT INTO jizai_session (version, expires, lease, writer, id) VALUES (1, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET version = 1, expires = excluded.expires, lease = excluded.lease, writer = excluded.writer
    WHERE jizai_session.expires <= ?
  RETURNING version`;

/** Replaces the version that the caller has read. */
const update = `UPDATE jizai_session SET version = version + 1, expires = ?, lease = ?, writer = ?
  WHERE id = ? AND version = ? AND (expires IS NULL OR expires > ?) RETURNING version`;

const isWriter = "EXISTS (SELECT 1 FROM jizai_session WHERE id = ? AND writer = ?)";

const putPiece = `INSERT INTO jizai_session_piece (id, part, text) SELECT ?, ?, ? WHERE ${isWriter}
  ON CONFLICT (id, part) DO UPDATE SET text = excluded.text WHERE text <> excluded.text`;

const cutPieces = `DELETE FROM jizai_session_piece WHERE id = ? AND part >= ? AND ${isWriter}`;

const list = "SELECT id FROM jizai_session WHERE id > ? AND (expires IS NULL OR expires > ?) ORDER BY id LIMIT ?";

const pending =
  "SELECT id FROM jizai_session WHERE lease <= ? AND (expires IS NULL OR expires > ?) ORDER BY lease LIMIT ?";

/** Moves the end of the lease that the caller has read. */
const move = `UPDATE jizai_session SET lease = ?, expires = ?
  WHERE id = ? AND version = ? AND lease = ? AND (expires IS NULL OR expires > ?) RETURNING version`;
