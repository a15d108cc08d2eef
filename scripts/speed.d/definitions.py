"""The workloads of this program, as bench/workloads has them, for a whole or a quick run."""
import tomllib

from servers import Failed

# What names this program as the one that does a workload's work.
DRIVER = "scripts/speed"


class Definition:
    """A workload, its choices between whole and quick made."""

    def __init__(self, path, is_quick):
        self.path, self.name, self.is_quick = path, path.stem, is_quick
        try:
            self.told = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Failed(f"{path}: {error}") from None
        self.order, self.drivers = self._field("order"), self.told.get("drivers", [])
        self.procedure, self.stores = self._field("procedure"), self._field("stores")
        self.repetitions, self.seed = self._chosen(self._field("repetitions")), self.told.get("seed")
        settings = {name: self._chosen(value) for name, value in self.told.get("settings", {}).items()}
        # A window ends by its seconds, unless somebody wants it to end by a number of requests.
        self.settings = {"at_most": None, **settings}
        self.parameters = {name: self._parameter(told) for name, told in self.told.get("parameters", {}).items()}

    def _field(self, name):
        if name not in self.told:
            raise Failed(f"{self.path}: {name} is missing")
        return self.told[name]

    def _chosen(self, value):
        """A value, or the one for this kind of run of { whole = .., quick = .. }."""
        if isinstance(value, dict) and value.keys() == {"whole", "quick"}:
            return value["quick" if self.is_quick else "whole"]
        return value

    def _parameter(self, told):
        values = told.get("quick", told["values"]) if self.is_quick else told["values"]
        return {**{name: value for name, value in told.items() if name != "quick"}, "values": values}

    def values(self):
        """Of each parameter those that this run takes."""
        return {name: told["values"] for name, told in self.parameters.items()}

    def workload(self, stores):
        """The definition as a record of a run of these stores has it: what it says of no other store or case."""
        def is_run(case):
            return all(value in self.parameters[name]["values"] for name, value in case.items())

        comparisons = []
        for told in self.told.get("comparisons", []):
            comparison = {**told, "to": [store for store in told["to"] if store in stores],
                          "bar": told.get("bar"), "aim": told.get("aim")}
            is_about = comparison["of"] in stores and bool(told["to"]) == bool(comparison["to"])
            if is_about and is_run(told["case"]) and is_run(told.get("to_case", {})):
                comparisons.append(comparison)
        first = self.told.get("first", {})
        return {
            "name": self.name, "title": self._field("title"), "about": self._field("about").strip(), "seed": self.seed,
            "repetitions": self.repetitions, "parameters": self.parameters,
            "measures": {name: {**told, "better": told.get("better")} for name, told in self._field("measures").items()},
            "views": self._field("views"), "comparisons": comparisons, "first": first if is_run(first) else {},
        }


def read(folder, is_quick):
    """Those whose work this program does, by name, in the order of showing."""
    found = [Definition(path, is_quick) for path in sorted(folder.glob("*.toml"))]
    ours = [definition for definition in found if any(DRIVER in command for command in definition.drivers)]
    return {definition.name: definition for definition in sorted(ours, key=lambda one: one.order)}
