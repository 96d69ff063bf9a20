// Draws the use of an account, from the numbers in data-days: Unix times, requests, refused, deprecated.
"use strict";

{
  const place = document.getElementById("usage-chart");
  const data = JSON.parse(place.dataset.days);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dayOf = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  const height = 256;
  let chart = null;

  const draw = () => {
    if (chart) chart.destroy();
    const ink = colour("--pico-color"), line = colour("--line");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const days = (_, values) => values.map((seconds) => dayOf.format(seconds * 1000));
    const count = (_, values) => values.map((value) => (value === null ? "" : value.toLocaleString("en")));
    const series = (label, name, dash) => ({
      label, stroke: colour(name), width: 2, dash, points: { show: false },
      value: (_, value) => (value === null ? "–" : value.toLocaleString("en")),
    });
    chart = new uPlot({
      width: place.clientWidth, height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      scales: { y: { range: (_, _low, high) => [0, Math.max(high, 5) * 1.05] } },
      axes: [{ ...axis, values: days }, { ...axis, size: 70, values: count }],
      series: [
        { label: "Day", value: "{YYYY}-{MM}-{DD}" },
        series("Requests", "--paw"),
        series("Refused", "--bad", [8, 4]),
        series("Deprecated", "--wait", [2, 4]),
      ],
    }, data, place);
  };

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("resize", () => chart.setSize({ width: place.clientWidth, height }));
}
