//! The log of `eyewall serve` on standard error: its form, and its levels, which can change while it runs.

use std::fmt;
use std::io;

use eyewall_server::config::log::{LogForm, LogLevels};
use serde_json::{Map, Value};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime as Clock};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The least level of what other crates say. Below it, they tell fields of requests, which may be secrets.
const OF_OTHERS: LevelFilter = LevelFilter::WARN;

/// Changes the levels of a log.
#[derive(Clone)]
pub(crate) struct Levels(Handle<Targets, Registry>);

impl Levels {
    /// Puts these levels in force.
    pub(crate) fn set(&self, levels: &LogLevels) {
        // It fails only if another log was there first, which has its own levels.
        let _ = self.0.reload(targets(levels));
    }
}

/// Starts the log, unless the program has one already, which is used then.
pub(crate) fn start(levels: &LogLevels, form: LogForm) -> Levels {
    let (filter, handle) = reload::Layer::new(targets(levels));
    // Without this, a message that standard error doesn't take would be reported there, which panics.
    let text = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(io::stderr).with_ansi(false);
    let registry = tracing_subscriber::registry().with(filter);
    let _ = match form {
        LogForm::Text => registry.with(text).try_init(),
        LogForm::Json => registry.with(text.event_format(Json)).try_init(),
    };
    Levels(handle)
}

fn targets(levels: &LogLevels) -> Targets {
    let filter = |level: &str| level.parse().unwrap_or(LevelFilter::WARN);
    let modules = levels.modules().map(|(module, level)| (module.to_owned(), filter(level)));
    Targets::new().with_default(OF_OTHERS).with_target("eyewall", filter(levels.level())).with_targets(modules)
}

/// Writes an event as a JSON object.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields(Map::new());
        let mut time = String::new();
        Clock.format_time(&mut Writer::new(&mut time))?;
        fields.0.insert("time".to_owned(), time.into());
        fields.0.insert("level".to_owned(), event.metadata().level().as_str().to_ascii_lowercase().into());
        fields.0.insert("module".to_owned(), event.metadata().target().into());
        event.record(&mut fields);
        writeln!(writer, "{}", Value::Object(fields.0))
    }
}

/// The fields of an event.
struct Fields(Map<String, Value>);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &tracing::field::Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &tracing::field::Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
