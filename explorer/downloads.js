// A figure as a file: SVG with title, legend and source, always on a light ground; CSV with the raw figures.
"use strict";

const Downloads = (() => {
    const WIDTH = 960;

    function cell(value) {
        const text = value === null || value === undefined ? "" : String(value);
        return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    }

    const csv = ({ columns, rows }) => [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

    // `scale` is of those figures that take one.
    function svg(figure, title, source, scale) {
        const look = Looks.ground(false);
        const place = { width: WIDTH, isFile: true, labels: false };
        const height = figure.height(place) + 110;
        const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
        chart.setOption({
            ...figure.option(look, place, scale),
            title: {
                text: title,
                subtext: source,
                left: 16,
                top: 10,
                textStyle: { color: look.strong, fontSize: 17 },
                subtextStyle: { color: look.text },
            },
        });
        const text = chart.renderToSVGString();
        chart.dispose();
        return text;
    }

    function save(name, type, text) {
        const url = URL.createObjectURL(new Blob([text], { type }));
        const anchor = Elements.make("a", { href: url, download: name });
        document.body.append(anchor);
        anchor.click();
        anchor.remove();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
    }

    return { csv, svg, save };
})();
