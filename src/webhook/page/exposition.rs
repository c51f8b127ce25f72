//! The page of `/metrics`: OpenMetrics for scrapers that accept it, as Prometheus does, else the classic text format.
//!
//! Formats only; what is shown is given.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue, header};
use prometheus_client::{encoding::text, registry::Registry};

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const CLASSIC: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// A format of the page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::webhook) enum ExpositionFormat {
    OpenMetrics,
    Classic,
}

impl ExpositionFormat {
    /// What a scraper accepts.
    pub(in crate::webhook) fn accepted(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut accepts = accepts.flat_map(|value| value.split(','));
        let open = accepts
            .any(|media| media.trim().to_ascii_lowercase().starts_with("application/openmetrics-text"));
        if open { Self::OpenMetrics } else { Self::Classic }
    }

    pub(in crate::webhook) fn content_type(self) -> HeaderValue {
        match self {
            Self::OpenMetrics => OPEN_METRICS,
            Self::Classic => CLASSIC,
        }
    }
}

/// All registries as one page.
pub(in crate::webhook) fn page<'a>(
    registries: impl IntoIterator<Item = &'a Registry>,
    format: ExpositionFormat,
) -> String {
    let mut page = String::new();
    for registry in registries {
        text::encode_registry(&mut page, registry).expect("a String takes every write");
    }
    match format {
        ExpositionFormat::OpenMetrics => {
            text::encode_eof(&mut page).expect("a String takes every write");
            page
        }
        ExpositionFormat::Classic => classic(&page),
    }
}

/// The page in the classic format: a counter is declared under the name of its samples, and there are no units.
fn classic(open: &str) -> String {
    let mut page = String::with_capacity(open.len());
    let mut help = None;
    for line in open.lines() {
        if line.starts_with("# UNIT ") {
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let total = if kind == "counter" { "_total" } else { "" };
            let text = help.take().map_or("", |(_, text)| text);
            writeln!(page, "# HELP {name}{total} {text}\n# TYPE {name}{total} {kind}")
                .expect("a String takes every write");
        } else {
            page.push_str(line);
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::{
        metrics::{counter::Counter, gauge::Gauge},
        registry::Unit,
    };

    #[test]
    fn a_scraper_gets_the_format_that_it_accepts() {
        let format = |accept: &'static str| {
            ExpositionFormat::accepted(&HeaderMap::from_iter([(
                header::ACCEPT,
                HeaderValue::from_static(accept),
            )]))
        };
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(format(prometheus), ExpositionFormat::OpenMetrics);
        assert_eq!(format("text/plain, application/OpenMetrics-Text"), ExpositionFormat::OpenMetrics);
        assert_eq!(
            (format("*/*"), ExpositionFormat::accepted(&HeaderMap::new())),
            (ExpositionFormat::Classic, ExpositionFormat::Classic)
        );
    }

    #[test]
    fn a_counter_is_declared_under_the_name_of_its_samples() {
        let mut registry = Registry::default();
        registry.register("reviews", "Reviews", Counter::<u64>::default());
        registry.register_with_unit("age", "Age", Unit::Seconds, Gauge::<i64>::default());
        let open = "# HELP reviews Reviews.\n# TYPE reviews counter\nreviews_total 0\n# HELP age_seconds Age.\n\
                    # TYPE age_seconds gauge\n# UNIT age_seconds seconds\nage_seconds 0\n# EOF\n";
        assert_eq!(page([&registry], ExpositionFormat::OpenMetrics), open);
        let classic = "# HELP reviews_total Reviews.\n# TYPE reviews_total counter\nreviews_total 0\n\
                       # HELP age_seconds Age.\n# TYPE age_seconds gauge\nage_seconds 0\n";
        assert_eq!(page([&registry], ExpositionFormat::Classic), classic);
    }
}
