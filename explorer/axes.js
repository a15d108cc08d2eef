// Axes. The scales take logarithms, and the chart library draws a plain axis, so that this code chooses the ticks.
"use strict";

const Axes = (() => {
    // A scale maps values to positions and back, and knows its ticks.
    const SCALES = {
        linear: { place: (value) => value, value: (place) => place, takes: Number.isFinite },
        log: { place: Math.log10, value: (place) => 10 ** place, takes: (value) => Number.isFinite(value) && value > 0 },
        // Latency percentiles: each step to the right has a tenth of the values above it.
        tail: { place: (share) => -Math.log10(1 - share), value: (place) => 1 - 10 ** -place, takes: (share) => share < 1 },
    };
    const STEPS = [1, 2, 5, 10];

    function linearTicks(low, high, wanted) {
        const rough = (high - low) / wanted;
        const power = 10 ** Math.floor(Math.log10(rough));
        const step = power * STEPS.find((candidate) => candidate * power >= rough * 0.999);
        const ticks = [];
        for (let count = Math.floor(low / step + 1e-9); count * step <= high + step * 0.999; count += 1) {
            ticks.push(Number((count * step).toPrecision(12)));
        }
        return ticks;
    }

    function logTicks(low, high, wanted) {
        const [from, to] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
        const decades = to - from;
        const steps = decades * 3 <= wanted * 1.5 ? [1, 2, 5] : [1];
        const every = Math.max(1, Math.ceil(decades / (wanted * 1.5)));
        const ticks = [];
        for (let power = from; power <= to; power += every) {
            for (const step of every === 1 ? steps : [1]) ticks.push(step * 10 ** power);
        }
        ticks.push(10 ** to);
        const all = [...new Set(ticks.map((tick) => Number(tick.toPrecision(6))))];
        // One tick below the smallest value and one above the largest are enough.
        const first = all.filter((tick) => tick <= low * 1.000001).length - 1;
        const last = all.findIndex((tick) => tick >= high * 0.999999);
        return all.slice(Math.max(0, first), last < 0 ? undefined : last + 1);
    }

    // Ticks around all values. A linear axis begins at zero, unless all values lie in a narrow band far from
    // it.
    function ticksFor(values, scale, wanted) {
        const usable = values.filter(SCALES[scale].takes);
        if (usable.length === 0) return [0, 1];
        let [low, high] = [Math.min(...usable), Math.max(...usable)];
        if (scale === "log") {
            if (high / low < 1.5) [low, high] = [low / 1.3, high * 1.3];
            return logTicks(low, high, wanted);
        }
        low = Math.min(0, low);
        if (low === high) high = low + 1;
        return linearTicks(low, high, wanted);
    }

    // An axis of the chart library for ticks on a scale.
    function axis(scale, ticks, title, label, look) {
        const places = ticks.map(SCALES[scale].place);
        const names = new Map(ticks.map((tick, index) => [places[index].toFixed(9), label(tick)]));
        return {
            type: "value",
            min: places[0],
            max: places[places.length - 1],
            name: title,
            nameLocation: "middle",
            nameTextStyle: { color: look.text, fontSize: 13 },
            axisLine: { show: true, onZero: false, lineStyle: { color: look.line } },
            axisTick: { show: true, customValues: places, lineStyle: { color: look.line } },
            axisLabel: {
                customValues: places,
                color: look.text,
                fontSize: 12,
                hideOverlap: true,
                formatter: (place) => names.get(place.toFixed(9)) ?? "",
            },
            splitLine: { show: true, lineStyle: { color: look.grid } },
            place: SCALES[scale].place,
            takes: SCALES[scale].takes,
        };
    }

    return { SCALES, ticksFor, axis };
})();
