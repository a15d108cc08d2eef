//! The pages of the demo.

use std::fmt::Write as _;
use std::time::Duration;

/// A page and its content.
pub(crate) struct Page {
    pub(crate) path: &'static str,
    /// Whether caches may keep it.
    pub(crate) is_stored: bool,
    title: &'static str,
    /// HTML.
    text: &'static str,
}

/// When a page was made, and its number in the order of making.
pub(crate) struct Made {
    pub(crate) number: u64,
    /// Since 1970, UTC.
    pub(crate) at: Duration,
}

pub(crate) const PAGES: [Page; 5] = [
    Page { path: "/", is_stored: true, title: "Cyclone", text: include_str!("cyclone.html") },
    Page { path: "/eye", is_stored: true, title: "Eye", text: include_str!("eye.html") },
    Page { path: "/eyewall", is_stored: true, title: "Eyewall", text: include_str!("eyewall.html") },
    Page { path: "/bands", is_stored: true, title: "Rain bands", text: include_str!("bands.html") },
    Page { path: "/now", is_stored: false, title: "Never stored", text: include_str!("now.html") },
];

impl Page {
    pub(crate) fn html(&self, made: &Made) -> String {
        let (hours, minutes, seconds) = clock(made.at);
        let milliseconds = made.at.subsec_millis();
        let life = if self.is_stored { 30 } else { 0 };
        format!(
            r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Eyewall demo</title>
<link rel="icon" href="/cyclone.svg">
<link rel="stylesheet" href="/style.css">
<script src="/made.js" defer></script>
<header>
  <a class="brand" href="/"><img src="/cyclone.svg" alt="" width="36" height="36">Eyewall demo</a>
  <nav>{nav}</nav>
</header>
<main>
  <section class="made" data-made="{milliseconds_1970}" data-life="{life}">
    <p class="when">Made at <time>{hours:02}:{minutes:02}:{seconds:02}<small>.{milliseconds:03}</small></time> UTC</p>
    <p class="left"></p>
    <p class="how">Page {number} of the origin</p>
    <div class="life"><i></i></div>
    <p class="verdict">Load it again and look whether the time changes.</p>
  </section>
  <h1>{title}</h1>
  {text}
</main>
<footer>
  <p>Watch the cache at work:</p>
  <pre>curl -si <span class="origin">http://127.0.0.1:8080</span>{path} | grep -iE '^(cache-status|age)'</pre>
</footer>
</html>
"#,
            title = self.title,
            nav = self.navigation(),
            milliseconds_1970 = made.at.as_millis(),
            number = made.number,
            text = self.text,
            path = self.path,
        )
    }

    fn navigation(&self) -> String {
        let mut links = String::new();
        for page in &PAGES {
            let here = if page.path == self.path { " aria-current=\"page\"" } else { "" };
            // Writing to a string can't fail.
            let _ = write!(links, "<a href=\"{}\"{here}>{}</a>", page.path, page.title);
        }
        links
    }
}

fn clock(at: Duration) -> (u64, u64, u64) {
    let seconds = at.as_secs();
    (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}
