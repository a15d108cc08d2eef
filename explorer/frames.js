// What all figures share: the frame with its axes, points, ranges, legends and the labels at the ends of lines.
"use strict";

const Frames = (() => {
    // Pixels, below which a figure is laid out for a phone.
    const NARROW = 560;

    function tooltip(look, rows) {
        return {
            confine: true,
            backgroundColor: look.paper,
            borderColor: look.line,
            textStyle: { color: look.text, fontSize: 13 },
            formatter: (params) => {
                const list = (Array.isArray(params) ? params : [params]).filter((param) => param.data?.told);
                if (list.length === 0) return "";
                const told = new Map(list.map((param) => [param.data.told.name, param.data.told]));
                const table = Elements.make("div", {}, Elements.make("strong", {}, list[0].data.told.at));
                for (const { name, figure } of [...told.values()].sort(rows)) {
                    table.append(Elements.make("div", {}, `${name}: ${figure}`));
                }
                return table;
            },
        };
    }

    const line = (look, data, more) => ({
        type: "line",
        data,
        symbol: "none",
        animation: false,
        color: look.colour,
        lineStyle: { color: look.colour, width: look.width, type: look.dash.length > 0 ? look.dash : "solid" },
        itemStyle: { color: look.colour },
        emphasis: { disabled: true },
        ...more,
    });

    // Ranges are lines of their own, with a gap between each and the next.
    const whiskers = (look, ranges) =>
        line(
            { ...look, dash: [], width: 1.5 },
            ranges.flatMap(([from, to]) => [from, to, ["-", "-"]]),
            { silent: true, z: 1, tooltip: { show: false } },
        );

    // `isMarked` is false for a point of a line that has no marker of its own.
    const point = (place, told, isMarked = true) =>
        isMarked ? { value: place, told } : { value: place, told, symbol: "none" };

    function legend(look, names, place) {
        if (!place.isFile) return { show: false };
        return { show: true, bottom: 8, data: names, textStyle: { color: look.text }, itemWidth: 34, type: "plain" };
    }

    // What all figures with two axes share.
    function framed(look, place, x, y, series, names) {
        const isNarrow = place.width < NARROW;
        x.nameGap = 30;
        y.nameGap = isNarrow ? 46 : 58;
        if (isNarrow) y.nameTextStyle = { ...y.nameTextStyle, align: "center" };
        return {
            animation: false,
            backgroundColor: look.paper,
            aria: { enabled: true },
            textStyle: { fontFamily: "system-ui, sans-serif" },
            grid: {
                outerBoundsMode: "none",
                left: isNarrow ? 64 : 84,
                right: isNarrow ? 18 : place.labels ? 170 : 30,
                top: place.isFile ? 80 : TOP,
                bottom: place.isFile ? 60 + 24 * Math.ceil(names.length / 4) : BOTTOM,
            },
            xAxis: x,
            yAxis: y,
            series,
            legend: legend(look, names, place),
            tooltip: { show: false },
        };
    }

    const HEIGHT = 440;
    const TOP = 18;
    const BOTTOM = 56;
    const LABEL = 15;

    // How far each line's label has to move, so that none covers another. `ends` are [name, place on the axis].
    function labelShifts(ends, y, height) {
        const pixel = (end) => ((y.max - end) / (y.max - y.min)) * (height - TOP - BOTTOM);
        const sorted = ends.map(([name, end]) => ({ name, wanted: pixel(end) })).sort((a, b) => a.wanted - b.wanted);
        // Groups of labels that touch are centred on where they would stand.
        let groups = sorted.map((one) => ({ of: [one], centre: one.wanted }));
        for (let index = 1; index < groups.length;) {
            const [before, after] = [groups[index - 1], groups[index]];
            if (after.centre - before.centre >= ((before.of.length + after.of.length) / 2) * LABEL) {
                index += 1;
                continue;
            }
            const of = [...before.of, ...after.of];
            const centre = of.reduce((sum, { wanted }) => sum + wanted, 0) / of.length;
            groups = [...groups.slice(0, index - 1), { of, centre }, ...groups.slice(index + 1)];
            index = Math.max(1, index - 1);
        }
        return new Map(
            groups.flatMap(({ of, centre }) =>
                of.map(({ name, wanted }, index) => [name, centre + (index - (of.length - 1) / 2) * LABEL - wanted]),
            ),
        );
    }

    const endLabel = (look, name, shifts) =>
        shifts === null
            ? {}
            : {
                  endLabel: {
                      show: true,
                      formatter: () => name,
                      color: look.colour,
                      distance: 8,
                      fontSize: 12,
                      offset: [0, shifts.get(name) ?? 0],
                  },
              };

    const marker = (look) => ({ symbol: look.marker, symbolSize: look.size, showAllSymbol: true });

    // On a narrow screen there is no place beside the rows: each name stands above its own.
    const ABOVE = (place) => ({
        inside: true,
        margin: 0,
        width: place.width - 30,
        verticalAlign: "bottom",
        padding: [0, 0, 14, 0],
    });
    const rowHeight = (place, lines) => (place.width < NARROW ? 42 + 15 * lines : 46);

    // A figure with a row for each of some names.
    function categories(look, place, x, names, series) {
        const isNarrow = place.width < NARROW;
        const y = {
            type: "category",
            inverse: true,
            data: names,
            axisLine: { show: false },
            axisTick: { show: false },
            splitLine: { show: false },
            z: 6,
            axisLabel: {
                color: look.text,
                fontSize: 12,
                lineHeight: 15,
                interval: 0,
                overflow: "truncate",
                ...(isNarrow ? ABOVE(place) : { width: 290 }),
            },
        };
        const option = framed(look, place, x, y, series, []);
        option.grid.left = isNarrow ? 12 : 310;
        option.grid.right = isNarrow ? 50 : 70;
        option.legend = { show: false };
        return { ...option, tooltip: { ...tooltip(look, () => 0), trigger: "item" } };
    }

    return { HEIGHT, NARROW, tooltip, line, whiskers, point, framed, labelShifts, endLabel, marker, rowHeight, categories };
})();
