// The look of a store: colour, marker and dashes. Each alone distinguishes it from its neighbours.
"use strict";

const Looks = (() => {
    // After Okabe and Ito, and Tol: told apart with any colour vision, and readable on their ground.
    const LIGHT = ["#0072b2", "#c44e00", "#007a58", "#a8327d", "#8a6d00", "#332288", "#a3303f", "#3d6b00"];
    const DARK = ["#56b4e9", "#ff8a45", "#2fc79a", "#ee8fc8", "#e6c232", "#a9a0f5", "#f0828f", "#a3cf5f"];
    const MARKERS = [
        "circle",
        "rect",
        "triangle",
        "diamond",
        "path://M0,0L10,0L5,9Z",
        "path://M3,0h4v3h3v4h-3v3h-4v-3h-3v-4h3Z",
        "path://M5,0L10,4L8,10L2,10L0,4Z",
    ];
    // The same markers for the legend, in a box of 10 by 10.
    const SHAPES = [
        "M5,0A5,5 0 1 1 4.99,0Z",
        "M0.5,0.5h9v9h-9Z",
        "M5,0L10,9.5L0,9.5Z",
        "M5,-0.5L10.5,5L5,10.5L-0.5,5Z",
        "M0,0.5L10,0.5L5,10Z",
        "M3,0h4v3h3v4h-3v3h-4v-3h-3v-4h3Z",
        "M5,0L10,4L8,10L2,10L0,4Z",
    ];
    const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [5, 2]];
    const REFERENCE_DASHES = [
        [1, 3],
        [4, 4],
        [10, 4],
        [2, 6],
        [8, 2, 1, 2],
    ];

    const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

    // Colours of everything except stores.
    function ground(dark) {
        return dark
            ? {
                  text: "#d5dbe3",
                  strong: "#ffffff",
                  line: "#8b95a3",
                  grid: "#2c343e",
                  paper: "#161b22",
                  quiet: "#a9b3bf",
                  missed: "#ff8a8a",
              }
            : {
                  text: "#39424e",
                  strong: "#101418",
                  line: "#6b7683",
                  grid: "#e3e7ec",
                  paper: "#ffffff",
                  quiet: "#5c6773",
                  missed: "#b00020",
              };
    }

    // The looks of all stores of a run. Ours come first, and keep their look whatever else is shown.
    function ofStores(stores, dark) {
        const palette = dark ? DARK : LIGHT;
        const names = Object.keys(stores).filter((name) => stores[name].absent === undefined);
        const looks = new Map();
        const rank = { ours: 0, other: 1 };
        const proper = names
            .filter((name) => stores[name].kind in rank)
            .sort((a, b) => rank[stores[a].kind] - rank[stores[b].kind]);
        proper.forEach((name, index) => {
            const round = Math.floor(index / palette.length);
            const marker = (index + round) % MARKERS.length;
            looks.set(name, {
                colour: palette[index % palette.length],
                marker: MARKERS[marker],
                shape: SHAPES[marker],
                dash: stores[name].kind === "ours" && index === 0 ? [] : DASHES[(index + round) % DASHES.length],
                width: stores[name].kind === "ours" ? 3 : 1.8,
                size: stores[name].kind === "ours" ? 10 : 8,
            });
        });
        names
            .filter((name) => stores[name].kind === "reference")
            .forEach((name, index) => {
                const marker = index % MARKERS.length;
                looks.set(name, {
                    colour: ground(dark).quiet,
                    marker: MARKERS[marker],
                    shape: SHAPES[marker],
                    dash: REFERENCE_DASHES[index % REFERENCE_DASHES.length],
                    width: 1.5,
                    size: 6,
                });
            });
        return looks;
    }

    return { isDark, ground, ofStores };
})();
