//! `eyewall explain`: what would become of a request, and why.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use eyewall_server::config;
use eyewall_server::explain::{
    self, ClientOf, Explanation, Past, Piece, PurgeOf, Question, RedirectOf, RequestOf, StoredOf, VariantOf, Verdict,
};
use eyewall_server::units::{counted, size};
use serde_json::json;

use super::administration::{Post, question};
use crate::args::Explain;
use crate::{Error, Outcome, output, volume};

pub(crate) fn run(cache: Option<&Path>, asked: &Explain) -> Result<Outcome, Error> {
    let explanation = match (&asked.server, &asked.config) {
        (Some(server), _) => {
            let mut body = json!({ "url": asked.url, "method": asked.method, "headers": asked.headers });
            if let Some(from) = asked.from {
                body["from"] = json!(from);
            }
            question(server, asked.token_file.as_deref(), Post { path: "/explain", body })?
        }
        (None, Some(config)) => by_configuration(cache, config, asked)?,
        (None, None) => unreachable!("the command line requires one of them"),
    };
    if asked.json {
        output::json_to_stdout(&explanation)?;
    } else {
        let text = in_words(&explanation);
        output::text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(Outcome::Done)
}

fn by_configuration(cache: Option<&Path>, file: &Path, asked: &Explain) -> Result<Explanation, Error> {
    let config = config::load(file).map_err(|problems| Error::Config { path: file.to_owned(), problems })?;
    let path = cache.or(config.cache.path.as_ref().map(|path| path.get_ref().as_path()));
    let cache = volume::open_to_read(volume::named(path)?)?;
    let (url, method, headers) = (asked.url.clone(), asked.method.clone(), asked.headers.clone());
    let question = Question { url, method, headers, from: asked.from };
    Ok(explain::of_volume(config, &cache, &question)?)
}

/// How many variants have a line.
const VARIANTS_SHOWN: usize = 10;

/// Lines of a name and a text. Further lines with the same name leave it out.
#[derive(Default)]
struct Paper {
    text: String,
    last: &'static str,
}

impl Paper {
    /// Tags and keys may have any characters; none of them may steer the terminal.
    fn line(&mut self, name: &'static str, words: &str) {
        let words: String = words.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
        let shown = if self.last == name { "" } else { name };
        self.last = name;
        // Never fails on a string.
        let _ = writeln!(self.text, "{}", format!("{shown:<10} {words}").trim_end());
    }
}

fn in_words(explanation: &Explanation) -> String {
    let mut paper = Paper::default();
    paper.line("request", &format!("{} {}", explanation.method, explanation.url));
    let mut verdict = verdict(explanation.verdict).to_owned();
    if let Some(status) = explanation.status {
        let _ = write!(verdict, ": {status}");
    }
    paper.line("verdict", &verdict);
    paper.line("because", &explanation.because);
    if let Some(told) = &explanation.cache_status {
        paper.line("told", &format!("Cache-Status: {told}"));
    }
    if let Some(client) = &explanation.client {
        of_client(&mut paper, client);
    }
    if let Some(RedirectOf { location, rule, .. }) = &explanation.redirect {
        let rule = rule.as_ref().map(|rule| format!(" by the rule {rule}")).unwrap_or_default();
        paper.line("redirect", &format!("to {location}{rule}"));
    }
    if let Some(site) = &explanation.site {
        let preset = site.preset.as_ref().map(|preset| format!(", preset {preset}")).unwrap_or_default();
        paper.line("site", &format!("{} (site {} of the configuration{preset})", site.hosts.join(", "), site.number));
    }
    for field in &explanation.changed_fields {
        let words = match &field.value {
            // Cookies are secrets, and people paste this text.
            Some(_) if field.name == "cookie" => "cookie loses some cookies".to_owned(),
            Some(value) => format!("{} becomes {value}", field.name),
            None => format!("{} is dropped", field.name),
        };
        paper.line("fields", &words);
    }
    if let Some(key) = &explanation.key {
        paper.line("key", &key.text);
        key.pieces.iter().filter_map(of_piece).for_each(|words| paper.line("key", &words));
    }
    for rule in &explanation.rules {
        let words = match &rule.unmet {
            Some(unmet) => format!("doesn't apply ({unmet})"),
            None if rule.awaits_response => "applies if the response meets its conditions".to_owned(),
            None => "applies".to_owned(),
        };
        paper.line("rules", &format!("{}: {words}", rule.name));
    }
    if let Some(stored) = &explanation.stored {
        of_stored(&mut paper, stored);
    }
    of_variants(&mut paper, &explanation.variants);
    if let Some(past) = &explanation.past {
        of_past(&mut paper, past);
    }
    paper.text
}

fn of_client(paper: &mut Paper, client: &ClientOf) {
    let scheme = &client.scheme;
    paper.line("client", &format!("{} by {scheme}", client.address));
    if !client.believed_proxies.is_empty() {
        let proxies: Vec<String> = client.believed_proxies.iter().map(ToString::to_string).collect();
        paper.line("client", &format!("as trusted proxies say: {}", proxies.join(", ")));
    }
    if !client.is_known {
        paper.line("client", "they don't name the client, so the address is that of the last known proxy");
    }
}

/// The line of a piece. Scheme, host, path and the parameters that are kept need none: the key shows them.
fn of_piece(piece: &Piece) -> Option<String> {
    let Piece { kind, text, is_kept, by, .. } = piece;
    let by = by.as_deref().unwrap_or_default();
    match (kind.as_str(), is_kept) {
        ("parameter", false) => Some(format!("without the parameter {text} ({by})")),
        ("cookie" | "header", true) => Some(format!("with the {kind} {text} ({by})")),
        ("cookie" | "header", false) => Some(format!("the {kind} {text} would be part of it, and isn't sent ({by})")),
        _ => None,
    }
}

fn of_variants(paper: &mut Paper, variants: &[VariantOf]) {
    if variants.is_empty() {
        return;
    }
    let selects = if variants.iter().any(|variant| variant.is_selected) { "one of them" } else { "none of them" };
    let count = counted(variants.len() as u64, "is stored", "are stored");
    paper.line("variants", &format!("{count}, and the request selects {selects}"));
    for variant in variants.iter().take(VARIANTS_SHOWN) {
        let mark = if variant.is_selected { ", selected" } else { "" };
        let left = match variant.fresh_for_seconds {
            left @ 1.. => format!("fresh for {left} s"),
            over => format!("stale for {} s", -over),
        };
        let (status, bytes) = (variant.status, size(variant.bytes));
        paper.line("variants", &format!("by {}: status {status}, {bytes}, {left}{mark}", variant.vary.join(", ")));
    }
}

fn of_past(paper: &mut Paper, past: &Past) {
    if past.is_unstorable {
        paper.line("past", "the last response could not be stored, so requests for it don't wait for one another");
    }
    if let Some(uses) = past.uses {
        paper.line("past", &format!("the stored entry was asked for {}", times(uses.into())));
    }
    if let Some(requests) = past.remembered_requests {
        paper.line("past", &format!("the volume remembers that the key was asked for and stored {}", times(requests)));
    }
    if let Some(PurgeOf { time, kind, of, .. }) = &past.purge {
        paper.line("past", &format!("a {kind} purge covered it at {time}: {of}"));
    }
    for RequestOf { seconds_ago, verdict, reason, first_byte_us, .. } in &past.requests {
        let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let took = *first_byte_us as f64 / 1e3;
        paper.line("past", &format!("{seconds_ago} s ago: {verdict}{reason}, after {took:.1} ms"));
    }
}

fn times(count: u64) -> String {
    counted(count, "time", "times")
}

fn of_stored(paper: &mut Paper, stored: &StoredOf) {
    paper.line("stored", &format!("status {}, {}", stored.status, size(stored.bytes)));
    if !stored.vary.is_empty() {
        paper.line("stored", &format!("selected by {}", stored.vary.join(", ")));
    }
    if !stored.tags.is_empty() {
        let tags = counted(stored.tags.len() as u64, "tag", "tags");
        paper.line("stored", &format!("{tags}: {}", stored.tags.join(" ")));
    }
    for step in &stored.arithmetic {
        paper.line("freshness", &format!("{}: {} ({})", step.what, step.words, step.source));
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Hit => "hit: the stored response is sent",
        Verdict::Stale => "hit: the stored response is sent although it is stale",
        Verdict::Partial => "part of a hit: an origin is asked for the parts that were evicted",
        Verdict::Revalidate => "revalidation: an origin is asked whether the stored response is still right",
        Verdict::Miss => "miss: an origin is asked, and its response may be stored",
        Verdict::Pass => "pass: an origin is asked, without the cache",
        Verdict::File => "file: a file of the site's folder is sent",
        Verdict::Redirect => "redirect by the server",
        Verdict::Error => "answer of the server itself",
        _ => "another one, of a later version",
    }
}
