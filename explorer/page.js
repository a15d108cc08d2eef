// The page: shows the view of the address, and writes the address of the chosen view.
"use strict";

(() => {
    const { make } = Elements;
    const OVERVIEW = "overview";
    const SHOW = [
        ["weighed", "bars, and where others win"],
        ["all", "all"],
    ];
    const WIDE = 760;
    const MARKS =
        "Right of 1, ours is better. \u25c7 others win, or the bar is missed; \u25cf neither; the upright stroke is the bar.";
    let state = {};
    let charts = [];
    let turn = 0;

    const at = (id) => document.getElementById(id);
    const hashOf = (change) => Controls.toHash({ ...state, ...change });

    function go(change) {
        history.replaceState(null, "", hashOf(change));
        show();
    }

    // Fills in what the address leaves out, or names wrongly.
    function chosenRecord(listing, said) {
        const named = listing.find(({ id, merged }) => id === said.record || merged.includes(said.record));
        return (
            named ?? listing.find(({ isComplete }) => isComplete) ?? listing.find(({ kind }) => kind === "whole") ?? listing[0]
        );
    }

    async function show() {
        turn += 1;
        const mine = turn;
        const listing = await eyewallRecords.list();
        if (listing.length === 0) {
            at("main").replaceChildren(
                make(
                    "p",
                    {},
                    "There is no record here yet. In the repository, ",
                    make("code", {}, "make explorer"),
                    " collects those that are published; ",
                    make("code", {}, "scripts/records index explorer/records DIR"),
                    " those of your own runs.",
                ),
            );
            return;
        }
        const said = Controls.fromHash(location.hash);
        const told = chosenRecord(listing, said);
        const record = await eyewallRecords.load(told.id).catch(() => null);
        if (mine !== turn) return;
        if (record === null) {
            at("main").replaceChildren(
                make(
                    "p",
                    {},
                    `The record ${told.id} is listed, and its file is not there. `,
                    make("code", {}, "make explorer"),
                    " writes both anew.",
                ),
            );
            return;
        }
        const focused = document.activeElement?.id;
        const workload = record.run.workloads.find(({ name }) => name === said.workload);
        const view = workload?.views.find(({ name }) => name === said.view) ?? workload?.views[0];
        state = { ...said, record: told.id, workload: workload?.name ?? OVERVIEW, view: view?.name };
        charts.forEach((chart) => chart.dispose());
        charts = [];
        document.title = `${workload?.title ?? "Overview"} \u2013 Eyewall, measured`;
        showHead(listing, told, record);
        showWorkloads(record);
        const main = at("main");
        main.replaceChildren();
        if (workload === undefined) showOverview(main, record);
        else showWorkload(main, record, workload, view);
        if (focused) at(focused)?.focus({ preventScroll: true });
        document.body.dataset.shown = String(mine);
    }

    function showHead(listing, told, record) {
        const machines = [...new Set(listing.map(({ machine }) => machine))];
        const ofMachine = listing.filter(({ machine }) => machine === told.machine);
        const extent = ({ kind, isComplete }) => (kind === "quick" ? " (quick)" : isComplete ? "" : " (some workloads)");
        const words = (one) => `${one.began.slice(0, 10)}: ${one.title}${extent(one)}`;
        const chosen = (machine) =>
            chosenRecord(
                listing.filter((one) => one.machine === machine),
                {},
            ).id;
        at("choose-record").replaceChildren(
            Controls.choice(
                "machine",
                "Machine",
                machines.map((machine) => [machine, machine]),
                told.machine,
                (machine) => go({ record: chosen(machine) }),
            ),
            make(
                "label",
                { class: "choice" },
                make("span", {}, "Record"),
                make(
                    "select",
                    { id: "record", onchange: (event) => go({ record: ofMachine[event.target.selectedIndex].id }) },
                    ...ofMachine.map((one) => make("option", { selected: one.id === told.id }, words(one))),
                ),
            ),
        );
        const { run } = record;
        const warnings = [
            run.kind === "quick" ? "A quick run: too short to be quoted." : null,
            run.complete ? null : "This run was not finished: what it has is shown.",
        ].filter(Boolean);
        at("warning").hidden = warnings.length === 0;
        at("warning").textContent = warnings.join(" ");
        at("facts")
            .querySelector("div")
            .replaceChildren(...Facts.of(run));
    }

    function showWorkloads(record) {
        const link = (name, title) =>
            make(
                "a",
                {
                    href: hashOf({ workload: name, view: undefined, case: {}, x: undefined, y: undefined, show: undefined }),
                    id: `to-${name}`,
                    "aria-current": name === state.workload ? "page" : false,
                },
                title,
            );
        at("workloads").replaceChildren(
            link(OVERVIEW, "Overview"),
            ...record.run.workloads.map(({ name, title, skipped }) =>
                link(name, skipped === undefined ? title : `${title} (not run)`),
            ),
        );
        // On a phone it is a strip, which may have to be moved.
        const current = at("workloads").querySelector("[aria-current]");
        at("workloads").scrollLeft = current.offsetLeft - at("workloads").offsetLeft - 12;
    }

    const linkTo = ({ workload, comparison }) => {
        const view =
            workload.views.find((one) => one.measure === comparison.measure || one.measures?.includes(comparison.measure)) ??
            workload.views[0];
        return hashOf({ workload: workload.name, view: view.name, case: comparison.case, x: undefined, y: undefined });
    };

    function showOverview(main, record) {
        const looks = Looks.ofStores(record.run.stores, Looks.isDark());
        const all = Comparisons.ofRun(record);
        const bars = all.filter(({ isMet }) => isMet !== null);
        const bad = all.filter((one) => ["lost", "missed"].includes(Comparisons.verdict(one)));
        const rest = all.filter((one) => !bad.includes(one));
        main.append(make("h2", {}, "Overview"));
        showStandings(main, record, all);
        main.append(
            make(
                "p",
                { class: "tally" },
                make("strong", {}, `${bars.filter(({ isMet }) => isMet).length} of ${bars.length}`),
                " bars are met. ",
                `Of ${all.filter(({ isAgainstOthers }) => isAgainstOthers).length} comparisons with other stores, those win `,
                make("strong", {}, String(bad.filter((one) => Comparisons.verdict(one) === "lost").length)),
                "; they stand first.",
            ),
        );
        const shown = Tables.comparisons("Where others win, and bars that are missed", bad, linkTo);
        if (bad.length > 0) {
            const drawn = bad.slice(0, 40);
            addFigure(main, record, {
                title: "Where others win, and bars that are missed",
                legend: MARKS,
                figure: () => Comparisons.figure(drawn, record.run.stores),
                name: "overview",
                scale: state.y ?? "log",
            });
            main.append(shown.element);
        }
        if (rest.length > 0)
            main.append(
                make(
                    "details",
                    {},
                    make("summary", {}, `The other ${rest.length} comparisons`),
                    Tables.comparisons("All others", rest, linkTo).element,
                ),
            );
        const missing = [
            ...record.run.workloads
                .filter(({ skipped }) => skipped !== undefined)
                .map(({ title, skipped }) => `${title} was not run: ${skipped}`),
            ...Object.entries(record.run.stores)
                .filter(([, { absent }]) => absent !== undefined)
                .map(([name, { absent }]) => `${name} is absent: ${absent}`),
        ];
        if (missing.length > 0)
            main.append(make("h3", {}, "What is not here"), make("ul", {}, ...missing.map((line) => make("li", {}, line))));
        if (looks.size === 0) main.append(make("p", {}, "Nothing was measured."));
    }

    // One picture of the whole record: each workload, and in how many cases ours is ahead of the best other store.
    function showStandings(main, record, all) {
        const standings = Standings.of(all, record.run.stores);
        if (standings.length === 0) return;
        const count = Standings.counted(standings);
        main.append(
            make(
                "p",
                { class: "tally", id: "standing" },
                "Eyewall is ahead of the best other store in ",
                make("strong", {}, `${count.won} of ${standings.length}`),
                ` measured cases and behind in `,
                make("strong", {}, String(count.lost)),
                `; in ${count.even} there is no clear difference.`,
            ),
        );
        addFigure(main, record, {
            title: "Eyewall against the best other store, by workload",
            legend: Standings.LEGEND,
            figure: () => Standings.figure(standings, record.run),
            name: "standings",
            scale: "log",
            prefix: "standings-",
        });
    }

    function showWorkload(main, record, workload, view) {
        main.append(make("h2", {}, workload.title), make("p", {}, workload.about));
        if (workload.skipped !== undefined) {
            main.append(make("p", { class: "missing" }, `Not run: ${workload.skipped}`));
            return;
        }
        if (view === undefined) return;
        main.append(
            make(
                "nav",
                { class: "views", "aria-label": "Views" },
                ...workload.views.map(({ name, title }) =>
                    make(
                        "a",
                        {
                            href: hashOf({ view: name, x: undefined, y: undefined }),
                            id: `view-${name}`,
                            "aria-current": name === view.name ? "true" : false,
                        },
                        title,
                    ),
                ),
            ),
        );
        if (view.kind === "comparisons") showComparisons(main, record, workload, view);
        else showSeries(main, record, workload, view);
        if (view.note) main.append(make("p", { class: "note" }, view.note));
    }

    function showComparisons(main, record, workload, view) {
        const all = Comparisons.ofWorkload(record, workload);
        const weighed = all.filter((one) => one.isMet !== null || Comparisons.verdict(one) === "lost");
        const chosen = state.show ?? (weighed.length > 0 ? "weighed" : "all");
        const found = chosen === "all" ? all : weighed;
        // Values and differences have no place on an axis of ratios.
        const isDrawn = Comparisons.figure(found, record.run.stores) !== null;
        main.append(
            make(
                "div",
                { class: "choices" },
                Controls.choice("show", "Shown", SHOW, chosen, (value) => go({ show: value })),
                isDrawn ? scaleChoice("y", "Scale", state.y ?? "log") : null,
            ),
        );
        if (found.length === 0) {
            main.append(make("p", { class: "missing" }, "There is no such comparison."));
            return;
        }
        const shown = Tables.comparisons(`${workload.title}: ${view.title}`, found, linkTo);
        const name = `${workload.name}-${view.name}`;
        if (isDrawn) {
            addFigure(main, record, {
                title: `${workload.title}: ${view.title}`,
                legend: MARKS,
                figure: () => Comparisons.figure(found, record.run.stores),
                name,
                scale: state.y ?? "log",
                csv: shown,
            });
        } else main.append(buttons(name, shown, null));
        main.append(shown.element);
    }

    const scaleChoice = (axis, title, chosen) =>
        Controls.choice(
            `scale-${axis}`,
            title,
            [
                ["log", "log"],
                ["linear", "linear"],
            ],
            chosen,
            (value) => go({ [axis]: value }),
        );

    // The parameters that a view lets the reader choose, with their values.
    function choices(record, workload, view) {
        const values = new Map();
        for (const series of Series.ofView(record, workload, view)) {
            for (const [name, value] of Object.entries(series.case)) {
                if (name === view.x || name === view.columns) continue;
                if (!values.has(name)) values.set(name, new Set());
                values.get(name).add(value);
            }
        }
        return Object.entries(workload.parameters)
            .filter(([name]) => values.has(name))
            .map(([name, { title, values: ordered }]) => ({
                name,
                title,
                values: ordered.filter((value) => values.get(name).has(value)),
            }));
    }

    function chosenCase(found, workload) {
        const chosen = {};
        for (const { name, values } of found) {
            chosen[name] =
                values.find((value) => String(value) === String(state.case[name])) ??
                values.find((value) => value === workload.first[name]) ??
                values[0];
        }
        return chosen;
    }

    function showSeries(main, record, workload, view) {
        const open = choices(record, workload, view);
        const chosen = chosenCase(open, workload);
        const defaults = view.kind === "distribution" ? { x: "log", y: "log" } : { x: "linear", y: "linear", ...view.scales };
        const scales = { x: state.x ?? defaults.x, y: state.y ?? defaults.y };
        const axes = { curve: ["x", "y"], line: ["x", "y"], distribution: ["x", "y"], dots: ["y"] }[view.kind] ?? [];
        const looks = Looks.ofStores(record.run.stores, Looks.isDark());
        const present = new Set(Series.ofView(record, workload, view).map(({ store }) => store));
        const names = [...looks.keys()].filter((name) => present.has(name));
        const stores = new Set(names.filter((name) => !state.hidden.has(name)));
        const context = { record, workload, view, chosen, scales, stores };
        const words = Words.joined(workload.title, view.title, Words.caseOf(workload, chosen));
        main.append(
            make(
                "div",
                { class: "choices" },
                ...open
                    .filter(({ values }) => values.length > 1)
                    .map(({ name, title, values }) =>
                        Controls.choice(
                            `case-${name}`,
                            title,
                            values.map((value) => [value, Words.parameter(workload, name, value)]),
                            chosen[name],
                            (value) => go({ case: { ...chosen, [name]: value } }),
                        ),
                    ),
                ...axes.map((axis) =>
                    scaleChoice(
                        axis,
                        axes.length === 1 ? "Scale" : axis === "x" ? "Scale across" : "Scale upwards",
                        scales[axis],
                    ),
                ),
            ),
        );
        const name = `${workload.name}-${view.name}`;
        if (Figures.isKind(view.kind)) {
            addFigure(main, record, {
                title: words,
                name,
                figure: (dark) => Figures.make({ ...context, looks: Looks.ofStores(record.run.stores, dark) }),
            });
        } else {
            const table = Tables[view.kind === "table" ? "medians" : "percentiles"]({ ...context, looks });
            if (table === null) nothing(main);
            else main.append(table.element, buttons(name, table, null));
        }
        main.append(
            Controls.stores(names, state.hidden, looks, (store, isShown) => {
                const hidden = new Set(state.hidden);
                if (isShown) hidden.delete(store);
                else hidden.add(store);
                go({ hidden });
            }),
        );
    }

    const nothing = (main) =>
        main.append(make("p", { class: "missing" }, "Nothing was measured in this case, or all stores are hidden."));

    // A figure, its buttons, and its data as a table. `figure` makes it, for a dark ground or a light one.
    // `prefix` begins the ids of its buttons.
    function addFigure(main, record, { title, legend, figure, name, scale, csv, prefix }) {
        const made = figure(Looks.isDark());
        if (made === null) {
            nothing(main);
            return;
        }
        const canvas = make("div", { class: "figure", role: "img", "aria-label": `${title}. The same as a table: below.` });
        main.append(make("figure", {}, make("figcaption", {}, title, legend && make("small", {}, legend)), canvas));
        const width = canvas.clientWidth;
        canvas.style.height = `${made.height({ width })}px`;
        const chart = echarts.init(canvas, null, { renderer: "svg" });
        chart.setOption(
            made.option(
                Looks.ground(Looks.isDark()),
                { width, isFile: false, labels: width >= WIDE && made.rows.length < 4000 },
                scale,
            ),
        );
        charts.push(chart);
        const { run } = record;
        const source = [
            `${run.machine.cpu}, ${run.machine.cores} cores, ${run.machine.kernel}; ${run.began.slice(0, 10)}`,
            run.kind === "quick" ? "a quick run" : "whole run",
            ...(run.commit === null ? [] : [`commit ${run.commit}`]),
        ].join(", ");
        main.append(
            buttons(
                name,
                csv ?? made,
                () => Downloads.svg(figure(false), title, legend === undefined ? source : `${source}\n${legend}`, scale),
                prefix,
            ),
            make("details", { class: "data" }, make("summary", {}, "The data as a table"), Tables.data(made)),
        );
    }

    function buttons(name, table, svg, prefix = "") {
        const file = `${state.record}-${name}`;
        const copied = make("span", { role: "status" });
        const copy = () =>
            navigator.clipboard.writeText(location.href).then(
                () => {
                    copied.textContent = "copied";
                },
                () => {
                    copied.textContent = "the address bar has it";
                },
            );
        return make(
            "p",
            { class: "buttons" },
            svg &&
                make(
                    "button",
                    {
                        id: `${prefix}svg`,
                        type: "button",
                        onclick: () => Downloads.save(`${file}.svg`, "image/svg+xml", svg()),
                    },
                    "SVG",
                ),
            make(
                "button",
                {
                    id: `${prefix}csv`,
                    type: "button",
                    onclick: () => Downloads.save(`${file}.csv`, "text/csv", Downloads.csv(table)),
                },
                "CSV",
            ),
            make("button", { id: `${prefix}link`, type: "button", onclick: copy }, "Copy the link"),
            copied,
        );
    }

    let resized = 0;
    let lastWidth = innerWidth;
    addEventListener("resize", () => {
        // A phone's address bar comes and goes; only the width matters.
        if (innerWidth === lastWidth) return;
        lastWidth = innerWidth;
        clearTimeout(resized);
        resized = setTimeout(show, 150);
    });
    addEventListener("hashchange", show);
    // An address of its own would be taken for a view.
    document.querySelector(".skip").addEventListener("click", (event) => {
        event.preventDefault();
        at("main").focus();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
})();
