// The figures: from series of a record to the options of the chart library, and to the rows of a table that says the same.
//
// A figure is {height(place), columns, rows, option(look, place)}; it is null where there is nothing to draw. `place` has the width
// in pixels, whether it is drawn for a file, which has to bring its legend along, and whether lines have labels at their ends.
"use strict";

const Figures = (() => {
    const { HEIGHT, NARROW, tooltip, line, whiskers, point, framed, labelShifts, endLabel, marker, rowHeight, categories } =
        Frames;
    const NANO = 1e-9;
    const MARKED = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

    // A figure whose tooltip tells of all stores at one place of the axis.
    function alongAxis(look, place, x, y, series, names) {
        return {
            ...framed(look, place, x, y, series, names),
            tooltip: {
                ...tooltip(look, (a, b) => b.rank - a.rank),
                trigger: "axis",
                axisPointer: { type: "line", snap: true },
            },
        };
    }

    // Median over a parameter of numbers, a line per store.
    function curve({ record, workload, view, chosen, scales, stores, looks }) {
        const measure = workload.measures[view.measure];
        const free = Object.fromEntries(Object.entries(chosen).filter(([name]) => name !== view.x));
        const found = new Map();
        for (const series of Series.of(record, workload, view.measure, free, stores)) {
            const spread = Statistics.spread([...Statistics.byRepetition(series).values()]);
            if (!found.has(series.store)) found.set(series.store, []);
            found.get(series.store).push({ x: series.case[view.x], spread });
        }
        if (found.size === 0) return null;
        for (const points of found.values()) points.sort((a, b) => a.x - b.x);
        const names = [...looks.keys()].filter((name) => found.has(name));
        const rows = names.flatMap((name) =>
            found.get(name).map(({ x, spread }) => [name, x, spread.median, spread.min, spread.max, spread.count]),
        );
        const parameter = workload.parameters[view.x];
        const columns = [
            "store",
            parameter.title + (parameter.unit ? ` [${parameter.unit}]` : ""),
            `median [${measure.unit}]`,
            "min",
            "max",
            "repetitions",
        ];
        const option = (look, place) => {
            const at = [...new Set(rows.map((row) => row[1]))].sort((a, b) => a - b);
            const ticks = scales.x === "log" || at.length <= 4 ? at : Axes.ticksFor(at, "linear", 6);
            const x = Axes.axis(
                scales.x,
                ticks.length > 1 ? ticks : [ticks[0] * 0.9, ticks[0], ticks[0] * 1.1],
                columns[1],
                Words.digits,
                look,
            );
            const heights = rows.flatMap((row) => [row[2], row[3], row[4]]);
            const y = Axes.axis(
                scales.y,
                Axes.ticksFor(heights, scales.y, 6),
                measure.title,
                (value) => Words.figure(value, measure.unit),
                look,
            );
            const usable = (name) => found.get(name).filter((one) => y.takes(one.spread.median) && x.takes(one.x));
            const shifts = place.labels
                ? labelShifts(
                      names
                          .filter((name) => usable(name).length > 0)
                          .map((name) => [name, y.place(usable(name).at(-1).spread.median)]),
                      y,
                      HEIGHT,
                  )
                : null;
            const series = names.flatMap((name) => {
                const points = usable(name);
                const data = points.map((one) =>
                    point([x.place(one.x), y.place(one.spread.median)], {
                        name,
                        at: `${parameter.title} ${Words.parameter(workload, view.x, one.x)}`,
                        figure: Words.spread(one.spread, measure.unit),
                        rank: one.spread.median,
                    }),
                );
                const ranges = points
                    .filter((one) => y.takes(one.spread.min))
                    .map((one) => [
                        [x.place(one.x), y.place(one.spread.min)],
                        [x.place(one.x), y.place(one.spread.max)],
                    ]);
                return [
                    line(looks.get(name), data, {
                        name,
                        z: 3,
                        ...marker(looks.get(name)),
                        ...endLabel(looks.get(name), name, shifts),
                    }),
                    whiskers(looks.get(name), ranges),
                ];
            });
            return alongAxis(look, place, x, y, series, names);
        };
        return { height: () => HEIGHT, columns, rows, option };
    }

    // The stores in one case, the best first.
    function dots({ record, workload, view, chosen, scales, stores, looks }) {
        const measure = workload.measures[view.measure];
        const found = Series.of(record, workload, view.measure, chosen, stores).map((series) => ({
            name: series.store,
            spread: Statistics.spread([...Statistics.byRepetition(series).values()]),
        }));
        if (found.length === 0) return null;
        const sign = measure.better === "lower" ? 1 : -1;
        found.sort((a, b) => sign * (a.spread.median - b.spread.median));
        const rows = found.map(({ name, spread }) => [name, spread.median, spread.min, spread.max, spread.count]);
        const columns = ["store", `median [${measure.unit}]`, "min", "max", "repetitions"];
        const option = (look, place) => {
            const values = found.flatMap(({ spread }) => [spread.median, spread.min, spread.max]);
            const ticks = Axes.ticksFor(values, scales.y, place.width < NARROW ? 3 : 6);
            const x = Axes.axis(scales.y, ticks, measure.title, (value) => Words.figure(value, measure.unit), look);
            const shown = found.filter(({ spread }) => x.takes(spread.median));
            const series = shown.flatMap(({ name, spread }, index) => {
                const own = looks.get(name);
                const range = x.takes(spread.min)
                    ? [
                          [
                              [x.place(spread.min), index],
                              [x.place(spread.max), index],
                          ],
                      ]
                    : [];
                return [
                    {
                        type: "scatter",
                        name,
                        symbol: own.marker,
                        symbolSize: own.size + 4,
                        itemStyle: { color: own.colour, opacity: 1 },
                        z: 3,
                        animation: false,
                        data: [
                            point([x.place(spread.median), index], {
                                name,
                                at: measure.title,
                                figure: Words.spread(spread, measure.unit),
                            }),
                        ],
                        label: {
                            show: place.width >= NARROW,
                            position: [0, -15],
                            color: look.text,
                            formatter: () => Words.figure(spread.median, measure.unit),
                        },
                    },
                    whiskers({ ...own, width: 2 }, range),
                ];
            });
            // Above a row there is no place for two texts.
            const label = ({ name, spread }) =>
                place.width < NARROW ? `${name}: ${Words.figure(spread.median, measure.unit)}` : name;
            return categories(look, place, x, shown.map(label), series);
        };
        return { height: (place) => 90 + rowHeight(place, 1) * found.length, columns, rows, option };
    }

    // Samples along time or batches; the first repetition strongly, the others faintly.
    function along({ record, workload, view, chosen, scales, stores, looks }) {
        const measure = workload.measures[view.measure];
        const found = Series.of(record, workload, view.measure, chosen, stores);
        if (found.length === 0) return null;
        const names = [...looks.keys()].filter((name) => found.some((series) => series.store === name));
        const title = measure.along.title + (measure.along.unit ? ` [${measure.along.unit}]` : "");
        const columns = ["store", "repetition", title, `${measure.title} [${measure.unit}]`];
        const rows = found.flatMap((series) =>
            series.values.map(([repetition, value, at]) => [series.store, repetition, at, value]),
        );
        const option = (look, place) => {
            const x = Axes.axis(
                scales.x,
                Axes.ticksFor(
                    rows.map((row) => row[2]),
                    scales.x,
                    place.width < NARROW ? 4 : 8,
                ),
                title,
                Words.digits,
                look,
            );
            const y = Axes.axis(
                scales.y,
                Axes.ticksFor(
                    rows.map((row) => row[3]),
                    scales.y,
                    6,
                ),
                measure.title,
                (value) => Words.figure(value, measure.unit),
                look,
            );
            const usable = (values, repetition) =>
                values.filter(([of, value, at]) => of === repetition && x.takes(at) && y.takes(value));
            const last = ({ values }) => usable(values, values[0][0]).at(-1);
            const shifts = place.labels
                ? labelShifts(
                      found.filter((one) => last(one) !== undefined).map((one) => [one.store, y.place(last(one)[1])]),
                      y,
                      HEIGHT,
                  )
                : null;
            const series = found.flatMap(({ store, values }) =>
                [...new Set(values.map(([repetition]) => repetition))].map((repetition, order) => {
                    const own = looks.get(store);
                    const points = usable(values, repetition);
                    // A marker here and there is enough to tell the lines apart.
                    const every = Math.max(1, Math.round(points.length / 8));
                    const data = points.map(([, value, at], index) =>
                        point(
                            [x.place(at), y.place(value)],
                            {
                                name: store,
                                at: `${measure.along.title} ${Words.figure(at, measure.along.unit)}`,
                                figure: Words.figure(value, measure.unit),
                                rank: value,
                            },
                            order === 0 && index % every === 0,
                        ),
                    );
                    const first = { ...marker(own), ...endLabel(own, store, shifts), z: 3 };
                    return line(
                        order === 0 ? own : { ...own, width: 1 },
                        data,
                        order === 0
                            ? { name: store, ...first }
                            : { lineStyle: { color: own.colour, width: 1, opacity: 0.45 }, silent: true },
                    );
                }),
            );
            return {
                ...framed(look, place, x, y, series, names),
                tooltip: { ...tooltip(look, (a, b) => b.rank - a.rank), trigger: "axis", axisPointer: { type: "line" } },
            };
        };
        return { height: () => HEIGHT, columns, rows, option };
    }

    const percent = (share) => `${Number((share * 100).toPrecision(7))}\u00a0%`;

    // Latency by percentile, all repetitions together.
    function distribution({ record, workload, view, chosen, scales, stores, looks }) {
        const measure = workload.measures[view.measure];
        const found = new Map(
            Series.histograms(record, workload, view.measure, chosen, stores).map((histogram) => [
                histogram.store,
                Statistics.distribution(histogram.buckets),
            ]),
        );
        if (found.size === 0) return null;
        const names = [...looks.keys()].filter((name) => found.has(name));
        const columns = ["store", "share of the values at or below", "latency [s]"];
        const rows = names.flatMap((name) =>
            found.get(name).points.map(({ to, bound }) => [name, to, Number((bound * NANO).toPrecision(12))]),
        );
        const xScale = scales.x === "log" ? "tail" : "linear";
        const option = (look, place) => {
            const longest = Math.max(...names.map((name) => found.get(name).total));
            const shares =
                xScale === "tail" ? [0, ...MARKED.filter((share) => share < 1 - 1 / longest)] : [0, 0.25, 0.5, 0.75, 1];
            const last = 1 - 1 / longest;
            const ticks = xScale === "tail" && last > shares[shares.length - 1] ? [...shares, last] : shares;
            const x = Axes.axis(
                xScale,
                ticks,
                "share of the operations at or below",
                (share) => (share === last && !MARKED.includes(last) ? "" : percent(share)),
                look,
            );
            const y = Axes.axis(
                scales.y,
                Axes.ticksFor(
                    rows.map((row) => row[2]),
                    scales.y,
                    7,
                ),
                measure.title,
                (value) => Words.figure(value, "s"),
                look,
            );
            const shifts = place.labels
                ? labelShifts(
                      names.map((name) => [name, y.place(found.get(name).points.at(-1).bound * NANO)]),
                      y,
                      HEIGHT,
                  )
                : null;
            const series = names.flatMap((name) => {
                const { points, total } = found.get(name);
                const own = looks.get(name);
                const marked = new Set(MARKED.map((share) => points.findIndex(({ to }) => to >= share)));
                const data = points.map(({ from, to, bound }, index) => {
                    // The last bucket ends at 100 %, which a tail never reaches.
                    const share = Math.min(to, Math.max(from, 1 - 1 / total));
                    const latency = bound * NANO;
                    return point(
                        [x.place(share), y.place(latency)],
                        {
                            name,
                            at: measure.title,
                            figure: `${Words.figure(latency, "s")} at ${percent(share)}`,
                            rank: latency,
                        },
                        marked.has(index),
                    );
                });
                return line(own, data, { name, z: 3, ...marker(own), ...endLabel(own, name, shifts) });
            });
            return alongAxis(look, place, x, y, series, names);
        };
        return { height: () => HEIGHT, columns, rows, option };
    }

    const KINDS = { curve, dots, line: along, distribution };

    return { make: (context) => KINDS[context.view.kind](context), isKind: (kind) => kind in KINDS };
})();
