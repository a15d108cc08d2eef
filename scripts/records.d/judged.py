"""What the samples of a record come to: medians and ranges, percentiles, and comparisons with their bars (bench/RECORD.md)."""
import statistics
from typing import NamedTuple, Optional

from form import case_key


# Of a distribution; 100 is the largest value.
PERCENTILES = (50, 90, 99, 99.9, 99.99, 100)


class Spread(NamedTuple):
    """The median of what repetitions say, and its range."""
    median: float
    min: float
    max: float


class Judgement(NamedTuple):
    """A comparison with its figures; whether its bar is met, None without one."""
    comparison: dict
    spread: Spread
    is_met: Optional[bool]


def spread(values):
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def by_repetition(series):
    """The figure of each repetition of a series, as form.Record has them: the median of its samples."""
    return {repetition: statistics.median(value for value, _ in samples) for repetition, samples in series.items()}


def judgements(record, workload):
    """The comparisons of a workload that were measured, in their order."""
    found = []
    for comparison in workload["comparisons"]:
        figures = spread(_figures(record, workload, comparison))
        if figures is not None:
            found.append(Judgement(comparison, figures, _is_met(comparison["bar"], figures.median)))
    return found


def _figures(record, workload, comparison):
    """What the two sides come to, held against each other within each repetition."""
    def series(store, case):
        return by_repetition(record.samples.get((workload["name"], comparison["measure"], case_key(case), store), {}))

    ours = series(comparison["of"], comparison["case"])
    if comparison["how"] == "value":
        return list(ours.values())
    theirs = [series(store, comparison.get("to_case", comparison["case"])) for store in comparison["to"]]
    theirs = [their for their in theirs if their]
    best = min if workload["measures"][comparison["measure"]]["better"] == "lower" else max
    figures = []
    for repetition, our in ours.items():
        # A single sample is a constant.
        at = [next(iter(their.values())) if len(their) == 1 else their.get(repetition) for their in theirs]
        if not at or None in at:
            continue
        if comparison["how"] == "difference":
            figures.append(our - best(at))
        elif best(at) > 0:
            figures.append(our / best(at))
    return figures


def _is_met(bar, median):
    if bar is None:
        return None
    (kind, value), = bar.items()
    return median >= value if kind == "at_least" else median <= value


def percentile(buckets, percent):
    """The upper bound of the bucket in which a percentile lies, in nanoseconds."""
    total, below = sum(count for _, count in buckets), 0
    for bound, count in buckets:
        below += count
        if below * 100 >= percent * total:
            return bound
    return buckets[-1][0]
