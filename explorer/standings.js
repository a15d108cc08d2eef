// The first picture: Eyewall against the best other store, in every case of every workload.
"use strict";

const Standings = (() => {
    const LEGEND =
        "Each mark is one measured case. \u25cf right of 1: Eyewall is better than the best other store. " +
        "\u25c7 left of 1: another store is better. \u25a0 no clear difference.";
    const WORDS = { won: "ahead", even: "no clear difference", lost: "behind" };

    // The least favourable comparison with another store for each case: {one, better}.
    function of(all, stores) {
        const found = new Map();
        for (const one of all) {
            if (!(one.standing in WORDS)) continue;
            const better = Comparisons.advantage(one, stores);
            if (better === null) continue;
            const { comparison, isTurned, workload } = one;
            const ours = isTurned ? comparison.to : comparison.of;
            const key = JSON.stringify([workload.name, comparison.measure, Object.entries(comparison.case).sort(), ours]);
            if (!found.has(key) || better.median < found.get(key).better.median) found.set(key, { one, better });
        }
        return [...found.values()];
    }

    function counted(standings) {
        const count = { won: 0, even: 0, lost: 0 };
        for (const { one } of standings) count[one.standing] += 1;
        return count;
    }

    // The text beside a workload's row.
    function told(workload, standings) {
        if (workload.skipped !== undefined) return "not run";
        if (standings.length === 0) return "no ratio to another store";
        const count = counted(standings);
        return Object.keys(WORDS)
            .filter((standing) => count[standing] > 0)
            .map((standing) => `${count[standing]} ${WORDS[standing]}`)
            .join(", ");
    }

    // A row for each workload, a mark for each case.
    function figure(standings, run) {
        const rows = run.workloads.map((workload) => ({
            workload,
            standings: standings.filter(({ one }) => one.workload === workload),
        }));
        const names = rows.map(({ workload, standings: its }) => `${workload.title}\n${told(workload, its)}`);
        const option = (look, place, scale = "log") => {
            const values = [1, ...standings.map(({ better }) => better.median)];
            const ticks = Axes.ticksFor(values, scale, place.width < Frames.NARROW ? 4 : 8);
            const x = Axes.axis(
                scale,
                ticks,
                "times better than the best other store",
                (value) => `${Words.digits(value)}x`,
                look,
            );
            const blue = Looks.isDark() && !place.isFile ? "#56b4e9" : "#0072b2";
            const marks = {
                won: { symbol: "circle", symbolSize: 10, itemStyle: { color: blue, opacity: 0.7 } },
                even: { symbol: "rect", symbolSize: 8, itemStyle: { color: look.quiet, opacity: 0.9 } },
                lost: {
                    symbol: "diamond",
                    symbolSize: 13,
                    itemStyle: { color: look.paper, opacity: 1, borderWidth: 2.5, borderColor: look.missed },
                },
            };
            const series = Object.entries(marks).map(([standing, mark]) => ({
                type: "scatter",
                animation: false,
                z: standing === "lost" ? 5 : 4,
                ...mark,
                data: rows.flatMap(({ workload, standings: its }, index) =>
                    its
                        .filter(({ one }) => one.standing === standing)
                        .map(({ one, better }) =>
                            Frames.point([x.place(better.median), index], {
                                name: `${one.measure.title}, against ${Comparisons.opponent(one)}`,
                                at: Words.joined(workload.title, Words.caseOf(workload, one.comparison.case)),
                                figure: `${Words.spread(better, "x")} better`,
                            }),
                        ),
                ),
            }));
            const made = Frames.categories(look, place, x, names, series);
            made.series[0].markLine = {
                silent: true,
                symbol: "none",
                animation: false,
                label: { show: false },
                lineStyle: { color: look.text, type: "solid", width: 1.5 },
                data: [{ xAxis: x.place(1) }],
            };
            return made;
        };
        return {
            height: (place) => 80 + Frames.rowHeight(place, 2) * rows.length,
            columns: ["workload", "measure", "case", "against", "times better", "min", "max", "verdict"],
            rows: standings.map(({ one, better }) => [
                one.workload.title,
                one.measure.title,
                Words.caseOf(one.workload, one.comparison.case),
                Comparisons.opponent(one),
                better.median,
                better.min,
                better.max,
                WORDS[one.standing],
            ]),
            option,
        };
    }

    return { LEGEND, of, counted, figure };
})();
