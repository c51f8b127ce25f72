//! The page of `/metrics`: OpenMetrics for scrapers that accept it, as Prometheus does, else the classic text format.
//!
//! Formats only; what is shown is given.

use std::{
    convert::Infallible,
    fmt::{self, Write as _},
};

use axum::body::{Body, Bytes};
use futures::stream;
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

/// A page in pieces, which are sent one after the other: that of a large cluster has many megabytes, and is never copied as a whole.
#[derive(Debug, Default)]
pub(in crate::webhook) struct ExpositionPage {
    pieces: Vec<Bytes>,
    /// What is written of the next piece.
    open: String,
}

/// No piece has more bytes, but for one that is written at once.
const PIECE: usize = 32 << 10;

impl ExpositionPage {
    /// All registries as one page.
    pub(in crate::webhook) fn of<'a>(
        registries: impl IntoIterator<Item = &'a Registry>,
        format: ExpositionFormat,
    ) -> Self {
        let mut page = Self::default();
        let written = match format {
            ExpositionFormat::OpenMetrics => write(registries, &mut page),
            ExpositionFormat::Classic => {
                write(registries, &mut ClassicWriter { page: &mut page, line: String::new(), help: None })
            }
        };
        written.expect("a page takes every write");
        page.close_piece();
        page
    }

    fn close_piece(&mut self) {
        if !self.open.is_empty() {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }
}

impl From<ExpositionPage> for Body {
    fn from(page: ExpositionPage) -> Self {
        Self::from_stream(stream::iter(page.pieces.into_iter().map(Ok::<_, Infallible>)))
    }
}

impl fmt::Write for ExpositionPage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.open.len() + text.len() > PIECE {
            self.close_piece();
        }
        if self.open.capacity() == 0 {
            self.open.reserve(PIECE);
        }
        self.open.push_str(text);
        Ok(())
    }
}

/// All registries, as OpenMetrics. In the classic format the end is a comment like any other, which is left out.
fn write<'a>(registries: impl IntoIterator<Item = &'a Registry>, page: &mut impl fmt::Write) -> fmt::Result {
    for registry in registries {
        text::encode_registry(page, registry)?;
    }
    text::encode_eof(page)
}

/// Makes the classic format of each line of OpenMetrics: a counter is declared under the name of its samples, and there are no units.
struct ClassicWriter<'a> {
    page: &'a mut ExpositionPage,
    /// What is written of the next line.
    line: String,
    /// The help of the metric that is declared next, with the metric's name before it.
    help: Option<String>,
}

impl ClassicWriter<'_> {
    fn end_line(&mut self) -> fmt::Result {
        let line = std::mem::take(&mut self.line);
        if line.starts_with("# UNIT ") || line == "# EOF" {
            return Ok(());
        }
        if let Some(help) = line.strip_prefix("# HELP ") {
            self.help = Some(help.to_owned());
            return Ok(());
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let total = if kind == "counter" { "_total" } else { "" };
            let help = self.help.take();
            let text = help.as_deref().and_then(|help| help.split_once(' ')).map_or("", |(_, text)| text);
            return writeln!(self.page, "# HELP {name}{total} {text}\n# TYPE {name}{total} {kind}");
        }
        writeln!(self.page, "{line}")?;
        // The next line is written into the same memory.
        self.line = line;
        self.line.clear();
        Ok(())
    }
}

impl fmt::Write for ClassicWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut lines = text.split('\n');
        self.line.push_str(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line()?;
            self.line.push_str(line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::{
        metrics::{counter::Counter, family::Family, gauge::Gauge},
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

    fn text_of(registry: &Registry, format: ExpositionFormat) -> String {
        let ExpositionPage { pieces, open } = ExpositionPage::of([registry], format);
        assert_eq!(open, "");
        assert!(pieces.iter().all(|piece| (1..=PIECE).contains(&piece.len())));
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn a_page_of_many_pieces_is_that_of_one() {
        let mut registry = Registry::default();
        let gauges: Family<[(String, String); 1], Gauge> = Family::default();
        for number in 0..5_000 {
            gauges.get_or_create(&[("number".to_owned(), number.to_string())]).set(number);
        }
        registry.register("rows", "Rows", gauges);
        let mut whole = String::new();
        text::encode(&mut whole, &registry).unwrap();
        assert!(whole.len() > 3 * PIECE);
        assert_eq!(text_of(&registry, ExpositionFormat::OpenMetrics), whole);
        assert_eq!(text_of(&registry, ExpositionFormat::Classic), whole.strip_suffix("# EOF\n").unwrap());
    }

    #[test]
    fn a_counter_is_declared_under_the_name_of_its_samples() {
        let mut registry = Registry::default();
        registry.register("reviews", "Reviews", Counter::<u64>::default());
        registry.register_with_unit("age", "Age", Unit::Seconds, Gauge::<i64>::default());
        let open = "# HELP reviews Reviews.\n# TYPE reviews counter\nreviews_total 0\n# HELP age_seconds Age.\n\
                    # TYPE age_seconds gauge\n# UNIT age_seconds seconds\nage_seconds 0\n# EOF\n";
        assert_eq!(text_of(&registry, ExpositionFormat::OpenMetrics), open);
        let classic = "# HELP reviews_total Reviews.\n# TYPE reviews_total counter\nreviews_total 0\n\
                       # HELP age_seconds Age.\n# TYPE age_seconds gauge\nage_seconds 0\n";
        assert_eq!(text_of(&registry, ExpositionFormat::Classic), classic);
    }
}
