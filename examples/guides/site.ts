/**
 * The configuration of the site: its sections, and its look. `deno task site` builds it with VitePress.
 *
 * @module
 */

/** A group of pages in the sidebar. */
export interface Section {
  readonly title: string;
  /** The files of its pages, from the root of the repository. Default: the pages that are generated for it. */
  readonly files?: readonly string[];
  /** The folder of the generated pages. */
  readonly generated?: string;
}

/** A page as the sidebar shows it. */
export interface Entry {
  readonly title: string;
  /** The address, without the ending. */
  readonly path: string;
}

const guides = (names: string): readonly string[] =>
  names.trim().split(/\s+/).map((name) => `examples/guides/${name}.md`);

/** The sections, in the order of the sidebar and of `llms.txt`. */
export const sections: readonly Section[] = [
  { title: "Start", files: guides("index start") },
  { title: "Answers", files: guides("model_per_request structured_output stream_masking rag files_s3_r2") },
  { title: "People and users", files: guides("ask_a_person approvals_by_webhook users cors") },
  { title: "Costs and failures", files: guides("cap_costs see_costs log_every_call opentelemetry failures defaults") },
  {
    title: "Runs",
    files: guides(
      "schedules background_runs cancel long_conversations deploy survive_a_deploy steps databases delete_data upgrade operate metrics",
    ),
  },
  {
    title: "Agents, tools, tests",
    files: guides("tools several_agents mcp_servers skills your_own_middleware playground test_offline"),
  },
  { title: "Clients", files: guides("use_chat ag_ui openai_clients mcp_server event_source nothing_streams") },
  {
    title: "Concepts",
    files: guides("concepts/onion concepts/events concepts/sessions concepts/guards concepts/recovery"),
  },
  {
    title: "In depth",
    files: [
      "src/core/runs.md",
      "src/http/README.md",
      "src/session/README.md",
      "src/model/README.md",
      "src/wire/README.md",
      "src/testing/README.md",
      "src/cli/README.md",
      "src/core/README.md",
      "examples/README.md",
    ],
  },
  { title: "From elsewhere", files: guides("from/ai_sdk from/langchain from/tanstack_ai from/claude_hooks") },
  { title: "Middleware", files: ["middleware/README.md"], generated: "middleware" },
  { title: "Reference", generated: "reference" },
  { title: "Versions", files: guides("changes") },
];

/** Styles for readers without JavaScript: the sidebar stands above the page, and each tab of a group is visible. */
const withoutScript = `
.VPSidebar { position: static !important; transform: none !important; opacity: 1 !important; visibility: visible !important;
  width: auto !important; max-width: none !important; padding: 16px 24px !important; }
.VPSidebarItem.collapsed .items { display: block !important; }
.VPLocalNav, .VPNavBarHamburger, .VPNavBarSearch, .VPSwitchAppearance { display: none !important; }
@media (max-width: 959px) { .VPSidebar { max-height: 35vh; overflow-y: auto; } }
@media (min-width: 960px) { .VPSidebar { position: fixed !important; padding: 96px 32px !important; width: 272px !important; } }
`;

/** The look of the diagram of the onion, in both colour schemes, and of programs side by side. */
const style = `
.onion a { text-decoration: none; }
.onion rect { fill: var(--vp-c-brand-1); fill-opacity: 0.06; stroke: var(--vp-c-brand-1); }
.onion a:hover > rect, .onion a:focus > rect { fill-opacity: 0.25; }
.onion text { fill: var(--vp-c-text-1); font: 600 14px var(--vp-font-family-base); }
.onion text.note { fill: var(--vp-c-text-2); font-weight: 400; font-size: 12px; }
.wide .content-container { max-width: none !important; }
@media (min-width: 1100px) { .sides { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; } .sides > div { min-width: 0; } }
`;

/** The rank of a page in the search, as a function in JavaScript: guides and concepts come before what is generated. */
export const rank = String.raw`(id) => /^\/(reference|middleware|manual)\//.test(id) ? 0.5 : 1.5`;

/** Returns the configuration of VitePress, which is JSON. */
export function configuration(groups: readonly { readonly title: string; readonly pages: readonly Entry[] }[]): object {
  return {
    title: "Jizai",
    description: "LLM agents at the edge: every point of a run is an onion of hooks",
    lang: "en",
    srcExclude: ["public/**"],
    outDir: "../site",
    cacheDir: ".vitepress/cache",
    head: [["style", {}, style], ["noscript", {}, `<style>${withoutScript}</style>`]],
    markdown: { theme: { light: "github-light-high-contrast", dark: "github-dark" } },
    themeConfig: {
      search: { provider: "local" },
      outline: [2, 3],
      nav: [
        { text: "Start", link: "/start" },
        { text: "Middleware", link: "/middleware/" },
        { text: "Reference", link: "/reference/" },
        { text: "Changes", link: "/changes" },
      ],
      sidebar: groups.map(({ title, pages }) => ({
        text: title,
        collapsed: pages.length > 12,
        items: pages.map((page) => ({ text: page.title.replaceAll("`", ""), link: `/${page.path}` })),
      })),
    },
  };
}
