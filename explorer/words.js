// Formats numbers and cases for readers.
"use strict";

const Words = (() => {
    // Units that take a prefix, and their symbols.
    const PREFIXED = { "1/s": "/s", "s": "s", "B": "B", "B/s": "B/s" };
    const LARGE = ["", "k", "M", "G", "T"];
    const SMALL = ["", "m", "\u00b5", "n"];
    const NARROW = "\u00a0";

    function digits(value) {
        const size = Math.abs(value);
        if (size >= 1000) return Math.round(value).toLocaleString("en-US");
        if (size === 0) return "0";
        // Three significant digits, without trailing zeros.
        return String(Number(value.toPrecision(3)));
    }

    // A figure with its unit.
    function figure(value, unit) {
        if (value === null || value === undefined || Number.isNaN(value)) return "";
        if (unit === undefined || unit === "") return digits(value);
        if (!(unit in PREFIXED)) return digits(value) + (unit === "x" ? "x" : NARROW + unit);
        let step = 0;
        let scaled = value;
        while (Math.abs(scaled) >= 999.5 && step < LARGE.length - 1) {
            scaled /= 1000;
            step += 1;
        }
        if (unit === "s") {
            // Thousands of seconds are seconds still.
            if (step > 0) return digits(value) + NARROW + "s";
            while (scaled !== 0 && Math.abs(scaled) < 0.9995 && step > 1 - SMALL.length) {
                scaled *= 1000;
                step -= 1;
            }
        }
        const prefix = step >= 0 ? LARGE[step] : SMALL[-step];
        return digits(scaled) + NARROW + prefix + PREFIXED[unit];
    }

    // A median with its range.
    function spread(spread_, unit) {
        if (spread_ === null) return "";
        if (spread_.min === spread_.max) return figure(spread_.median, unit);
        return `${figure(spread_.median, unit)} (${figure(spread_.min, unit)} to ${figure(spread_.max, unit)})`;
    }

    function parameter(workload, name, value) {
        const defined = workload.parameters[name];
        if (typeof value !== "number") return String(value);
        return defined.unit === undefined ? digits(value) : figure(value, defined.unit);
    }

    function caseOf(workload, chosen) {
        return Object.entries(chosen)
            .map(([name, value]) =>
                typeof value === "number" && !workload.parameters[name].unit
                    ? `${workload.parameters[name].title} ${digits(value)}`
                    : parameter(workload, name, value),
            )
            .join(", ");
    }

    // Words that say where one is, none of them twice.
    const joined = (...words) => [...new Set(words)].filter((word) => word !== "").join(": ");

    return { digits, figure, spread, parameter, caseOf, joined };
})();
