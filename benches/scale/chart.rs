//! The figures as a picture: above the time of a decision, a dry run and a scrape, below memory, both by what was varied.

use std::time::Duration;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::sweep::Figures;

const WIDTH: u32 = 800;
/// The height of one chart.
const HEIGHT: u32 = 320;

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
        ("scrape / 100", |figures| milliseconds(figures.scrape) / 100.0),
    ];
    lines(&above, points, (varied, "ms"), &times)?;
    let memory: [Line; 2] = [
        ("resident", |figures| mebibytes(figures.end.rss_kib)),
        ("most that was resident", |figures| mebibytes(figures.end.peak_kib)),
    ];
    lines(&below, points, (varied, "MiB"), &memory)?;
    area.present()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a number of nodes, pods or KiB")]
fn lines(area: &Area<'_>, points: &[Point], (varied, unit): (&str, &str), drawn: &[Line]) -> Drawn {
    let most = points.iter().map(|(number, _)| *number).max().unwrap_or_default() as f64;
    let values = points.iter().flat_map(|(_, figures)| drawn.iter().map(|(_, value)| value(figures)));
    let highest = values.fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..most * 1.02, 0.0..highest)?;
    chart.configure_mesh().x_desc(varied).y_desc(unit).draw()?;
    for (number, (name, value)) in drawn.iter().enumerate() {
        let style = Palette99::pick(number).stroke_width(2);
        let line = points.iter().map(|(at, figures)| (*at as f64, value(figures)));
        let legend = move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], style);
        chart.draw_series(LineSeries::new(line, style))?.label(*name).legend(legend);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "KiB of memory")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}
