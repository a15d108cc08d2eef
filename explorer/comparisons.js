// Comparisons with their bars: which store is ahead, and how certain that is. Losses come first.
"use strict";

const Comparisons = (() => {
    // In display order.
    const VERDICTS = {
        lost: { words: "others win", sign: "\u25bc" },
        missed: { words: "bar missed", sign: "\u2717" },
        even: { words: "no clear difference", sign: "\u2248" },
        met: { words: "bar met", sign: "\u2713" },
        won: { words: "ahead", sign: "\u25b2" },
        none: { words: "", sign: "" },
    };
    const ORDER = Object.keys(VERDICTS);

    // A comparison with its figures; null if one of its stores wasn't measured.
    function judged(record, workload, comparison) {
        const measure = workload.measures[comparison.measure];
        const exact = (store, where) => Series.exact(record, workload, comparison.measure, where, store);
        const of = exact(comparison.of, comparison.case);
        const others = comparison.to
            .map((store) => exact(store, comparison.to_case ?? comparison.case))
            .filter((series) => series !== undefined);
        if (of === undefined || (others.length === 0 && comparison.how !== "value")) return null;
        const spread = Statistics.compared(comparison.how, of, others, measure.better);
        if (spread === null) return null;
        const chance =
            comparison.test && others.length === 1
                ? Statistics.rankSum(
                      of.values.map(([, value]) => value),
                      others[0].values.map(([, value]) => value),
                  )
                : null;
        const bar = comparison.bar;
        const isMet = bar === null ? null : "at_least" in bar ? spread.median >= bar.at_least : spread.median <= bar.at_most;
        const kinds = {
            of: record.run.stores[comparison.of].kind,
            to: new Set(others.map(({ store }) => record.run.stores[store].kind)),
        };
        const isOnly = (kind) => kinds.to.size === 1 && kinds.to.has(kind);
        // Theirs over ours: a good value is good for them.
        const isTurned = kinds.of !== "ours" && isOnly("ours");
        const isAgainstOthers = (kinds.of === "ours" && isOnly("other")) || (kinds.of === "other" && isTurned);
        return {
            workload,
            measure,
            comparison,
            spread,
            chance,
            isMet,
            isAgainstOthers,
            isTurned,
            standing: standing(comparison, measure, spread, chance, isAgainstOthers, isTurned),
        };
    }

    // lost, even or won; none if the comparison has no winner.
    function standing(comparison, measure, spread, chance, isAgainstOthers, isTurned) {
        if (!isAgainstOthers || measure.better === null) return "none";
        const even = comparison.how === "ratio" ? 1 : 0;
        const ahead = (measure.better === "higher") !== isTurned ? spread.median > even : spread.median < even;
        if (chance === null ? spread.min <= even && even <= spread.max : chance >= 0.05) return "even";
        return ahead ? "won" : "lost";
    }

    function verdict({ standing: stands, isMet }) {
        if (stands === "lost") return "lost";
        if (isMet === false) return "missed";
        if (isMet === true) return "met";
        return stands;
    }

    function ofWorkload(record, workload) {
        return workload.comparisons
            .map((comparison) => judged(record, workload, comparison))
            .filter((one) => one !== null)
            .sort((a, b) => ORDER.indexOf(verdict(a)) - ORDER.indexOf(verdict(b)));
    }

    function ofRun(record) {
        return record.run.workloads
            .flatMap((workload) => ofWorkload(record, workload))
            .sort((a, b) => ORDER.indexOf(verdict(a)) - ORDER.indexOf(verdict(b)));
    }

    // How often ours is better: over 1 it is, whichever way the measure goes. Null where that is no question: of ours against
    // ours, or where a bar forbids to be too good.
    function advantage({ comparison, measure, spread, isTurned }, stores) {
        if (comparison.how !== "ratio" || measure.better === null || spread.min <= 0) return null;
        if (!isTurned && (stores[comparison.of].kind !== "ours" || comparison.to.every((name) => stores[name].kind === "ours")))
            return null;
        const turned = (measure.better === "lower") !== isTurned;
        if (comparison.bar && "at_most" in comparison.bar !== turned) return null;
        const turn = (value) => (turned ? 1 / value : value);
        const bar = comparison.bar ? turn(Object.values(comparison.bar)[0]) : null;
        return {
            median: turn(spread.median),
            min: turn(turned ? spread.max : spread.min),
            max: turn(turned ? spread.min : spread.max),
            bar,
        };
    }

    const other = (comparison) => comparison.words ?? comparison.to.join(" or ");
    const opponent = ({ comparison, isTurned }) => (isTurned ? comparison.of : other(comparison));
    function sides({ workload, comparison }) {
        if (comparison.how === "value") return comparison.of;
        const there = comparison.to_case === undefined ? "" : ` (${Words.caseOf(workload, comparison.to_case)})`;
        return `${comparison.of} ${comparison.how === "ratio" ? "/" : "\u2212"} ${other(comparison)}${there}`;
    }

    const unitOf = ({ comparison, measure }) => (comparison.how === "ratio" ? "x" : measure.unit);

    function barWords(one) {
        const { bar } = one.comparison;
        if (bar === null) return "";
        return "at_least" in bar
            ? `\u2265 ${Words.figure(bar.at_least, unitOf(one))}`
            : `\u2264 ${Words.figure(bar.at_most, unitOf(one))}`;
    }

    // Times better, a row for each comparison: the median, its range, and the bar as a stroke.
    function figure(all, stores) {
        const found = all.map((one) => ({ one, better: advantage(one, stores) })).filter(({ better }) => better !== null);
        if (found.length === 0) return null;
        const columns = ["workload", "measure", "case", "of / to", "times better", "min", "max", "bar", "verdict"];
        const rows = found.map(({ one, better }) => [
            one.workload.title,
            one.measure.title,
            Words.caseOf(one.workload, one.comparison.case),
            sides(one),
            better.median,
            better.min,
            better.max,
            better.bar,
            VERDICTS[verdict(one)].words,
        ]);
        const option = (look, place, scale = "log") => {
            const values = found.flatMap(({ better }) => [
                better.median,
                better.min,
                better.max,
                better.bar ?? better.median,
                1,
            ]);
            const x = Axes.axis(
                scale,
                Axes.ticksFor(values, scale, place.width < Frames.NARROW ? 4 : 8),
                "times better than the other",
                (value) => `${Words.digits(value)}x`,
                look,
            );
            const blue = Looks.isDark() && !place.isFile ? "#56b4e9" : "#0072b2";
            const series = found.flatMap(({ one, better }, index) => {
                const bad = ["lost", "missed"].includes(verdict(one));
                const colour = bad ? look.missed : blue;
                const told = {
                    name: sides(one),
                    at: names[index].replaceAll("\n", ", "),
                    figure: `${Words.spread(better, "x")} better`,
                };
                const strokes =
                    better.bar === null
                        ? []
                        : [
                              {
                                  type: "scatter",
                                  symbol: "rect",
                                  symbolSize: [3, 20],
                                  itemStyle: { color: look.strong },
                                  silent: true,
                                  animation: false,
                                  data: [[x.place(better.bar), index]],
                                  z: 4,
                              },
                          ];
                return [
                    Frames.whiskers({ colour, width: 2 }, [
                        [
                            [x.place(better.min), index],
                            [x.place(better.max), index],
                        ],
                    ]),
                    {
                        type: "scatter",
                        symbol: bad ? "diamond" : "circle",
                        symbolSize: bad ? 13 : 10,
                        z: 5,
                        animation: false,
                        itemStyle: {
                            color: bad ? look.paper : colour,
                            opacity: 1,
                            borderWidth: bad ? 2.5 : 0,
                            borderColor: colour,
                        },
                        data: [Frames.point([x.place(better.median), index], told)],
                    },
                    ...strokes,
                ];
            });
            const option_ = Frames.categories(look, place, x, names, series);
            option_.series[0].markLine = {
                silent: true,
                symbol: "none",
                animation: false,
                label: { show: false },
                lineStyle: { color: look.text, type: "solid", width: 1.5 },
                data: [{ xAxis: x.place(1) }],
            };
            return option_;
        };
        const names = found.map(
            ({ one }) =>
                `against ${opponent(one)}: ${one.measure.title}\n` +
                (Words.caseOf(one.workload, one.comparison.case) || one.workload.title),
        );
        return { height: (place) => 80 + Frames.rowHeight(place, 2) * found.length, columns, rows, option };
    }

    return { VERDICTS, verdict, ofWorkload, ofRun, advantage, figure, opponent, sides, barWords, unitOf };
})();
