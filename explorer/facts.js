// Machine, versions and notes of a run.
"use strict";

const Facts = (() => {
    const { make } = Elements;

    // Elements with the facts that a reader needs to judge the figures.
    function of(run) {
        const { machine } = run;
        const facts = [
            ["processor", `${machine.cpu}, ${machine.cores} cores`],
            ["memory", `${Words.digits(machine.memory_mib)} MiB`],
            ["kernel", machine.kernel],
            [
                "storage",
                machine.storage
                    .map(({ name, file_system: system, device }) =>
                        [name === system ? name : `${name}: ${system}`, device].filter(Boolean).join(", "),
                    )
                    .join("; "),
            ],
            ["governor", machine.governor ?? "not told"],
            ["load at the start", machine.load_at_start === null ? "not told" : Words.digits(machine.load_at_start)],
            [
                "noise",
                machine.noise === null
                    ? "not probed"
                    : `${machine.noise.what}: ${Words.spread(machine.noise, machine.noise.unit)}`,
            ],
            ["commit", run.commit ?? "not told"],
            ["seed", run.seed === null ? "not told" : String(run.seed)],
            ...Object.entries(run.stores)
                .filter(([, store]) => store.version)
                .map(([name, store]) => [name, store.version]),
        ];
        const list = make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
        const notes = run.notes.map((note) => make("li", {}, note));
        return notes.length > 0 ? [list, make("ul", {}, ...notes)] : [list];
    }

    return { of };
})();
