"""A record as a page of Markdown for people."""
from judged import PERCENTILES, judgements, percentile, spread

# Units that take a prefix, and what stands behind it.
PREFIXED = {"1/s": "/s", "s": "s", "B": "B", "B/s": "B/s"}
LARGE, SMALL = ("", "k", "M", "G", "T"), ("", "m", "µ", "n")


def number(value):
    """Three digits that count, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def figure(value, unit):
    """A figure with its unit."""
    if unit not in PREFIXED:
        return number(value) + ("x" if unit == "x" else f" {unit}")
    step = 0
    while abs(value) >= 999.5 and unit != "s" and step < len(LARGE) - 1:
        value, step = value / 1000, step + 1
    while unit == "s" and value != 0 and abs(value) < 0.9995 and step > 1 - len(SMALL):
        value, step = value * 1000, step - 1
    return f"{number(value)} {LARGE[step] if step >= 0 else SMALL[-step]}{PREFIXED[unit]}"


def ranged(found, unit):
    if found.min == found.max:
        return figure(found.median, unit)
    return f"{figure(found.median, unit)} ({figure(found.min, unit)} to {figure(found.max, unit)})"


def case_words(workload, case):
    """A case as people read it."""
    def words(name, value):
        parameter = workload["parameters"][name]
        if isinstance(value, str):
            return value
        return figure(value, parameter["unit"]) if "unit" in parameter else f"{parameter['title']} {number(value)}"

    return ", ".join(words(name, value) for name, value in case.items())


def table(record):
    """The whole page."""
    run, machine = record.run, record.run["machine"]
    judged = [(workload, judgement) for workload in run["workloads"] for judgement in judgements(record, workload)]
    bars = [judgement for _, judgement in judged if judgement.is_met is not None]
    state = [words for words, is_so in (("a quick run: too short to be quoted", run["kind"] == "quick"),
                                        ("not complete", not run["complete"])) if is_so]
    lines = [
        f"# {run['title']}{''.join(f' ({words})' for words in state)}", "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib']} MiB, {machine['kernel']}; commit {run['commit']}; "
        f"{run['began']}. Medians of the repetitions, the smallest and largest in brackets.", "",
    ]
    versions = "; ".join(f"{name}: {store['version']}" for name, store in run["stores"].items() if store["version"])
    lines += [f"{versions}.", ""] if versions else []
    lines += [f"Bars met: {sum(judgement.is_met for judgement in bars)} of {len(bars)}.", ""] if bars else []
    absent = [f"- {name} is absent: {store['absent']}" for name, store in run["stores"].items() if "absent" in store]
    if machine["load_at_start"] is not None and machine["load_at_start"] > 0.5:
        absent.append(f"- The machine was busy when the run began: load {machine['load_at_start']}.")
    told = [*absent, *(f"- {note}" for note in run["notes"])]
    lines += [*told, ""] if told else []
    for workload in run["workloads"]:
        lines += _workload(record, workload, [judgement for of, judgement in judged if of is workload])
    return "\n".join(lines).rstrip("\n") + "\n"


def _workload(record, workload, judged):
    lines = [f"## {workload['title']}", "", workload["about"], ""]
    if "skipped" in workload:
        return [*lines, f"Skipped: {workload['skipped']}", ""]
    if judged:
        lines += ["| comparison | case | figure | bar |", "|---|---|---|---|", *(_judgement(workload, one) for one in judged), ""]
    for name, measure in workload["measures"].items():
        series = {key[2:]: repetitions for key, repetitions in record.samples.items() if key[:2] == (workload["name"], name)}
        if series:
            lines += _medians(workload, measure, series)
        distributions = {key[2:]: repetitions for key, repetitions in record.histograms.items()
                         if key[:2] == (workload["name"], name)}
        if distributions:
            lines += _percentiles(workload, measure, distributions)
    return lines


def _judgement(workload, judged):
    comparison, measure = judged.comparison, workload["measures"][judged.comparison["measure"]]
    words = comparison["of"]
    if comparison["to"]:
        where = f" ({case_words(workload, comparison['to_case'])})" if "to_case" in comparison else ""
        sign = "/" if comparison["how"] == "ratio" else "-"
        words += f" {sign} {comparison.get('words', ' or '.join(comparison['to']))}{where}"
    bar = ""
    if comparison["bar"] is not None:
        (kind, value), = comparison["bar"].items()
        aim = "" if comparison["aim"] is None else f", aim {comparison['aim']:g}"
        bar = f"{'>=' if kind == 'at_least' else '<='} {value:g}{aim}: {'met' if judged.is_met else '**missed**'}"
    unit = "x" if comparison["how"] == "ratio" else measure["unit"]
    return f"| {measure['title']}: {words} | {case_words(workload, comparison['case'])} | {ranged(judged.spread, unit)} | {bar} |"


def _medians(workload, measure, series):
    """A row for each case, a column for each store; of what goes along something, of all samples of a repetition."""
    stores, cases = _axes(series)
    lines = [f"### {measure['title']}", "", f"| case | {' | '.join(stores)} |", f"|---|{'---|' * len(stores)}"]
    for case in cases:
        cells = []
        for store in stores:
            repetitions = series.get((case, store), {})
            found = spread([value for samples in repetitions.values() for value, _ in samples])
            cells.append(ranged(found, measure["unit"]) if found else "")
        lines.append(f"| {case_words(workload, dict(case))} | {' | '.join(cells)} |")
    return [*lines, ""]


def _percentiles(workload, measure, distributions):
    """A row for each case and store: medians of what the repetitions say."""
    stores, cases = _axes(distributions)
    columns = ["largest" if percent == 100 else f"p{str(percent).replace('.', '')}" for percent in PERCENTILES]
    lines = [f"### {measure['title']}, by percentile", "", f"| case | store | {' | '.join(columns)} |",
             f"|---|---|{'---|' * len(columns)}"]
    for case in cases:
        for store in stores:
            repetitions = distributions.get((case, store))
            if repetitions:
                found = [spread([percentile(buckets, percent) for buckets in repetitions.values()]) for percent in PERCENTILES]
                cells = " | ".join(figure(one.median / 1e9, "s") for one in found)
                lines.append(f"| {case_words(workload, dict(case))} | {store} | {cells} |")
    return [*lines, ""]


def _axes(series):
    """Stores and cases, in the order of their samples."""
    return list(dict.fromkeys(store for _, store in series)), list(dict.fromkeys(case for case, _ in series))
