// Elements of the page, made in one line.
"use strict";

const Elements = (() => {
    function make(name, attributes = {}, ...children) {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) {
            if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
            else if (value === true) element.setAttribute(key, "");
            else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
        }
        element.append(...children.filter((child) => child !== null && child !== undefined));
        return element;
    }

    // A store's line and marker, for legends and tables.
    function swatch(look) {
        const space = "http://www.w3.org/2000/svg";
        const picture = document.createElementNS(space, "svg");
        for (const [key, value] of [
            ["viewBox", "0 0 34 14"],
            ["width", 34],
            ["height", 14],
            ["aria-hidden", "true"],
        ]) {
            picture.setAttribute(key, value);
        }
        const line = document.createElementNS(space, "path");
        line.setAttribute("d", "M0,7H34");
        line.setAttribute("stroke", look.colour);
        line.setAttribute("stroke-width", look.width);
        line.setAttribute("stroke-dasharray", look.dash.join(" "));
        const mark = document.createElementNS(space, "path");
        mark.setAttribute("d", look.shape);
        mark.setAttribute("transform", "translate(12 2)");
        mark.setAttribute("fill", look.colour);
        picture.append(line, mark);
        return picture;
    }

    return { make, swatch };
})();
