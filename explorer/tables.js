// Tables: of comparisons, of medians, of percentiles, and of what a figure was drawn from.
"use strict";

const Tables = (() => {
    const { make } = Elements;
    const PERCENTILES = ["p50", "p90", "p99", "p999", "p9999", "largest"];

    function table(caption, head, rows, kind = "") {
        const body = make("tbody");
        for (const cells of rows) {
            body.append(
                make(
                    "tr",
                    {},
                    ...cells.map((cell, index) => {
                        const content = cell?.nodeType || typeof cell !== "object" || cell === null ? { content: cell } : cell;
                        return make(
                            index === 0 ? "th" : "td",
                            { scope: index === 0 ? "row" : false, class: content.class, "data-head": head[index] },
                            content.content ?? "",
                        );
                    }),
                ),
            );
        }
        const made = make(
            "table",
            { "aria-label": caption },
            make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
            body,
        );
        return make(
            "div",
            {},
            make("p", { class: "caption" }, caption),
            make("div", { class: `wide ${kind}`, tabindex: 0, role: "region", "aria-label": caption }, made),
        );
    }

    // A store's name behind its mark.
    const store = (name, looks) => make("span", { class: "store" }, Elements.swatch(looks.get(name)), name);

    function comparisons(caption, all, link) {
        const rows = all.map((one) => {
            const { comparison, workload, measure, spread, chance } = one;
            const verdict = Comparisons.verdict(one);
            const told = Comparisons.VERDICTS[verdict];
            const also = verdict === "lost" && one.isMet !== null ? `, bar ${one.isMet ? "met" : "missed"}` : "";
            const chanceWords = chance === null ? "" : ` (p = ${chance < 0.001 ? "< 0.001" : chance.toPrecision(2)})`;
            return [
                make(
                    "span",
                    {},
                    make("a", { href: link(one) }, Words.joined(workload.title, measure.title)),
                    make("br"),
                    make("small", {}, Words.caseOf(workload, comparison.case)),
                ),
                Comparisons.sides(one),
                { content: Words.spread(spread, Comparisons.unitOf(one)), class: "number" },
                { content: Comparisons.barWords(one), class: "number" },
                {
                    content: make(
                        "span",
                        {},
                        make("span", { class: `verdict ${verdict}` }, `${told.sign} ${told.words}${also}${chanceWords}`),
                        comparison.note ? make("small", { class: "note" }, comparison.note) : null,
                    ),
                },
            ];
        });
        const csv = {
            columns: [
                "workload",
                "measure",
                "case",
                "of",
                "to",
                "how",
                "unit",
                "median",
                "min",
                "max",
                "repetitions",
                "bar",
                "p",
                "verdict",
            ],
            rows: all.map((one) => [
                one.workload.name,
                one.measure.title,
                Words.caseOf(one.workload, one.comparison.case),
                one.comparison.of,
                one.comparison.to.join(" or "),
                one.comparison.how,
                Comparisons.unitOf(one),
                one.spread.median,
                one.spread.min,
                one.spread.max,
                one.spread.count,
                Comparisons.barWords(one),
                one.chance,
                Comparisons.VERDICTS[Comparisons.verdict(one)].words,
            ]),
        };
        return { element: table(caption, ["what", "of / to", "median (range)", "bar", "verdict"], rows, "cards"), ...csv };
    }

    // Medians: a row per store, a column per value of the parameter and measure. The best of each column is marked.
    function medians({ record, workload, view, chosen, stores, looks }) {
        const free = Object.fromEntries(Object.entries(chosen).filter(([name]) => name !== view.columns));
        const values = view.columns ? workload.parameters[view.columns].values : [null];
        const columns = values.flatMap((value) => view.measures.map((measure) => ({ value, measure })));
        const cells = columns.map(
            ({ value, measure }) =>
                new Map(
                    Series.of(
                        record,
                        workload,
                        measure,
                        value === null ? free : { ...free, [view.columns]: value },
                        stores,
                    ).map((series) => [series.store, Statistics.spread([...Statistics.byRepetition(series).values()])]),
                ),
        );
        const kept = columns.map((column, index) => ({ ...column, found: cells[index] })).filter(({ found }) => found.size > 0);
        const names = [...looks.keys()].filter((name) => kept.some(({ found }) => found.has(name)));
        if (names.length === 0) return null;
        const titles = kept.map(({ value, measure }) =>
            [value === null ? null : Words.parameter(workload, view.columns, value), workload.measures[measure].title]
                .filter((word) => word !== null)
                .join(": "),
        );
        const best = kept.map(({ measure, found }) => bestOf(found, workload.measures[measure].better, record.run.stores));
        const rows = names.map((name) => [
            store(name, looks),
            ...kept.map(({ measure, found }, index) => {
                const spread = found.get(name);
                if (spread === undefined) return "";
                const text = Words.figure(spread.median, workload.measures[measure].unit);
                const range =
                    spread.min === spread.max
                        ? null
                        : make(
                              "small",
                              {},
                              [spread.min, spread.max]
                                  .map((value) => Words.figure(value, workload.measures[measure].unit))
                                  .join(" to "),
                          );
                return {
                    content: make(
                        "span",
                        {},
                        make(best[index] === name ? "strong" : "span", {}, text + (best[index] === name ? " \u2605" : "")),
                        range,
                    ),
                    class: "number",
                };
            }),
        ]);
        return {
            element: table(`${view.title}; \u2605 is the best of a column`, ["store", ...titles], rows),
            columns: [
                "store",
                ...titles.flatMap((title, index) => [
                    `${title} [${workload.measures[kept[index].measure].unit}]`,
                    "min",
                    "max",
                ]),
            ],
            rows: names.map((name) => [
                name,
                ...kept.flatMap(({ found }) => {
                    const spread = found.get(name);
                    return spread === undefined ? ["", "", ""] : [spread.median, spread.min, spread.max];
                }),
            ]),
        };
    }

    function bestOf(found, better, stores) {
        if (better === null) return null;
        const candidates = [...found].filter(([name]) => stores[name].kind !== "reference");
        candidates.sort(([, a], [, b]) => (better === "lower" ? a.median - b.median : b.median - a.median));
        return candidates.length > 1 ? candidates[0][0] : null;
    }

    // Percentiles: the median of the repetitions' own, and their range.
    function percentiles({ record, workload, view, chosen, stores, looks }) {
        const found = new Map(
            Series.histograms(record, workload, view.measure, chosen, stores).map((histogram) => [
                histogram.store,
                histogram.percentiles.map((bounds) => Statistics.spread(bounds.map((bound) => bound / 1e9))),
            ]),
        );
        const names = [...looks.keys()].filter((name) => found.has(name));
        if (names.length === 0) return null;
        const rows = names.map((name) => [
            store(name, looks),
            ...found.get(name).map((spread) => ({
                content: make(
                    "span",
                    {},
                    Words.figure(spread.median, "s"),
                    spread.min === spread.max
                        ? null
                        : make("small", {}, `${Words.figure(spread.min, "s")} to ${Words.figure(spread.max, "s")}`),
                ),
                class: "number",
            })),
        ]);
        return {
            element: table(
                `${view.title}: medians of the repetitions' percentiles, and their range`,
                ["store", ...PERCENTILES],
                rows,
            ),
            columns: ["store", ...PERCENTILES.flatMap((name) => [`${name} [s]`, "min", "max"])],
            rows: names.map((name) => [name, ...found.get(name).flatMap((spread) => [spread.median, spread.min, spread.max])]),
        };
    }

    // The data of a figure, up to a number of rows; the CSV has all.
    function data(figure, rowsMax = 300) {
        const rows = figure.rows
            .slice(0, rowsMax)
            .map((row) =>
                row.map((cell) => (typeof cell === "number" ? { content: Words.digits(cell), class: "number" } : (cell ?? ""))),
            );
        const left = figure.rows.length - rows.length;
        return table(
            left > 0 ? `The first ${rowsMax} rows; ${left} more are in the CSV` : "What was drawn",
            figure.columns,
            rows,
        );
    }

    return { comparisons, medians, percentiles, data };
})();
