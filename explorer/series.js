// Finds series in a record.
"use strict";

const Series = (() => {
    const fits = (series, chosen) =>
        Object.entries(series.case).every(([name, value]) => !(name in chosen) || chosen[name] === value);

    // Series of a measure whose case matches the chosen values; the other values may be anything.
    const among = (all, workload, measure, chosen, stores) =>
        all.filter(
            (series) =>
                series.workload === workload.name &&
                series.measure === measure &&
                fits(series, chosen) &&
                (stores === undefined || stores.has(series.store)),
        );

    const of = (record, ...wanted) => among(record.series, ...wanted);
    const histograms = (record, ...wanted) => among(record.histograms, ...wanted);

    // All series that a view may draw, whatever is chosen.
    function ofView(record, workload, view) {
        const isDistribution = view.kind === "distribution" || view.kind === "percentiles";
        const all = isDistribution ? record.histograms : record.series;
        const measures = view.measures ?? [view.measure];
        return all.filter((series) => series.workload === workload.name && measures.includes(series.measure));
    }

    // Of all series whose case is this one, the one of a store.
    function exact(record, workload, measure, wanted, store) {
        const size = Object.keys(wanted).length;
        return record.series.find(
            (series) =>
                series.workload === workload.name &&
                series.measure === measure &&
                series.store === store &&
                Object.keys(series.case).length === size &&
                fits(series, wanted),
        );
    }

    return { of, histograms, ofView, exact };
})();
