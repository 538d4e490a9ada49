/**
 * Signatures as text, from the JSON of `deno doc`.
 *
 * @module
 */

/** A type, as `deno doc --json` writes it. `repr` is its text, if it is short. */
export interface DocType {
  readonly kind: string;
  readonly repr?: string;
  readonly value?: unknown;
}

/** A parameter of a function. */
export interface DocParam {
  readonly kind: "identifier" | "object" | "array" | "assign" | "rest";
  readonly name?: string;
  readonly optional?: boolean;
  readonly tsType?: DocType;
  readonly left?: DocParam;
  readonly arg?: DocParam;
}

/** A type parameter. */
export interface DocTypeParam {
  readonly name: string;
  readonly constraint?: DocType;
  readonly default?: DocType;
}

/** A function, a method, or the value of a function type. */
export interface DocFunction {
  readonly params?: readonly DocParam[];
  readonly typeParams?: readonly DocTypeParam[];
  readonly returnType?: DocType;
  readonly tsType?: DocType;
}

/** A property of an interface, a class or an object type. */
export interface DocProperty {
  readonly name: string;
  readonly readonly?: boolean;
  readonly optional?: boolean;
  readonly isStatic?: boolean;
  readonly tsType?: DocType;
  readonly jsDoc?: { readonly doc?: string };
}

/** A method. */
export interface DocMethod extends DocFunction {
  readonly name: string;
  readonly optional?: boolean;
  readonly isStatic?: boolean;
  readonly functionDef?: DocFunction;
  readonly jsDoc?: { readonly doc?: string };
}

/** The members of an object type. */
export interface DocMembers {
  readonly properties?: readonly DocProperty[];
  readonly methods?: readonly DocMethod[];
  readonly indexSignatures?: readonly { readonly params: readonly DocParam[]; readonly tsType?: DocType }[];
}

/** The parts of types that have parts. Each kind has some of them. */
interface Parts extends DocMembers, DocFunction {
  readonly typeName?: string;
  readonly typeParams?: readonly never[];
  readonly operator?: string;
  readonly constructor?: boolean;
  readonly checkType?: DocType;
  readonly extendsType?: DocType;
  readonly trueType?: DocType;
  readonly falseType?: DocType;
  readonly objType?: DocType;
  readonly indexType?: DocType;
  readonly typeParam?: DocTypeParam;
  readonly nameType?: DocType;
  readonly readonly?: boolean;
  readonly optional?: boolean;
}

/** Returns a type as TypeScript. */
export function typeText(type: DocType | undefined): string {
  if (!type) return "unknown";
  const { kind, repr = "", value } = type;
  const types = value as readonly DocType[]; // of the kinds that are lists
  const inner = value as DocType; // of the kinds that wrap one type
  const parts = value as Parts; // of the kinds that have several
  switch (kind) {
    case "literal":
      return literalText(value as { readonly kind: string; readonly string?: string }, repr);
    case "typeRef":
      return `${parts.typeName}${argumentsText(parts.typeParams)}`;
    case "union":
      return types.map(typeText).join(" | ");
    case "intersection":
      return types.map(typeText).join(" & ");
    case "array":
      return `${typeText(inner)}[]`;
    case "tuple":
      return `[${types.map(typeText).join(", ")}]`;
    case "parenthesized":
      return `(${typeText(inner)})`;
    case "rest":
      return `...${typeText(inner)}`;
    case "optional":
      return `${typeText(inner)}?`;
    case "typeQuery":
      return `typeof ${String(value)}`;
    case "typeOperator":
      return `${parts.operator} ${typeText(parts.tsType)}`;
    case "infer":
      return `infer ${parts.typeParam?.name}`;
    case "indexedAccess":
      return `${typeText(parts.objType)}[${typeText(parts.indexType)}]`;
    case "conditional":
      return `${typeText(parts.checkType)} extends ${typeText(parts.extendsType)} ? ${typeText(parts.trueType)} : ${
        typeText(parts.falseType)
      }`;
    case "mapped":
      return `{ ${parts.readonly ? "readonly " : ""}[${parts.typeParam?.name} in ${
        typeText(parts.typeParam?.constraint)
      }]${parts.optional ? "?" : ""}: ${typeText(parts.tsType)} }`;
    case "fnOrConstructor":
      return `${typeParamsText(parts.typeParams)}(${paramsText(parts.params)}) => ${typeText(parts.tsType)}`;
    case "typeLiteral":
      return `{ ${memberTexts(parts).join("; ")} }`;
    case "typePredicate":
      return `${repr}${typeText((value as { readonly type?: DocType }).type)}`;
    default:
      return repr || String(value);
  }
}

function literalText({ kind, string }: { readonly kind: string; readonly string?: string }, repr: string): string {
  if (kind === "string") return JSON.stringify(string);
  return kind === "template" ? `\`${repr}\`` : repr;
}

function argumentsText(types: readonly DocType[] = []): string {
  return types.length > 0 ? `<${types.map(typeText).join(", ")}>` : "";
}

/** Returns type parameters with their constraints and defaults. */
export function typeParamsText(params: readonly DocTypeParam[] = []): string {
  const texts = params.map((param) =>
    [
      param.name,
      param.constraint && ` extends ${typeText(param.constraint)}`,
      param.default && ` = ${typeText(param.default)}`,
    ].filter(Boolean).join("")
  );
  return texts.length > 0 ? `<${texts.join(", ")}>` : "";
}

/** Returns the parameters of a function. */
export function paramsText(params: readonly DocParam[] = []): string {
  return params.map(paramText).join(", ");
}

function paramText(param: DocParam): string {
  const { kind, left, arg, tsType, optional } = param;
  if (kind === "assign" && left) return paramText({ ...left, optional: true });
  if (kind === "rest" && arg) return `...${paramText({ ...arg, ...(tsType && { tsType }) })}`;
  const name = param.name ?? "options"; // a destructured parameter
  return `${name}${optional ? "?" : ""}${tsType ? `: ${typeText(tsType)}` : ""}`;
}

/** Returns a function with its name. */
export function functionText(name: string, { typeParams, params, returnType }: DocFunction): string {
  return `${name}${typeParamsText(typeParams)}(${paramsText(params)}): ${typeText(returnType)}`;
}

/** Returns a property or a method of a type. */
export function memberText(member: DocProperty | DocMethod): string {
  const { name, optional, isStatic } = member;
  const prefix = isStatic ? "static " : "";
  if ("functionDef" in member || "params" in member) {
    return prefix + functionText(`${name}${optional ? "?" : ""}`, member.functionDef ?? member);
  }
  const isReadonly = (member as DocProperty).readonly; // the others are methods
  return `${prefix}${isReadonly ? "readonly " : ""}${name}${optional ? "?" : ""}: ${typeText(member.tsType)}`;
}

/** Returns the members of an object type. */
export function memberTexts({ properties = [], methods = [], indexSignatures = [] }: DocMembers): string[] {
  const indexes = indexSignatures.map(({ params, tsType }) => `[${paramsText(params)}]: ${typeText(tsType)}`);
  return [...properties.map(memberText), ...methods.map(memberText), ...indexes];
}
