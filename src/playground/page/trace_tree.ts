/**
 * The trace of a run as a tree of nested brackets.
 *
 * @module
 */
import type { Span } from "./view.ts";

/** A bracket: a span, or a group of calls that run at the same time, around what is inside it. */
export interface TraceNode {
  readonly key: string;
  /** Undefined for a group of calls. */
  readonly span?: Span;
  readonly children: readonly TraceNode[];
}

/** The bracket of a hook. */
interface HookNode extends TraceNode {
  readonly span: Span;
  readonly children: readonly HookNode[];
}

/** The points of a call whose hooks follow one another inside the hooks of `tool`. */
const inCall = ["approval", "execute"];

/** Returns the same tree with the nodes of an earlier tree where nothing changed inside them, so that they are not drawn again. */
export function unchangedNodes(tree: readonly TraceNode[], earlier: readonly TraceNode[]): readonly TraceNode[] {
  const byKey = new Map(earlier.map((node) => [node.key, node]));
  return tree.map((node) => {
    const old = byKey.get(node.key);
    if (!old || old.span !== node.span) return node;
    const children = unchangedNodes(node.children, old.children);
    const isUnchanged = children.length === old.children.length &&
      children.every((child, index) => child === old.children[index]);
    return isUnchanged ? old : { ...node, children };
  });
}

/** Returns the tree. A hook encloses the hooks and the work inside it. */
export function traceTree(spans: readonly Span[]): readonly TraceNode[] {
  const byParent = Map.groupBy(spans, ({ parent }) => parent);
  return nodesIn("");

  /** Returns the brackets inside a span. */
  function nodesIn(parent: string): readonly TraceNode[] {
    const children = byParent.get(parent) ?? [];
    const wrappers = children.filter(({ isWrapper }) => isWrapper);
    const core = grouped(coreOf(children.filter(({ isWrapper }) => !isWrapper)));
    const outer = nested(wrappers.filter(({ point = "" }) => !inCall.includes(point)));
    const phases = inCall.map((phase) => nested(wrappers.filter(({ point }) => point === phase)));
    const [approval = [], execute = []] = phases;
    const asked = core.filter(({ span }) => span?.place.includes("asked "));
    const work = core.filter((node) => !asked.includes(node));
    return around(outer, [...around(approval, asked), ...around(execute, work)]);
  }

  /** Nests consecutive hooks of one point, such as those of `stop`, and adds to every other span what is inside it. */
  function coreOf(children: readonly Span[]): TraceNode[] {
    const nodes: TraceNode[] = [];
    let hooks: Span[] = [];
    for (const span of [...children, undefined]) {
      if (hooks.length > 0 && span?.point !== hooks[0]?.point) {
        nodes.push(...nested(hooks));
        hooks = [];
      }
      if (span?.kind === "hook") hooks.push(span);
      else if (span) nodes.push({ key: span.key, span, children: nodesIn(span.key) });
    }
    return nodes;
  }
}

/**
 * Nests the hooks of a point, which finish from the inside out: a hook encloses those that finished before it. If a hook repeats what is inside it, a hook of
 * the second pass does not enclose those of the first, which contain itself.
 */
function nested(hooks: readonly Span[]): readonly HookNode[] {
  return hooks.reduce<readonly HookNode[]>((roots, span) => {
    const firstInside = roots.findLastIndex((root) => contains(root, span.name)) + 1;
    return [...roots.slice(0, firstInside), { key: span.key, span, children: roots.slice(firstInside) }];
  }, []);
}

function contains({ span, children }: HookNode, name: string): boolean {
  return span.name === name || children.some((child) => contains(child, name));
}

/** Puts nodes into the innermost bracket of the last pass. */
function around(brackets: readonly HookNode[], inner: readonly TraceNode[]): readonly TraceNode[] {
  const last = brackets.at(-1);
  if (!last || inner.length === 0) return [...brackets, ...inner];
  return [...brackets.slice(0, -1), { ...last, children: around(last.children, inner) }];
}

/** Puts consecutive calls that run at the same time into one bracket. */
function grouped(nodes: readonly TraceNode[]): readonly TraceNode[] {
  const result: TraceNode[] = [];
  for (const node of nodes) {
    const last = result.at(-1);
    const group = node.span?.group;
    if (group === undefined || group !== groupOf(last)) result.push(node);
    else if (last?.span) result.splice(-1, 1, { key: `group ${group}`, children: [last, node] });
    else if (last) result.splice(-1, 1, { ...last, children: [...last.children, node] });
  }
  return result;
}

function groupOf(node: TraceNode | undefined): string | undefined {
  return node?.span ? node.span.group : node?.children[0]?.span?.group;
}
