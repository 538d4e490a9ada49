/**
 * The contract between the loop and the steps.
 *
 * A step handles one position and returns a move. A region is a step made of steps: an onion of hooks around the same loop, over the positions of the
 * region. The table of a region's steps is also its border: the loop leaves the region when the position is not in the table. A run therefore starts
 * anywhere in the same way: the loop looks up the position, and enters each onion around it, from the outside in.
 *
 * @module
 */
import type { ModelResponse } from "../hooks/points/turn.ts";
import type { AnsweredQuestion, At, Counters, Move, Position, PositionAt } from "./position.ts";

/** Handles one position. `S` is the scope that the surrounding hooks passed inward. */
export type Step<S, A extends At = At> = (
  scope: S,
  position: PositionAt<A>,
  checkpoint: Checkpoint,
) => Promise<Move>;

/** Sets progress inside a position, and saves it. Never rejects: a failure becomes an exit. Returns no promise if there is nothing to wait for. */
export type Checkpoint = (position: Position, options?: CheckpointOptions) => Promise<void> | undefined;

/** The options of a checkpoint. */
export interface CheckpointOptions {
  /** New values of counters. */
  readonly counters?: Partial<Counters>;
  /** The answers to keep. */
  readonly answers?: readonly AnsweredQuestion[];
  /** False to keep the progress in memory until the next save. Default: true. */
  readonly save?: boolean;
  /** False if the save may wait for the next turn of the event loop. Default: true. */
  readonly urgent?: boolean;
}

/** The steps of a region, by position. */
export type Steps<S> = { readonly [A in At]?: Step<S, A> | Region<S> };

/** An onion around the steps of several positions. */
export interface Region<S> {
  /** The first position. A region that is entered at another one is resumed. */
  readonly entry: At;
  /** The steps inside the onion, by position. */
  readonly steps: Steps<S>;
  /** Runs the onion, and decides how the run continues from the position that was reached. */
  enter(scope: S, position: Position, inner: Inner<S>): Promise<Move>;
}

/** Runs the loop inside a region until the position leaves it. `first` is applied before. */
export type Inner<S> = (scope: S, first?: Move) => Promise<Position>;

/** The values of a turn that only its steps need. */
export interface TurnState {
  /** Texts for the requests of this turn. */
  readonly context: readonly string[];
  /** The model's response, once there is one. */
  response?: ModelResponse;
}
