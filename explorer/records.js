// The records that `scripts/records index` writes: a list, and a script for each. A script is loaded once, when it
// is needed.
"use strict";

const eyewallRecords = (() => {
    const waiting = new Map();
    let listing = null;
    let last = null;

    function script(path) {
        return new Promise((resolve, reject) => {
            const element = document.createElement("script");
            element.src = path;
            element.onload = () => {
                element.remove();
                resolve(last);
            };
            element.onerror = () => reject(new Error(`${path} could not be loaded`));
            document.head.append(element);
        });
    }

    return {
        // The scripts call it.
        listed(records) {
            listing = records;
        },
        loaded(record) {
            last = record;
        },

        // The list, newest first; empty if none was written.
        async list() {
            if (listing === null) {
                await script("records/index.js").catch(() => {
                    listing = [];
                });
            }
            return listing;
        },

        // A record with its series.
        load(id) {
            if (!waiting.has(id)) {
                waiting.set(id, script(`records/${encodeURIComponent(id)}.js`));
            }
            return waiting.get(id);
        },
    };
})();
