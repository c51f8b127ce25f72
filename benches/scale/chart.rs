//! The figures as a picture: above the time of a decision, a dry run and a scrape, below memory, both by what was varied.

use std::{ops::Range, time::Duration};

use anyhow::{Result, anyhow};
use plotters::{
    coord::ranged1d::{AsRangedCoord, ValueFormatter},
    prelude::*,
};

use super::sweep::Figures;

const WIDTH: u32 = 800;
/// The height of one chart.
const HEIGHT: u32 = 320;
/// The width of the names of lines.
const NAMES: u32 = 160;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;
type Point = (usize, Figures);
/// The name of a line, and its value at a point.
type Line = (&'static str, fn(&Figures) -> f64);

/// The picture as SVG; `varied` is what the points differ by.
pub(crate) fn svg(varied: &str, points: &[Point]) -> Result<String> {
    let mut text = String::new();
    draw(varied, points, &mut text).map_err(|error| anyhow!("the figures can't be drawn: {error}"))?;
    Ok(text)
}

fn draw(varied: &str, points: &[Point], text: &mut String) -> Drawn {
    let area = SVGBackend::with_string(text, (WIDTH, 2 * HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let (above, below) = area.split_vertically(HEIGHT);
    let times: [Line; 4] = [
        ("decision, known class", |figures| milliseconds(figures.known)),
        ("decision, new class", |figures| milliseconds(figures.new)),
        ("dry run", |figures| milliseconds(figures.dry_run.0)),
        ("scrape", |figures| milliseconds(figures.scrape)),
    ];
    let range = range(points, &times);
    // Some take a thousand times as long as others.
    lines(&above, points, (varied, "ms"), (range.start / 2.0..range.end * 2.0).log_scale(), &times)?;
    let memory: [Line; 2] = [
        ("all known", |figures| mebibytes(figures.listed.rss_kib)),
        ("after all questions", |figures| mebibytes(figures.end.rss_kib)),
    ];
    let highest = self::range(points, &memory).end * 1.1;
    lines(&below, points, (varied, "MiB"), 0.0..highest, &memory)?;
    area.present()?;
    Ok(())
}

/// From the least to the highest value of these lines, 0 left out.
fn range(points: &[Point], drawn: &[Line]) -> Range<f64> {
    let values = points.iter().flat_map(|(_, figures)| drawn.iter().map(|(_, value)| value(figures)));
    let (least, highest) = values
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, 0.0), |(least, highest), value| (f64::min(least, value), f64::max(highest, value)));
    least.min(highest)..highest
}

/// Draws each line with its name at its end.
#[expect(clippy::cast_precision_loss, reason = "a number of nodes, pods or classes")]
fn lines<Y>(
    area: &Area<'_>,
    points: &[Point],
    (varied, unit): (&str, &str),
    of_values: Y,
    drawn: &[Line],
) -> Drawn
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let most = points.iter().map(|(number, _)| *number).max().unwrap_or_default() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(NAMES)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..most, of_values)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(6)
        .x_label_formatter(&|number| format!("{number:.0}"))
        .y_label_formatter(&|value| if *value < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") })
        .x_desc(varied)
        .y_desc(unit)
        .draw()?;
    for (number, (name, value)) in drawn.iter().enumerate() {
        let style = Palette99::pick(number).stroke_width(2);
        let line: Vec<_> = points.iter().map(|(at, figures)| (*at as f64, value(figures))).collect();
        let last = line.iter().copied().max_by(|one, other| one.0.total_cmp(&other.0));
        chart.draw_series(LineSeries::new(line, style))?;
        let named = |at| EmptyElement::at(at) + Text::new(*name, (8, -6), ("sans-serif", 13));
        chart.draw_series(last.into_iter().map(named))?;
    }
    Ok(())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "KiB of memory")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}
