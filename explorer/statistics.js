// Medians, ranges, comparisons and tests. bench/RECORD.md defines them.
"use strict";

const Statistics = (() => {
    function median(numbers) {
        const sorted = [...numbers].sort((a, b) => a - b);
        const middle = sorted.length >> 1;
        return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    function spread(numbers) {
        if (numbers.length === 0) return null;
        let min = Infinity;
        let max = -Infinity;
        for (const number of numbers) {
            min = Math.min(min, number);
            max = Math.max(max, number);
        }
        return { median: median(numbers), min, max, count: numbers.length };
    }

    // The figure of each repetition of a series: repetition -> median of its samples.
    function byRepetition(series) {
        const found = new Map();
        for (const [repetition, value] of series.values) {
            if (!found.has(repetition)) found.set(repetition, []);
            found.get(repetition).push(value);
        }
        return new Map([...found].map(([repetition, values]) => [repetition, median(values)]));
    }

    // Comparison of two or more series, within each repetition.
    function compared(how, of, others, better) {
        const ours = byRepetition(of);
        const theirs = others.map(byRepetition);
        const figures = [];
        for (const [repetition, our] of ours) {
            const at = theirs.map((their) => (their.size === 1 ? [...their.values()][0] : their.get(repetition)));
            if (at.some((value) => value === undefined)) continue;
            if (how === "value") {
                figures.push(our);
                continue;
            }
            const best = better === "lower" ? Math.min(...at) : Math.max(...at);
            if (how === "difference") figures.push(our - best);
            else if (best > 0) figures.push(our / best);
        }
        return spread(figures);
    }

    // Whether two samples come from the same distribution: the rank sum test, two-sided, with a correction for ties.
    // The normal approximation wants 8 samples on each side; with fewer there is no answer.
    function rankSum(left, right) {
        const [n, m] = [left.length, right.length];
        if (n < 8 || m < 8) return null;
        const all = [...left.map((value) => [value, 0]), ...right.map((value) => [value, 1])].sort((a, b) => a[0] - b[0]);
        let ranks = 0;
        let ties = 0;
        for (let start = 0; start < all.length;) {
            let end = start;
            while (end < all.length && all[end][0] === all[start][0]) end += 1;
            const rank = (start + 1 + end) / 2;
            for (let index = start; index < end; index += 1) if (all[index][1] === 0) ranks += rank;
            ties += (end - start) ** 3 - (end - start);
            start = end;
        }
        const total = n + m;
        const variance = ((n * m) / 12) * (total + 1 - ties / (total * (total - 1)));
        if (variance === 0) return 1;
        const distance = Math.max(0, Math.abs(ranks - (n * (n + 1)) / 2 - (n * m) / 2) - 0.5);
        return twoTails(distance / Math.sqrt(variance));
    }

    // Abramowitz and Stegun, 7.1.26: to seven digits.
    function twoTails(z) {
        const x = z / Math.SQRT2;
        const t = 1 / (1 + 0.3275911 * x);
        const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
        return Math.min(1, series * Math.exp(-x * x));
    }

    // Of buckets, points of the distribution: {above: the share of values beyond the bucket, bound: in nanoseconds}.
    function distribution(buckets) {
        const total = buckets.reduce((sum, [, count]) => sum + count, 0);
        let below = 0;
        const points = buckets.map(([bound, count]) => {
            const before = below;
            below += count;
            return { from: before / total, to: below / total, bound };
        });
        return { total, points };
    }

    return { median, spread, byRepetition, compared, rankSum, distribution };
})();
