"""Rows of samples, their medians and bars; a record of them as JSON and as a table."""
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess


def spread(samples):
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}


class Row:
    """A case: the samples of each contender, in the order of the repetitions."""

    def __init__(self, section, case, unit):
        self.section, self.case, self.unit = section, case, unit
        self.samples = {}
        self.judgements = []

    def add(self, contender, sample):
        self.samples.setdefault(contender, []).append(sample)

    def judge(self, what, values, at_least=None, at_most=None, aim=None):
        """Holds the median of some values to a bar, or only shows them."""
        judged = {"what": what, **spread(values), "bar": None, "aim": aim, "met": None}
        if at_least is not None:
            judged["bar"], judged["met"] = {"at_least": at_least}, judged["median"] >= at_least
        if at_most is not None:
            judged["bar"], judged["met"] = {"at_most": at_most}, judged["median"] <= at_most
        self.judgements.append(judged)

    def judge_ratio(self, words, others=None, best=max, **bar):
        """Ours over the best of some others, or of all of them, within each repetition."""
        names = [name for name in self.samples if name != "eyewall" and (others is None or name in others)]
        if not names or "eyewall" not in self.samples:
            return
        theirs = [best(values) for values in zip(*(self.samples[name] for name in names))]
        ratios = [our / their for our, their in zip(self.samples["eyewall"], theirs) if their > 0]
        if ratios:
            self.judge(f"eyewall / {words}", ratios, **bar)

    def as_json(self):
        series = [{"store": name, "samples": samples, **spread(samples)} for name, samples in self.samples.items()]
        return {"section": self.section, "case": self.case, "unit": self.unit, "series": series,
                "judgements": self.judgements}


def machine():
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory_kib = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    return {
        "cpu": cpu[1] if cpu else platform.machine(), "cores": os.cpu_count(), "memory_mib": memory_kib >> 10,
        "kernel": f"linux {platform.release()}", "load_at_start": round(os.getloadavg()[0], 2),
    }


def commit():
    """The commit of the sources, and whether they differ from it."""
    def git(*arguments):
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if git("status", "--porcelain") else "")


def write(folder, record, rows, suffix):
    """Both forms of a record; their paths."""
    record = {"schema": 1, "date": datetime.date.today().isoformat(), **record, "rows": [row.as_json() for row in rows]}
    words = re.sub(r"\(R\)|\(TM\)|processor|cpu|@.*", " ", record["machine"]["cpu"], flags=re.IGNORECASE)
    name = "-".join([*re.findall(r"[a-z0-9]+", words.lower()), f"{record['machine']['cores']}cores"])
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"serve-{suffix}{record['date']}-{name}"
    as_json, as_table = base.with_suffix(".json"), base.with_suffix(".md")
    as_json.write_text(json.dumps(record, indent=2) + "\n")  # tidy: word, the library's
    as_table.write_text(table(record))
    return as_json, as_table


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def figure(spread_of):
    return f"{number(spread_of['median'])} ({number(spread_of['min'])}..{number(spread_of['max'])})"


def judgement(judged):
    text = f"{judged['what']}: {figure(judged)}"
    if judged["bar"] is not None:
        (kind, bar), = judged["bar"].items()
        text += f", bar {'>=' if kind == 'at_least' else '<='} {bar:g}"
        if judged["aim"] is not None:
            text += f", aim {judged['aim']:g}"
        text += ": met" if judged["met"] else ": **missed**"
    return text


def table(record):
    """A record for people."""
    told = record["machine"]
    judged = [j for row in record["rows"] for j in row["judgements"] if j["bar"] is not None]
    lines = [
        f"# Server benchmark, {record['date']}{', a smoke run' if record['quick'] else ''}", "",
        f"{told['cpu']}, {told['cores']} cores, {told['memory_mib']} MiB, {told['kernel']}; commit {record['commit']}.",
        f"Server on core {record['cores']['server']}, client and origin on core {record['cores']['client']}. Medians of "
        f"{record['repetitions']} interleaved repetitions, min..max in brackets. How and with what bias: METHODOLOGY.md "
        "and BIAS.md.", "",
        "; ".join(record["versions"].values()) + ".", "",
        f"Bars met: {sum(j['met'] for j in judged)} of {len(judged)}.", "",
    ]
    if told["load_at_start"] > 0.5:
        lines += [f"- The machine was busy when the run began: load {told['load_at_start']}.", ""]
    if record["notes"]:
        lines += [*(f"- {note}" for note in record["notes"]), ""]
    section = None
    for row in record["rows"]:
        if row["section"] != section:
            section = row["section"]
            lines += [f"## {section}", "", "| case | unit | figures | comparison |", "|---|---|---|---|"]
        figures = "<br>".join(f"{series['store']} {figure(series)}" for series in row["series"])
        compared = "<br>".join(judgement(judged) for judged in row["judgements"])
        lines.append(f"| {row['case']} | {row['unit']} | {figures} | {compared} |")
        following = record["rows"].index(row) + 1
        if following == len(record["rows"]) or record["rows"][following]["section"] != section:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"
