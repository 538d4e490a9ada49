// deno-lint-ignore-file no-explicit-any

export class MockError extends Error {}

export interface SpyCall<Self = any, Args extends unknown[] = any[], Return = any> {
  args: Args;
  returned?: Return;
  error?: Error;
  self?: Self;
}

export interface Spy<Self = any, Args extends unknown[] = any[], Return = any> {
  (this: Self, ...args: Args): Return;
  original: (this: Self, ...args: Args) => Return;
  calls: SpyCall<Self, Args, Return>[];
  restored: boolean;
  restore(): void;
}

export interface MethodSpy<Self = any, Args extends unknown[] = any[], Return = any>
  extends Spy<Self, Args, Return>, Disposable {}

export interface Stub<Self = any, Args extends unknown[] = any[], Return = any> extends MethodSpy<Self, Args, Return> {
  fake: (this: Self, ...args: Args) => Return;
}

export interface ExpectedSpyCall<Self = any, Args extends unknown[] = any[], Return = any> {
  args?: [...Args, ...unknown[]];
  self?: Self;
  returned?: Return;
  error?: { Class?: new (...args: any[]) => Error; msgIncludes?: string };
}

type ParametersOf<Self, Prop extends keyof Self> = Self[Prop] extends (...args: infer Args) => unknown ? Args
  : unknown[];
type ReturnOf<Self, Prop extends keyof Self> = Self[Prop] extends (...args: any[]) => infer Return ? Return : unknown;

export function spy<Self = any, Args extends unknown[] = any[], Return = undefined>(): Spy<Self, Args, Return>;
export function spy<Self, Args extends unknown[], Return>(
  func: (this: Self, ...args: Args) => Return,
): Spy<Self, Args, Return>;
export function spy<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
): MethodSpy<Self, ParametersOf<Self, Prop>, ReturnOf<Self, Prop>>;

export function stub<Self, Prop extends keyof Self>(
  self: Self,
  property: Prop,
  func?: (this: Self, ...args: ParametersOf<Self, Prop>) => ReturnOf<Self, Prop>,
): Stub<Self, ParametersOf<Self, Prop>, ReturnOf<Self, Prop>>;

export function assertSpyCalls<Self, Args extends unknown[], Return>(
  spy: Spy<Self, Args, Return>,
  expectedCalls: number,
): void;
export function assertSpyCall<Self, Args extends unknown[], Return>(
  spy: Spy<Self, Args, Return>,
  callIndex: number,
  expected?: ExpectedSpyCall<Self, Args, Return>,
): void;

export function returnsNext<Return, Self = any, Args extends unknown[] = any[]>(
  values: Iterable<Return | Error>,
): (this: Self, ...args: Args) => Return;
