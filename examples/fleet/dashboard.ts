/**
 * The Grafana dashboard of a server: a panel for each metric of `serverMetrics()`. Run to write `dashboard.json`, which Grafana imports:
 *
 * ```sh
 * deno task dashboard
 * ```
 *
 * @module
 */
import { type ServerMetric, serverMetricList } from "@jizai/jizai/middleware/server_metrics";

/** The file of the dashboard. */
export const target = "examples/fleet/dashboard.json";

/** The size of a panel, where the dashboard has 24 columns. */
interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** A query of a panel, and the text of its lines. */
interface Query {
  readonly expr: string;
  readonly legendFormat: string;
}

const datasource = { type: "prometheus", uid: "${datasource}" };
const chosen = '{instance=~"$instance"}';
const window = "[$__rate_interval]";
const panelHeight = 8;

/** Returns a name as Prometheus has it. */
export function prometheusName(name: string): string {
  return name.replaceAll(".", "_");
}

/** Returns the queries of a metric. Owners are left out: there may be many. */
export function queriesOf({ name, instrument, attributes }: ServerMetric): readonly Query[] {
  const known = prometheusName(name);
  const labels = attributes.filter((attribute) => attribute !== "jizai.owner").map(prometheusName);
  const by = labels.length > 0 ? labels : ["instance"];
  const legendFormat = by.map((label) => `{{${label}}}`).join(" ");
  if (instrument === "histogram") {
    const buckets = `{__name__=~"${known}(_seconds)?_bucket",instance=~"$instance"}`; // a collector adds the unit
    return [0.5, 0.95].map((quantile) => ({
      expr: `histogram_quantile(${quantile}, sum by (${["le", ...labels].join(", ")}) (rate(${buckets}${window})))`,
      legendFormat: [...labels.map((label) => `{{${label}}}`), `p${quantile * 100}`].join(" "),
    }));
  }
  const value = instrument === "counter" ? `60 * rate(${known}_total${chosen}${window})` : `${known}${chosen}`;
  return [{ expr: `sum by (${by.join(", ")}) (${value})`, legendFormat }];
}

/** Returns the title of a metric: the end of its name. */
export function titleOf({ name }: ServerMetric): string {
  const words = name.replace("jizai.server.", "").replaceAll(/[._]/g, " ");
  return `${words[0]?.toUpperCase()}${words.slice(1)}`;
}

function panelOf(metric: ServerMetric, id: number, gridPos: Place): object {
  const isStacked = metric.instrument === "gauge" || metric.part === "models";
  return {
    id,
    type: "timeseries",
    title: metric.instrument === "counter" ? `${titleOf(metric)} per minute` : titleOf(metric),
    description: metric.description,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit: metric.unit === "s" ? "s" : "short",
        min: 0,
        custom: {
          fillOpacity: isStacked ? 30 : 0,
          showPoints: "never",
          stacking: { mode: isStacked ? "normal" : "none", group: "A" },
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: "list", placement: "bottom", showLegend: true },
      tooltip: { mode: "multi", sort: "desc" },
    },
    targets: queriesOf(metric).map((query, index) => ({ refId: "AB"[index], datasource, ...query })),
  };
}

/** Returns the title of a part, and its panels in lines below: three in a line, and four in two lines. */
function partOf(
  part: string,
  metrics: readonly ServerMetric[],
  { id, y }: { readonly id: number; readonly y: number },
) {
  const perLine = metrics.length === 4 ? 2 : 3;
  const title = `${part[0]?.toUpperCase()}${part.slice(1)}`;
  const row = { id, type: "row", title, collapsed: false, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] };
  const panels = metrics.map((metric, index) => {
    const line = Math.floor(index / perLine);
    const w = 24 / Math.min(perLine, metrics.length - line * perLine);
    const place = { x: index % perLine * w, y: y + 1 + line * panelHeight, w, h: panelHeight };
    return panelOf(metric, id + 1 + index, place);
  });
  return { panels: [row, ...panels], end: y + 1 + Math.ceil(metrics.length / perLine) * panelHeight };
}

/** Returns the dashboard, as Grafana 9 and later import it. */
export function dashboard() {
  const panels: object[] = [];
  let y = 0;
  for (const [part, metrics] of Map.groupBy<string, ServerMetric>(serverMetricList, ({ part }) => part)) {
    const placed = partOf(part, metrics, { id: panels.length + 1, y });
    panels.push(...placed.panels);
    y = placed.end;
  }
  const instances = `label_values(${prometheusName("jizai.server.runs")}, instance)`;
  return {
    title: "Jizai servers",
    uid: "jizai-servers",
    tags: ["jizai"],
    schemaVersion: 37,
    editable: true,
    graphTooltip: 1, // the same time in all panels
    refresh: "10s",
    time: { from: "now-30m", to: "now" },
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        {
          name: "instance",
          label: "Process",
          type: "query",
          datasource,
          definition: instances,
          query: { query: instances, refId: "instances" },
          refresh: 2,
          multi: true,
          includeAll: true,
          allValue: ".*",
          current: { text: "All", value: "$__all" },
        },
      ],
    },
    panels,
  };
}

/** Returns the text of the file. */
export function dashboardText(): string {
  return `${JSON.stringify(dashboard(), null, 2)}\n`;
}

if (import.meta.main) {
  await Deno.writeTextFile(target, dashboardText());
  console.log(target);
}
