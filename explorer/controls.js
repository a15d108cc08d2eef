// The state, as the address describes it, and the controls that change it. The address of a view is its permalink.
"use strict";

const Controls = (() => {
    const { make } = Elements;
    // More values than this get a list.
    const RADIOS_MAX = 6;
    // An address may contain anything.
    const ALLOWED = { x: ["log", "linear"], y: ["log", "linear"], show: ["weighed", "all"] };

    // The state in an address. It has only what the address names; the page fills in the rest.
    function fromHash(hash) {
        const said = new URLSearchParams(hash.replace(/^#/, ""));
        const state = { case: {}, hidden: new Set(said.getAll("hide")) };
        for (const [name, value] of said) {
            if (name.startsWith("case.")) state.case[name.slice(5)] = value;
            else if (name !== "hide" && (!(name in ALLOWED) || ALLOWED[name].includes(value))) state[name] = value;
        }
        return state;
    }

    function toHash(state) {
        const said = new URLSearchParams();
        for (const name of ["record", "workload", "view", "x", "y", "show"]) if (state[name]) said.set(name, state[name]);
        for (const [name, value] of Object.entries(state.case ?? {})) said.set(`case.${name}`, String(value));
        for (const store of state.hidden ?? []) said.append("hide", store);
        return `#${said}`;
    }

    // One of some values: radio buttons, or a list where there are many. `values` are [value, words].
    function choice(id, title, values, chosen, change) {
        if (values.length > RADIOS_MAX) {
            return make(
                "label",
                { class: "choice" },
                make("span", {}, title),
                make(
                    "select",
                    { id, onchange: (event) => change(values[event.target.selectedIndex][0]) },
                    ...values.map(([value, words]) => make("option", { selected: value === chosen }, words)),
                ),
            );
        }
        return make(
            "fieldset",
            { class: "choice" },
            make("legend", {}, title),
            make(
                "div",
                { class: "segments" },
                ...values.map(([value, words], index) => {
                    const own = `${id}-${index}`;
                    return make(
                        "span",
                        {},
                        make("input", {
                            type: "radio",
                            name: id,
                            id: own,
                            checked: value === chosen,
                            onchange: () => change(value),
                        }),
                        make("label", { for: own }, words),
                    );
                }),
            ),
        );
    }

    // Boxes that hide and show stores, with their marks.
    function stores(names, hidden, looks, change) {
        return make(
            "fieldset",
            { class: "stores" },
            make("legend", {}, "Stores"),
            ...names.map((name, index) => {
                const box = make("input", {
                    type: "checkbox",
                    id: `store-${index}`,
                    checked: !hidden.has(name),
                    onchange: (event) => change(name, event.target.checked),
                });
                return make("label", { class: "store" }, box, Elements.swatch(looks.get(name)), name);
            }),
        );
    }

    return { fromHash, toHash, choice, stores };
})();
